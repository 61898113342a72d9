"""Readers and writers, one for each file format, and conversions from and to other libraries."""
