"""Loops compiled by Numba, for operations that are too small to be efficient in PyTorch.

Such operations dominate small batches and a bank on a CPU. Loops need no padding, no copies of slices and no call per
model. Each function runs in one thread on contiguous NumPy views of PyTorch tensors of one dtype; ``ptr`` has the
boundaries of graphs or models. Functions for the graphs from ``start`` to ``end``, which are number ``part`` of all
parts, may run in several threads.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit


def compiled(loop: Callable[..., Any]) -> Any:
    """Compile a function at its first call, and cache the result on disk if possible."""
    return _compile(loop, {"contract"})


def compiled_with_dots(loop: Callable[..., Any]) -> Any:
    """Compile a function with scalar products, whose sums the compiler may reorder to compute several terms at once.

    The order is the same for every row, since it depends only on the width.
    """
    return _compile(loop, {"contract", "reassoc", "nsz"})


def _compile(loop: Callable[..., Any], fastmath: set[str]) -> Any:
    """Compile a function; apart from ``fastmath``, the arithmetic is exactly that of the loop."""
    try:
        return njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(loop)
    except RuntimeError:  # no writable cache: neither the package nor the user's cache folder
        return njit(nogil=True, error_model="numpy", fastmath=fastmath)(loop)


BLOCK = 4
"""The number of rows per step, which reduces the number of writes."""


@compiled
def gram(
    part: int, start: int, end: int, x: np.ndarray, y: np.ndarray, ptr: np.ndarray, longest: int, out: np.ndarray
) -> None:
    """Write X_g^T Y_g to ``out[g]`` for segments from ``start`` to ``end`` of at most ``longest`` rows."""
    p = x.shape[1]
    q = y.shape[1]
    for g in range(start, end):
        first = ptr[g]
        last = ptr[g + 1]
        if last - first > longest:
            continue
        s = out[g]
        s[:] = 0
        whole = first + (last - first) // BLOCK * BLOCK
        for i in range(first, whole, BLOCK):
            y0 = y[i]
            y1 = y[i + 1]
            y2 = y[i + 2]
            y3 = y[i + 3]
            for a in range(p):
                x0 = x[i, a]
                x1 = x[i + 1, a]
                x2 = x[i + 2, a]
                x3 = x[i + 3, a]
                row = s[a]
                for b in range(q):
                    row[b] += x0 * y0[b] + x1 * y1[b] + x2 * y2[b] + x3 * y3[b]
        for i in range(whole, last):
            for a in range(p):
                x0 = x[i, a]
                row = s[a]
                for b in range(q):
                    row[b] += x0 * y[i, b]


@compiled
def apply(
    part: int,
    start: int,
    end: int,
    y: np.ndarray,
    s: np.ndarray,
    ptr: np.ndarray,
    symmetrize: bool,
    longest: int,
    out: np.ndarray,
) -> None:
    """Write S_g y_i, or (S_g + S_g^T) y_i, to ``out[i]`` for segments as in :func:`gram`."""
    p = s.shape[1]
    q = s.shape[2]
    transposed = np.empty((q, p), s.dtype)
    whole = q // BLOCK * BLOCK
    for g in range(start, end):
        first = ptr[g]
        last = ptr[g + 1]
        if last - first > longest:
            continue
        for b in range(q):
            for a in range(p):
                transposed[b, a] = s[g, a, b] + s[g, b, a] if symmetrize else s[g, a, b]
        for i in range(first, last):
            row = out[i]
            row[:] = 0
            for b in range(0, whole, BLOCK):
                v0 = y[i, b]
                v1 = y[i, b + 1]
                v2 = y[i, b + 2]
                v3 = y[i, b + 3]
                t0 = transposed[b]
                t1 = transposed[b + 1]
                t2 = transposed[b + 2]
                t3 = transposed[b + 3]
                for a in range(p):
                    row[a] += v0 * t0[a] + v1 * t1[a] + v2 * t2[a] + v3 * t3[a]
            for b in range(whole, q):
                v0 = y[i, b]
                t0 = transposed[b]
                for a in range(p):
                    row[a] += v0 * t0[a]


@njit(inline="always")
def _add_row(row: np.ndarray, query: np.ndarray, bias: float, s: np.ndarray) -> Any:
    """Add a row times its score to ``s``, and return the score."""
    width = len(row)
    total = row.dtype.type(bias)
    for j in range(width):
        total += row[j] * query[j]
    for j in range(width):
        s[j] += total * row[j]
    return total


@compiled_with_dots
def attend_rows(
    x: np.ndarray, query: np.ndarray, bias: float, index: np.ndarray, out: np.ndarray, score: np.ndarray
) -> bool:
    """Write the scores X q + b ``[N]``, and the sums ``[G, F]`` of the rows of each segment times their scores.

    Return False if there is no such segment.
    """
    out[:] = 0
    for i in range(len(index)):
        g = index[i]
        if g < 0 or g >= len(out):
            return False
        score[i] = _add_row(x[i], query, bias, out[g])
    return True


@compiled_with_dots
def attend(
    part: int,
    start: int,
    end: int,
    x: np.ndarray,
    query: np.ndarray,
    bias: float,
    ptr: np.ndarray,
    ordered: bool,
    order: np.ndarray,
    out: np.ndarray,
    score: np.ndarray,
) -> None:
    """Write the scores X_g q + b ``[N]`` and X_g^T (X_g q + b) ``[G, F]`` of segments from ``start`` to ``end``.

    If ``ordered``, the rows of ``x`` are read in this ``order``. The scores are in segment order.
    """
    for g in range(start, end):
        s = out[g]
        s[:] = 0
        for i in range(ptr[g], ptr[g + 1]):
            score[i] = _add_row(x[order[i] if ordered else i], query, bias, s)


@njit(inline="always")
def _row_gradients(
    row: np.ndarray, query: np.ndarray, score: float, d: Any, dp: np.ndarray, dx: np.ndarray, dq: np.ndarray
) -> Any:
    """Write the gradient of a row, add to that of the query, and return that of the score, which starts as ``d``."""
    width = len(row)
    for j in range(width):
        d += row[j] * dp[j]
    for j in range(width):
        dq[j] += d * row[j]
        dx[j] = score * dp[j] + d * query[j]
    return d


@compiled_with_dots
def attend_rows_backward(
    x: np.ndarray,
    query: np.ndarray,
    index: np.ndarray,
    score: np.ndarray,
    d_pooled: np.ndarray,
    dx: np.ndarray,
    d_query: np.ndarray,
) -> float:
    """Write the gradients of ``x`` and of the query, and return that of the bias."""
    d_query[:] = 0
    d_bias = 0.0
    none = x.dtype.type(0)
    for i in range(len(index)):
        d_bias += _row_gradients(x[i], query, score[i], none, d_pooled[index[i]], dx[i], d_query)
    return d_bias


@compiled_with_dots
def attend_backward(
    part: int,
    start: int,
    end: int,
    x: np.ndarray,
    query: np.ndarray,
    score: np.ndarray,
    d_pooled: np.ndarray,
    ptr: np.ndarray,
    ordered: bool,
    order: np.ndarray,
    dx: np.ndarray,
    d_query: np.ndarray,
    d_score: np.ndarray,
) -> None:
    """Write the gradient of ``x``, and add to those of the query (to row ``part``) and of the scores.

    d_i is the gradient of the score of row i in segment g plus x_i . d_pooled_g. The gradient of x_i is score_i
    d_pooled_g + d_i q, and that of the query is the sum of d_i x_i.
    """
    dq = d_query[part]
    for g in range(start, end):
        for i in range(ptr[g], ptr[g + 1]):
            place = order[i] if ordered else i
            d_score[i] = _row_gradients(x[place], query, score[i], d_score[i], d_pooled[g], dx[place], dq)


@compiled
def norm_relu(
    m: int,
    z: np.ndarray,
    ptr: np.ndarray,
    scale: np.ndarray,
    shift: np.ndarray,
    eps: float,
    mean: np.ndarray,
    variance: np.ndarray,
    inverse: np.ndarray,
    y: np.ndarray,
) -> None:
    """Write relu(scale (z - mean) inverse + shift) to ``y`` for the rows of model m, and center ``z`` in place."""
    width = z.shape[1]
    first = ptr[m]
    last = ptr[m + 1]
    rows = max(last - first, 1)
    mean[m] = 0
    variance[m] = 0
    for i in range(first, last):
        for j in range(width):
            mean[m, j] += z[i, j]
    mean[m] /= rows
    for i in range(first, last):
        for j in range(width):
            centred = z[i, j] - mean[m, j]
            z[i, j] = centred
            variance[m, j] += centred * centred
    variance[m] /= rows
    for j in range(width):
        inverse[m, j] = 1 / np.sqrt(variance[m, j] + z.dtype.type(eps))
    factor = scale[m] * inverse[m]
    for i in range(first, last):
        for j in range(width):
            y[i, j] = max(z[i, j] * factor[j] + shift[m, j], 0)


@compiled
def norm_relu_backward(
    m: int,
    gradient: np.ndarray,
    centred: np.ndarray,
    y: np.ndarray,
    ptr: np.ndarray,
    scale: np.ndarray,
    inverse: np.ndarray,
    dz: np.ndarray,
    d_scale: np.ndarray,
    d_shift: np.ndarray,
) -> None:
    """Compute dz = multiplier (g - mean(g) - z^ mean(g z^)) with g = gradient where y > 0 and z^ = centred inverse."""
    width = y.shape[1]
    first = ptr[m]
    last = ptr[m + 1]
    rows = max(last - first, 1)
    d_scale[m] = 0
    d_shift[m] = 0
    for i in range(first, last):
        for j in range(width):
            g = gradient[i, j] if y[i, j] > 0 else 0
            dz[i, j] = g
            d_shift[m, j] += g
            d_scale[m, j] += g * centred[i, j]
    d_scale[m] *= inverse[m]
    multiplier = scale[m] * inverse[m]
    constant = multiplier * d_shift[m] / -rows
    factor = multiplier * inverse[m] * d_scale[m] / -rows
    for i in range(first, last):
        for j in range(width):
            dz[i, j] = dz[i, j] * multiplier[j] + centred[i, j] * factor[j] + constant[j]


@compiled
def aggregate_labelled_loop(
    x: np.ndarray, vectors: np.ndarray, ptr: np.ndarray, nodes: np.ndarray, labels: np.ndarray, out: np.ndarray
) -> None:
    """Add x_i + sum_j relu(x_j + t_ij) over the list of each node i to ``out[i]``."""
    width = x.shape[1]
    for i in range(len(ptr) - 1):
        for place in range(ptr[i], ptr[i + 1]):
            row = x[nodes[place]]
            label = labels[place]
            if label < 0:
                for j in range(width):
                    out[i, j] += row[j]
            else:
                vector = vectors[label]
                for j in range(width):
                    out[i, j] += max(row[j] + vector[j], 0)


@compiled
def labelled_nodes_gradient(
    x: np.ndarray,
    vectors: np.ndarray,
    ptr: np.ndarray,
    nodes: np.ndarray,
    labels: np.ndarray,
    gradient: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add up the gradient of each node, from the nodes in its list, which aggregate it."""
    width = x.shape[1]
    for i in range(len(ptr) - 1):
        for place in range(ptr[i], ptr[i + 1]):
            incoming = gradient[nodes[place]]
            label = labels[place]
            if label < 0:
                for j in range(width):
                    out[i, j] += incoming[j]
            else:
                vector = vectors[label]
                for j in range(width):
                    out[i, j] += incoming[j] if x[i, j] + vector[j] > 0 else 0


@compiled
def labelled_vectors_gradient(
    x: np.ndarray,
    vectors: np.ndarray,
    ptr: np.ndarray,
    nodes: np.ndarray,
    labels: np.ndarray,
    gradient: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add up the gradient of each vector, from the edges with its label."""
    width = x.shape[1]
    for i in range(len(ptr) - 1):
        for place in range(ptr[i], ptr[i + 1]):
            label = labels[place]
            if label >= 0:
                row = x[nodes[place]]
                vector = vectors[label]
                for j in range(width):
                    out[label, j] += gradient[i, j] if row[j] + vector[j] > 0 else 0
