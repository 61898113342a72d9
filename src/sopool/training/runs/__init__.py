"""Runs: their configuration, what they record, and the store they are kept in."""
