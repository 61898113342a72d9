"""Inference with a message-passing network as one compiled loop: small groups of graphs pass all layers in the cache.

Matrix products are those of NumPy within Numba, which call a BLAS library without Python overhead.
"""

import numpy as np

from sopool.ops.numba.loops import compiled

ROWS = 64
"""The number of nodes per group, unless one graph is larger: few enough that the BLAS library starts no threads."""
SUM, MEAN, MAX = 0, 1, 2


@compiled
def network(
    x: np.ndarray,
    ptr: np.ndarray,
    starts: np.ndarray,
    nodes: np.ndarray,
    labels: np.ndarray,
    factors: np.ndarray,
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
    """Compute h_0 = x and h_l = relu(... relu(a W + b) ...) with a = aggregate(h_(l-1)) + eps h_(l-1).

    ``out`` receives all h side by side ``[N, D + L * H]``, or sum_l h_l V_l ``[N, R]`` if there are views V. ``x`` is
    ``[N, D]``; ``labels`` and ``factors``, which multiply messages, are empty if they are not used. With K maps per
    layer, ``eps`` is ``[M, L]``, ``first`` ``[M, D, H]``, ``rest`` ``[M, K * L - 1, H, H]``, ``bias``
    ``[M, K * L, H]``, ``first_view`` ``[M, D, R]`` and ``views`` ``[M, L, H, R]``. The vectors of edge labels are
    ``[V, D]`` for the first layer and ``[L - 1, V, H]`` for the others.
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
                    own = first_vectors
                    _aggregate(begun, n, begin, starts, nodes, labels, factors, how, eps[m, 0], own, aggregated_x)
                    source = aggregated_x
                    weight = first[m]
                else:
                    own = vectors[layer - 1]
                    _aggregate(state, n, begin, starts, nodes, labels, factors, how, eps[m, layer], own, aggregated)
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
    factors: np.ndarray,
    how: int,
    eps: float,
    vectors: np.ndarray,
    out: np.ndarray,
) -> None:
    """Aggregate the lists of n nodes; ``begin`` is the node number of row 0 of ``x``, and row n is zero."""
    for i in range(n):
        first = starts[begin + i]
        last = starts[begin + i + 1]
        if len(factors):
            _aggregate_weighted(x, begin, nodes, labels, factors, how, first, last, vectors, out[i])
        elif len(labels):
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
    """Write the sum over a list to ``out[i]``; the first four entries are added at once, padded with the zero row n."""
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
    """Write the largest value of each column to ``row``, zero for an empty list."""
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
    """Write to ``row`` the sum of x_j for the node itself (label -1) and relu(x_j + vector) for the other entries."""
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
def _aggregate_weighted(
    x: np.ndarray,
    begin: int,
    nodes: np.ndarray,
    labels: np.ndarray,
    factors: np.ndarray,
    how: int,
    first: int,
    last: int,
    vectors: np.ndarray,
    row: np.ndarray,
) -> None:
    """Write to ``row`` the sum or the maximum of the messages, each multiplied by the factor of its list entry."""
    for j in range(len(row)):
        row[j] = 0
    for place in range(first, last):
        member = nodes[place] - begin
        factor = factors[place]
        label = labels[place] if len(labels) else -1
        for j in range(len(row)):
            value = x[member, j] if label < 0 else max(x[member, j] + vectors[label, j], 0)
            value = factor * value
            if how != MAX:
                row[j] += value
            elif place == first or value > row[j] or np.isnan(value):
                row[j] = value


@compiled
def _map(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, n: int, out: np.ndarray) -> None:
    """Write relu(X W + b) to the first n rows of ``out``."""
    for start in range(0, n, ROWS):
        stop = min(n, start + ROWS)
        np.dot(x[start:stop], weight, out[start:stop])
    for i in range(n):
        row = out[i]
        for j in range(len(bias)):
            row[j] = max(row[j] + bias[j], 0)


@compiled
def _show(x: np.ndarray, view: np.ndarray, seen: np.ndarray, column: int, anew: bool, out: np.ndarray) -> None:
    """Add X V to ``out``, or set it if ``anew``; without a view, copy X to its columns. ``seen`` is a buffer."""
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
