"""Benchmarks of sopool, and the scripts behind the tables of the documentation.

Run one from the root of the repository: ``python -m benchmarks.NAME``. They are not part of the installed package.
"""
