"""Limits on the size of what readers accept, so that the cost of reading any file is bounded.

Use them as ``limits.NAME``, so that there is one place to change them.
"""

MAX_UNPACKED = 4 * 2**30
"""The largest uncompressed size in bytes of a gzip file or of all members of a zip."""

MAX_LINE = 16 * 2**20
"""The largest size in bytes of a line of a text file, or of a record of several lines."""

MAX_NODES = 2**24
"""The largest number of nodes of a graph."""

MAX_BARE_NODES = 2**16
"""The number of nodes above which a line of JSON must have at least as many bytes as nodes.

Memory is allocated for each node, and nodes with edges, labels or attributes take several bytes of the line each.
"""

MAX_TARGETS = 2**16
"""The largest number of targets of a graph, and of numbers given beside it."""

MAX_CATEGORIES = 2**12
"""The largest number of columns of categories of nodes or edges, each of which is encoded by itself."""

MAX_ATOMS = 1000
"""The default of ``max_atoms``, the largest number of atoms of a molecule; a usual SDF record (V2000) has at most 999.
"""
