"""How much a reader takes in before it refuses: what it costs to read a file is bounded by these, not by the file.

Read them as ``limits.NAME``, so that there is one place to change them.
"""

MAX_UNPACKED = 4 * 2**30
"""A zip (all members together) or gzip file that unpacks to more bytes than this is refused."""

MAX_LINE = 16 * 2**20
"""A line of a text file, or a record of several lines, that is longer than this many bytes is refused."""

MAX_NODES = 2**24
"""A graph of more nodes is refused."""

MAX_BARE_NODES = 2**16
"""A line of JSON may name more nodes than this only if it is at least as many bytes long as it has nodes.

Memory is taken for each node. A graph whose nodes have edges, labels or attributes has several bytes for each.
"""

MAX_ATOMS = 1000
"""A molecule of more atoms is bad unless ``max_atoms`` is raised. An SDF record of the usual kind (V2000) has 999."""
