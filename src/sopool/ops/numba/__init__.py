"""Loops compiled by Numba, for tensors on a CPU. Nothing here is imported before a loop is needed."""
