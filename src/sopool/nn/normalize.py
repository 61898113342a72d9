"""Normalisations of second-order statistics, by name.

H^T H grows with the number of nodes and is dominated by its largest entries; each of these tames one of the two.
``"size"`` and ``"sqrt"`` make sense for any pooled values, ``"trace"`` and ``"matrix-sqrt"`` only for a symmetric
matrix.
"""

import torch
from torch import Tensor

from sopool.ops.first_order import segment_sizes
from sopool.ops.products import product
from sopool.ops.torch_backend import widen

EPS = 1e-6
ITERATIONS = 12

FOR_VECTORS = (None, "size", "sqrt")
FOR_MATRICES = (None, "size", "trace", "sqrt", "matrix-sqrt", "size+matrix-sqrt")
DIVIDED = {None: "size", "matrix-sqrt": "size+matrix-sqrt"}
"""Normalisations, and the same with a division by the size before."""


def check_normalize(given: str | None, known: tuple[str | None, ...], owner: object) -> None:
    """Raise unless ``given`` is one of ``known``, with the reason where another readout knows it."""
    if given in known:
        return
    why = " It needs a symmetric matrix, and this readout gives none." if given in FOR_MATRICES else ""
    raise ValueError(f"normalize={given!r} is not for {type(owner).__name__}.{why} Choose one of {list(known)}.")


def widen_for(how: str | None, x: Tensor) -> Tensor:
    """What is pooled, ready for a normalisation: half types in float32, since sums over many nodes overflow."""
    return x if how is None else widen(x)


def normalize_pooled(pooled: Tensor, ptr: Tensor, how: str | None, rounding: float = 0.0) -> Tensor:
    """Normalise [G, ...] by name; for a matrix-valued readout [G, f, f]. Half types are widened before.

    ``rounding``: what a trace that is 0 may come out as, which must not be blown up to 1.
    """
    if how is None:
        return pooled
    if how == "size":
        return pooled / segment_sizes(ptr, like=pooled).view(-1, *[1] * (pooled.dim() - 1))
    if how == "trace":
        trace = pooled.diagonal(dim1=1, dim2=2).sum(1) + rounding
        return pooled / torch.where(trace > 0, trace, 1.0).view(-1, 1, 1)
    if how == "sqrt":
        return _unit(signed_sqrt(pooled))
    return matrix_sqrt(pooled if how == "matrix-sqrt" else normalize_pooled(pooled, ptr, "size"))


def signed_sqrt(values: Tensor) -> Tensor:
    """sign(v) sqrt(|v|), as v / sqrt(|v| + eps): its slope stays finite at the exact zeros that ReLU makes."""
    return values * (values.abs() + EPS).rsqrt()


def matrix_sqrt(s: Tensor, iterations: int = ITERATIONS) -> Tensor:
    r"""The square root of positive semi-definite matrices [G, f, f] by coupled Newton-Schulz iterations.

    .. math::
        Y_0 = S / \|S\|_F, \; Z_0 = I, \quad
        T = \tfrac{1}{2} (3 I - Z Y), \; Y \leftarrow Y T, \; Z \leftarrow T Z,
        \quad \sqrt{S} \approx \sqrt{\|S\|_F} \, Y

    Matrix products only, no eigendecomposition: gradients stay finite for equal and for zero eigenvalues (n < f).
    An eigenvalue :math:`\lambda` is exact once :math:`1.5^{iterations}` is well above
    :math:`(\|S\|_F / \lambda)^{1/2}`; smaller ones come out too small, never wrong in sign.
    Half types are computed in float32. From `"Towards Faster Training of Global Covariance Pooling Networks by
    Iterative Matrix Square Root Normalization"
    <https://arxiv.org/abs/1712.01034>`_, which scales by the trace.
    """
    y, _, root = _newton_schulz(s, iterations)
    return (y * root).to(s.dtype)


def inverse_matrix_sqrt(s: Tensor, iterations: int = ITERATIONS) -> Tensor:
    """What S is to be multiplied with to give :func:`matrix_sqrt`, as exactly for zero eigenvalues as for others."""
    _, z, root = _newton_schulz(s, iterations)
    return (z / root).to(s.dtype)


def _newton_schulz(s: Tensor, iterations: int) -> tuple[Tensor, Tensor, Tensor]:
    """Y, Z and the root of the norm."""
    s = widen(s)
    # No entry is larger than the largest on the diagonal: divided by it, squares neither overflow nor vanish. It
    # cancels, so it needs no gradient.
    largest = s.detach().diagonal(dim1=1, dim2=2).amax(1).view(-1, 1, 1)
    scale = torch.where(largest > 0, largest, 1.0)
    squares = (s / scale).square().sum((1, 2), keepdim=True)
    norm = scale * torch.where(largest > 0, squares, 1.0).sqrt()
    identity = torch.eye(s.shape[1], dtype=s.dtype, device=s.device)
    y, z = s / norm, identity.expand_as(s)
    for _ in range(iterations):
        t = 1.5 * identity - 0.5 * product(z, y)
        y, z = product(y, t), product(t, z)
    return y, z, norm.sqrt()


def upper_triangle(s: Tensor) -> Tensor:
    """The upper triangle of symmetric [G, f, f] as [G, f (f + 1) / 2], inner products kept (off-diagonal x sqrt 2)."""
    rows, columns = torch.triu_indices(s.shape[1], s.shape[2], device=s.device).unbind()
    scale = torch.where(rows == columns, 1.0, 2.0).to(s.dtype).sqrt()  # the root in the type of S, as exact as it
    return s[:, rows, columns] * scale


def _unit(values: Tensor) -> Tensor:
    """Each graph's values scaled to length one; all zeros stay zeros, with finite slopes."""
    flat = values.flatten(1)
    length = (flat.square().sum(1) + EPS).sqrt()
    return values / length.view(-1, *[1] * (values.dim() - 1))
