"""Normalisations of second-order statistics, by name.

H^T H grows with the number of nodes and is dominated by its largest entries; each of these tames one of the two.
``"size"`` and ``"sqrt"`` make sense for any pooled values, ``"trace"`` and ``"matrix-sqrt"`` only for a symmetric
matrix.

Pooled values of any size that the type can hold are normalised as exactly as others, gradients included: each graph's
are divided by its largest one before they are squared or added up. Pooled values close to the type's smallest number
(in float32 below 1e-31, of features below 1e-15) count as zero. Where pooled values themselves are infinite (of
features beyond 1e19), nothing is known of them, and results are infinite or NaN, never a finite number.
"""

import torch
from torch import Tensor

from sopool.ops._products import product
from sopool.ops.segment.first_order import segment_sizes
from sopool.ops.segment.torch_backend import widen

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
        scale = _largest_on_diagonal(pooled)
        scaled = pooled / scale
        trace = scaled.diagonal(dim1=1, dim2=2).sum(1).view(-1, 1, 1) + rounding / scale
        return scaled / torch.where(trace <= _negligible(trace), 1.0, trace)
    if how == "sqrt":
        return _unit(signed_sqrt(pooled))
    return matrix_sqrt(pooled if how == "matrix-sqrt" else normalize_pooled(pooled, ptr, "size"))


def signed_sqrt(values: Tensor) -> Tensor:
    """sign(v) sqrt(|v|), as v / sqrt(|v| + eps): its gradient stays finite at the exact zeros that ReLU makes.

    A quotient, since the gradient of the reciprocal root is its cube, which vanishes for a v beyond 1e25.
    """
    return values / (values.abs() + EPS).sqrt()


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
    scale = _largest_on_diagonal(s)
    scaled = s / scale
    squares = scaled.square().sum((1, 2), keepdim=True)
    norm = torch.where(squares == 0, 1.0, squares).sqrt()
    identity = torch.eye(s.shape[1], dtype=s.dtype, device=s.device)
    y = scaled / norm
    z = identity.expand_as(s)
    for _ in range(iterations):
        t = 1.5 * identity - 0.5 * product(z, y)
        y = product(y, t)
        z = product(t, z)
    return y, z, norm.sqrt() * scale.sqrt()


def upper_triangle(s: Tensor) -> Tensor:
    """The upper triangle of symmetric [G, f, f] as [G, f (f + 1) / 2], inner products kept (off-diagonal x sqrt 2)."""
    rows, columns = torch.triu_indices(s.shape[1], s.shape[2], device=s.device).unbind()
    scale = torch.where(rows == columns, 1.0, 2.0).to(s.dtype).sqrt()  # the root in the type of S, as exact as it
    return s[:, rows, columns] * scale


def _unit(values: Tensor) -> Tensor:
    """Each graph's values scaled to length one; all zeros stay zeros, with finite gradients."""
    flat = values.flatten(1)
    scale = _scale(flat.detach().abs(), least=1.0).unsqueeze(1)
    scaled = flat / scale
    length = (scaled.square().sum(1, keepdim=True) + EPS / scale.square()).sqrt()
    return (scaled / length).view_as(values)


def _largest_on_diagonal(s: Tensor) -> Tensor:
    """What to divide positive semi-definite matrices by: no entry is larger in magnitude [G, f, f] -> [G, 1, 1]."""
    return _scale(s.detach().diagonal(dim1=1, dim2=2), least=_negligible(s)).view(-1, 1, 1)


def _scale(values: Tensor, least: float) -> Tensor:
    """The largest of each graph's values [G, n] -> [G]; 1 where it is not above ``least``, and NaN where it is NaN.

    It cancels out of what is computed with it, so it needs no gradient.
    """
    if not values.shape[1]:
        return values.new_ones(values.shape[0])
    largest = values.amax(1)
    return torch.where(largest <= least, 1.0, largest)


def _negligible(values: Tensor) -> float:
    """The number up to which pooled values count as zero: a gradient divides by them, and might overflow."""
    kind = torch.finfo(values.dtype)
    return kind.tiny / kind.eps
