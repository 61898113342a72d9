"""Loops compiled by Numba, for one thread: a bank on a CPU spends most of its time in operations too small for torch.

Written out as loops they need no padding, no copies of slices and no call per model. Each function works on numpy views
of torch tensors, contiguous, all of one type; ``ptr`` says where the rows of each graph or model start.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit


def compiled(loop: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep what was compiled for the next process."""
    try:
        return _compiled(loop, keep=True)
    except RuntimeError:  # nowhere to keep it: neither the package nor the user's folder can be written to
        return _compiled(loop, keep=False)


def _compiled(loop: Callable[..., Any], keep: bool) -> Any:
    """Products and sums may be fused; nothing else about the arithmetic is loosened, so it stays what the loops say."""
    return njit(cache=keep, nogil=True, error_model="numpy", fastmath={"contract"})(loop)


BLOCK = 4
"""Rows taken together: so much less is written in between."""


@compiled
def gram(x: np.ndarray, y: np.ndarray, ptr: np.ndarray, longest: int, out: np.ndarray) -> None:
    """out[g] = X_g^T Y_g for the graphs of at most ``longest`` rows."""
    p, q = x.shape[1], y.shape[1]
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        if last - first > longest:
            continue
        s = out[g]
        s[:] = 0
        whole = first + (last - first) // BLOCK * BLOCK
        for i in range(first, whole, BLOCK):
            y0, y1, y2, y3 = y[i], y[i + 1], y[i + 2], y[i + 3]
            for a in range(p):
                x0, x1, x2, x3 = x[i, a], x[i + 1, a], x[i + 2, a], x[i + 3, a]
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
    y: np.ndarray, s: np.ndarray, ptr: np.ndarray, symmetrize: bool, longest: int, turned: np.ndarray, out: np.ndarray
) -> None:
    """out[i] = S_g(i) y_i, or (S + S^T) y_i, likewise; ``turned`` [q, p] is room for one S^T."""
    p, q = s.shape[1], s.shape[2]
    whole = q // BLOCK * BLOCK
    for g in range(len(ptr) - 1):
        first, last = ptr[g], ptr[g + 1]
        if last - first > longest:
            continue
        for b in range(q):
            for a in range(p):
                turned[b, a] = s[g, a, b] + s[g, b, a] if symmetrize else s[g, a, b]
        for i in range(first, last):
            row = out[i]
            row[:] = 0
            for b in range(0, whole, BLOCK):
                v0, v1, v2, v3 = y[i, b], y[i, b + 1], y[i, b + 2], y[i, b + 3]
                t0, t1, t2, t3 = turned[b], turned[b + 1], turned[b + 2], turned[b + 3]
                for a in range(p):
                    row[a] += v0 * t0[a] + v1 * t1[a] + v2 * t2[a] + v3 * t3[a]
            for b in range(whole, q):
                v0 = y[i, b]
                t0 = turned[b]
                for a in range(p):
                    row[a] += v0 * t0[a]


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
    """y = relu(scale (z - mean) inverse + shift) over the rows of model m; z is left centred."""
    width, first, last = z.shape[1], ptr[m], ptr[m + 1]
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
    """dz = slope (g - mean(g) - z^ mean(g z^)) with g the gradient where y > 0 and z^ = centred inverse."""
    width, first, last = y.shape[1], ptr[m], ptr[m + 1]
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
    slope = scale[m] * inverse[m]
    constant = slope * d_shift[m] / -rows
    factor = slope * inverse[m] * d_scale[m] / -rows
    for i in range(first, last):
        for j in range(width):
            dz[i, j] = dz[i, j] * slope[j] + centred[i, j] * factor[j] + constant[j]


@compiled
def hear_labelled(
    x: np.ndarray, vectors: np.ndarray, ptr: np.ndarray, nodes: np.ndarray, labels: np.ndarray, out: np.ndarray
) -> None:
    """out_i += x_i + sum_j relu(x_j + t_ij) over the list of each node."""
    width = x.shape[1]
    for i in range(len(ptr) - 1):
        for place in range(ptr[i], ptr[i + 1]):
            heard, label = x[nodes[place]], labels[place]
            if label < 0:
                for j in range(width):
                    out[i, j] += heard[j]
            else:
                vector = vectors[label]
                for j in range(width):
                    out[i, j] += max(heard[j] + vector[j], 0)


@compiled
def hear_labelled_nodes_slope(
    x: np.ndarray,
    vectors: np.ndarray,
    ptr: np.ndarray,
    nodes: np.ndarray,
    labels: np.ndarray,
    gradient: np.ndarray,
    out: np.ndarray,
) -> None:
    """What reaches each node from those who hear it, which its list names."""
    width = x.shape[1]
    for i in range(len(ptr) - 1):
        for place in range(ptr[i], ptr[i + 1]):
            slope, label = gradient[nodes[place]], labels[place]
            if label < 0:
                for j in range(width):
                    out[i, j] += slope[j]
            else:
                vector = vectors[label]
                for j in range(width):
                    out[i, j] += slope[j] if x[i, j] + vector[j] > 0 else 0


@compiled
def hear_labelled_vectors_slope(
    x: np.ndarray,
    vectors: np.ndarray,
    ptr: np.ndarray,
    nodes: np.ndarray,
    labels: np.ndarray,
    gradient: np.ndarray,
    out: np.ndarray,
) -> None:
    """What reaches each vector from the edges of its label."""
    width = x.shape[1]
    for i in range(len(ptr) - 1):
        for place in range(ptr[i], ptr[i + 1]):
            label = labels[place]
            if label >= 0:
                heard, vector = x[nodes[place]], vectors[label]
                for j in range(width):
                    out[label, j] += gradient[i, j] if heard[j] + vector[j] > 0 else 0
