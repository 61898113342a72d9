"""Executors: train runs on this machine or on a Ray cluster."""
