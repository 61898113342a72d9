"""Kernels for CUDA, written in Triton. Nothing here is imported before a kernel is needed."""
