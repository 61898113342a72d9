"""A trained message-passing network as one compiled loop: some graphs go through all layers while the cache holds them.

The products are those of NumPy inside Numba: a library's, called without Python, quick for a few dozen rows already.
"""

import numpy as np

from sopool.ops.numba.loops import compiled

ROWS = 64
"""Nodes that are worked on together, or those of one graph: so few that the library starts no threads for them."""
SUM, MEAN, MAX = 0, 1, 2


@compiled
def network(
    x: np.ndarray,
    ptr: np.ndarray,
    starts: np.ndarray,
    nodes: np.ndarray,
    labels: np.ndarray,
    how: int,
    eps: np.ndarray,
    first: np.ndarray,
    rest: np.ndarray,
    bias: np.ndarray,
    first_vectors: np.ndarray,
    vectors: np.ndarray,
    first_view: np.ndarray,
    views: np.ndarray,
    out: np.ndarray,
) -> None:
    """h_0 = x; h_l = relu(... relu(a W + b) ...) with a = the sum, mean or maximum over a list, + eps h_(l-1).

    Out are all h side by side [N, d + L h], or sum_l h_l V_l [N, r] if there are views V. x [N, d]; ``labels`` is empty
    if edges have none; of model m: eps [M, L], first [M, d, h], rest [M, K L - 1, h, h] and bias [M, K L, h] for K maps
    a layer, first_view [M, d, r], views [M, L, h, r]; vectors of edge labels [V, d] and [L - 1, V, h].
    """
    models, layers = eps.shape
    d = x.shape[1]
    h = bias.shape[2]
    maps = bias.shape[1] // max(1, layers)
    each = (len(ptr) - 1) // models
    most = ROWS
    for g in range(len(ptr) - 1):
        most = max(most, ptr[g + 1] - ptr[g])
    begun = np.empty((most + 1, d), x.dtype)
    aggregated_x = np.empty((most, d), x.dtype)
    state = np.empty((most + 1, h), x.dtype)
    aggregated = np.empty((most, h), x.dtype)
    between = np.empty((most, h), x.dtype)
    seen = np.empty((ROWS, first_view.shape[2]), x.dtype)
    for m in range(models):
        g = m * each
        while g < (m + 1) * each:
            end = g + 1
            while end < (m + 1) * each and ptr[end + 1] - ptr[g] <= ROWS:
                end += 1
            begin = ptr[g]
            n = ptr[end] - ptr[g]
            rows = out[begin : begin + n]
            begun[:n] = x[begin : begin + n]
            begun[n] = 0
            state[n] = 0
            _show(begun[:n], first_view[m], seen, 0, True, rows)
            for layer in range(layers):
                if layer == 0:
                    _aggregate(begun, n, begin, starts, nodes, labels, how, eps[m, 0], first_vectors, aggregated_x)
                    source = aggregated_x
                    weight = first[m]
                else:
                    own = vectors[layer - 1]
                    _aggregate(state, n, begin, starts, nodes, labels, how, eps[m, layer], own, aggregated)
                    source = aggregated
                    weight = rest[m, layer * maps - 1]
                for k in range(layer * maps, (layer + 1) * maps):
                    if k > layer * maps:
                        source = between
                        weight = rest[m, k - 1]
                    target = state if k == (layer + 1) * maps - 1 else between
                    _map(source, weight, bias[m, k], n, target)
                _show(state[:n], views[m, layer], seen, d + layer * h, False, rows)
            g = end


@compiled
def _aggregate(
    x: np.ndarray,
    n: int,
    begin: int,
    starts: np.ndarray,
    nodes: np.ndarray,
    labels: np.ndarray,
    how: int,
    eps: float,
    vectors: np.ndarray,
    out: np.ndarray,
) -> None:
    """Aggregate the lists of n nodes; ``begin`` is the number of the first row of x in them, row n is all zeros."""
    for i in range(n):
        first = starts[begin + i]
        last = starts[begin + i + 1]
        if len(labels):
            _aggregate_labelled(x, begin, nodes, labels, first, last, vectors, out[i])
        elif how == MAX:
            _aggregate_max(x, begin, nodes, first, last, out[i])
        else:
            _aggregate_all(x, n, begin, nodes, first, last, out, i)
        if how == MEAN:
            for j in range(x.shape[1]):
                out[i, j] /= max(last - first, 1)
        if eps != 0:
            for j in range(x.shape[1]):
                out[i, j] += eps * x[i, j]


@compiled
def _aggregate_all(
    x: np.ndarray, n: int, begin: int, nodes: np.ndarray, first: int, last: int, out: np.ndarray, i: int
) -> None:
    """Their sum. Most lists have four members at most: these are added in one go, with zeros for those that are not."""
    a = nodes[first] - begin if last > first else n
    b = nodes[first + 1] - begin if last > first + 1 else n
    c = nodes[first + 2] - begin if last > first + 2 else n
    d = nodes[first + 3] - begin if last > first + 3 else n
    for j in range(x.shape[1]):
        out[i, j] = x[a, j] + x[b, j] + x[c, j] + x[d, j]
    for place in range(first + 4, last):
        a = nodes[place] - begin
        for j in range(x.shape[1]):
            out[i, j] += x[a, j]


@compiled
def _aggregate_max(x: np.ndarray, begin: int, nodes: np.ndarray, first: int, last: int, row: np.ndarray) -> None:
    """The largest value of each column, zero if there is nobody."""
    for j in range(len(row)):
        row[j] = x[nodes[first] - begin, j] if last > first else 0
    for place in range(first + 1, last):
        member = nodes[place] - begin
        for j in range(len(row)):
            if x[member, j] > row[j] or np.isnan(x[member, j]):
                row[j] = x[member, j]


@compiled
def _aggregate_labelled(
    x: np.ndarray,
    begin: int,
    nodes: np.ndarray,
    labels: np.ndarray,
    first: int,
    last: int,
    vectors: np.ndarray,
    row: np.ndarray,
) -> None:
    """x_j of the node itself, whose label is -1, and relu(x_j + vector) of the others."""
    for j in range(len(row)):
        row[j] = 0
    for place in range(first, last):
        member = nodes[place] - begin
        label = labels[place]
        if label < 0:
            for j in range(len(row)):
                row[j] += x[member, j]
        else:
            for j in range(len(row)):
                row[j] += max(x[member, j] + vectors[label, j], 0)


@compiled
def _map(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, n: int, out: np.ndarray) -> None:
    """relu(X W + b) for the first n rows."""
    for start in range(0, n, ROWS):
        stop = min(n, start + ROWS)
        np.dot(x[start:stop], weight, out[start:stop])
    for i in range(n):
        row = out[i]
        for j in range(len(bias)):
            row[j] = max(row[j] + bias[j], 0)


@compiled
def _show(x: np.ndarray, view: np.ndarray, seen: np.ndarray, column: int, anew: bool, out: np.ndarray) -> None:
    """Add X V to what is out, or write X into its columns if there is no view; ``seen`` is a buffer for some rows."""
    if not view.shape[1]:
        for i in range(len(x)):
            for j in range(x.shape[1]):
                out[i, column + j] = x[i, j]
        return
    for start in range(0, len(x), ROWS):
        stop = min(len(x), start + ROWS)
        np.dot(x[start:stop], view, seen[: stop - start])
        for i in range(start, stop):
            for j in range(view.shape[1]):
                out[i, j] = seen[i - start, j] + (0 if anew else out[i, j])
