"""Loops for tensors on a CPU, compiled by Numba. They are imported when a loop is first needed."""
