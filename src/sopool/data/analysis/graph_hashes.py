"""Hash graphs so that equal and isomorphic graphs have equal hashes, in every store and in every process.

The hashes are those of a color refinement (1-WL), see :mod:`sopool.data.analysis.refinement`, whose colors are 64-bit
numbers that depend on the values of labels and attributes only. Graphs that refinement does not distinguish have equal
hashes, too.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from sopool.data.edges import edge_blocks
from sopool.data.graphs import CATEGORIES, EDGE_FIELDS, NAMED, NODE_FIELDS, PackedGraphs
from sopool.data.names import Needed, reads

ROUNDS = 8
"""The rounds of refinement: nodes within this distance of a node determine its color."""
START, AHEAD, BEHIND, TOTAL = (np.uint64(number) for number in (1, 2, 3, 4))
"""What is added before mixing, so that the same number means different things in different places."""
STEP = np.uint64(0x9E3779B97F4A7C15)
FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def hashed_fields(store: PackedGraphs, needed: Mapping[str, Needed]) -> list[str]:
    """Return the fields of a store that identify its graphs: those that a model needs, and the labels.

    Labels of nodes and edges always count, because a model that ignores bonds would else confuse molecules.
    """
    names = {*needed, "node_labels", "edge_labels"}
    return [name for name in (*NODE_FIELDS, *EDGE_FIELDS) if name in names and getattr(store, name) is not None]


def graph_hashes(store: PackedGraphs, fields: Sequence[str], needed: Mapping[str, Needed]) -> np.ndarray | None:
    """Return a hash of each graph, int64 ``[G]``, or None if the store lacks one of the fields.

    Edge labels and other features count; the order of nodes and edges and the numbers that stand for labels do not.
    Two graphs that refinement distinguishes have the same hash with a probability of about 2**-64.

    Args:
        store: The graphs.
        fields: The fields of nodes and edges that count.
        needed: The columns of these fields that count, as an encoder's ``fields``; all of a field that is not there.
    """
    store = store.to("cpu")
    if not all(_has(store, name, needed.get(name)) for name in fields):
        return None
    colours = node_hashes(store, fields, needed)
    ptr = store.node_ptr.numpy()
    with np.errstate(over="ignore"):
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(colours + TOTAL), dtype=np.uint64)])
        hashes = mixed(total[ptr[1:]] - total[ptr[:-1]] + mixed(np.diff(ptr).astype(np.uint64)))
    return hashes.view(np.int64)


def node_hashes(store: PackedGraphs, fields: Sequence[str], needed: Mapping[str, Needed] | None = None) -> np.ndarray:
    """Return a hash of each node, uint64 ``[N]``: its color after refinement, which depends on its graph alone.

    Args:
        store: The graphs, on a CPU.
        fields: The fields of nodes and edges that count.
        needed: The columns of these fields that count. Default: None, all.
    """
    needed = needed or {}
    with np.errstate(over="ignore"):
        colours = mixed(_sums(store, [name for name in fields if name in NODE_FIELDS], needed, store.num_nodes) + START)
        keys = _sums(store, [name for name in fields if name in EDGE_FIELDS], needed, store.num_edges)
        for _ in range(ROUNDS):
            colours = _refined(store, colours, keys)
    return colours


def _has(store: PackedGraphs, name: str, needed: Needed) -> bool:
    """Return whether the store has a field, or has no edges that could have it."""
    if getattr(store, name) is None:
        return name in EDGE_FIELDS and not store.num_edges
    if name not in CATEGORIES or not isinstance(needed, tuple):
        return True
    return {column.name for column in getattr(store, CATEGORIES[name])}.issuperset(needed)


def _refined(store: PackedGraphs, colours: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return new colors of the nodes, from their own ones and those of their neighbors in both directions."""
    ahead, behind = (torch.zeros(store.num_nodes, dtype=torch.int64) for _ in range(2))
    start = 0
    for source, target in edge_blocks(store):
        own = keys[start : start + len(source)]
        start += len(source)
        # PyTorch's int64 wraps around as uint64 does.
        ahead.scatter_add_(0, source, _signed(mixed(colours[target.numpy()] + own + AHEAD)))
        behind.scatter_add_(0, target, _signed(mixed(colours[source.numpy()] + own + BEHIND)))
    for neighbors in (ahead, behind):
        colours = mixed(colours * STEP + neighbors.numpy().view(np.uint64))
    return colours


def _signed(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.view(np.int64))


def _sums(store: PackedGraphs, fields: Sequence[str], needed: Mapping[str, Needed], count: int) -> np.ndarray:
    """Return a number for each node or edge, uint64 ``[count]``, which the values of these fields determine."""
    total = np.zeros(count, np.uint64)
    for name in fields:
        values = getattr(store, name)
        if values is None:
            continue
        codes = values.numpy()
        if name in NAMED:
            total += _hashed_names(name, getattr(store, NAMED[name]))[codes]
        elif name in CATEGORIES:
            wanted = needed.get(name)
            for column, own in zip(getattr(store, CATEGORIES[name]), codes.T, strict=True):
                if not isinstance(wanted, tuple) or column.name in wanted:
                    total += _hashed_names(f"{name} {column.name}", column.values)[own]
        else:
            total += _hashed_rows(codes if codes.ndim == 2 else codes[:, None])
    return total


def _hashed_names(kind: str, names: Sequence[str | int]) -> np.ndarray:
    """Return a hash of each name, uint64; 1 and "1" have the same one."""
    texts = (f"{kind}\0{reads(name)}".encode("utf-8", "surrogatepass") for name in names)
    digests = (hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)


def _hashed_rows(rows: np.ndarray) -> np.ndarray:
    """Return a hash of each row of numbers ``[N, F]``, uint64; 0 and -0 are equal."""
    total = np.full(len(rows), STEP)
    for column in rows.T:
        bits = np.ascontiguousarray(column + np.float32(0), np.float32).view(np.uint32)
        total = mixed(total * STEP + bits.astype(np.uint64))
    return total


def mixed(values: np.ndarray) -> np.ndarray:
    """Return 64-bit numbers that look random and depend on all bits of the given ones (splitmix64)."""
    mixed = values + STEP
    for shift, factor in zip((30, 27), FACTORS, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    result: np.ndarray = mixed ^ (mixed >> np.uint64(31))
    return result
