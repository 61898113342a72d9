"""Utilities for the running process: signals, threads, worker processes, devices."""
