"""Runs: their configuration, their results and the store that they are kept in."""
