"""Triton kernels for CUDA. They are imported when a kernel is first needed.

In kernels, upper-case names are compile-time constants, such as block sizes; lower-case names are the actual sizes.
"""
