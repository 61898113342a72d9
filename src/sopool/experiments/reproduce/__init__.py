"""Reproduce the paper's tables: their contents, the selected parts and the results."""
