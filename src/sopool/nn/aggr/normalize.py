"""Normalizations of second-order statistics, by name.

H^T H grows with the number of nodes and is dominated by its largest entries; each normalization corrects one of these.
``"size"``, ``"sqrt"``, ``"norm"`` and ``"log"`` apply to all pooled values, ``"trace"`` and ``"matrix-sqrt"`` only to a
symmetric matrix.

To be exact for values of any magnitude, including gradients, the values of each graph are divided by the largest one
before they are squared or summed. Values close to the smallest number of the type (in float32 below 1e-31, from
features below 1e-15) count as zero. If pooled values are infinite (features above 1e19), the results are infinite or
NaN, never finite.
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
"""Normalizations, each with the variant that first divides by the number of nodes."""


def check_normalize(given: str | None, known: tuple[str | None, ...], owner: object) -> None:
    """Raise a ``ValueError`` unless ``given`` is one of ``known``."""
    if given in known:
        return
    why = " It needs a symmetric matrix, which this readout does not return." if given in FOR_MATRICES else ""
    name = type(owner).__name__
    raise ValueError(f"normalize={given!r} is not available for {name}.{why} Choose one of {list(known)}.")


def widen_for(how: str | None, x: Tensor) -> Tensor:
    """Convert half-precision values to float32 if a normalization follows, since sums over many nodes overflow."""
    return x if how is None else widen(x)


def normalize_pooled(pooled: Tensor, ptr: Tensor, how: str | None, rounding: float = 0.0) -> Tensor:
    """Normalize pooled values ``[G, ...]`` or matrices ``[G, F, F]``, which are not in half precision.

    ``rounding`` is an upper bound of the trace of a zero matrix after rounding, which must not be scaled up to 1.
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
    if how == "norm":
        return _unit(pooled)
    if how == "log":
        return signed_log(pooled)
    return matrix_sqrt(pooled if how == "matrix-sqrt" else normalize_pooled(pooled, ptr, "size"))


def signed_sqrt(values: Tensor) -> Tensor:
    """Compute sign(v) sqrt(abs(v)) as v / sqrt(abs(v) + eps), whose gradient is finite at zero.

    It is a quotient since the gradient of the reciprocal root contains its cube, which underflows for v above 1e25.
    """
    return values / (values.abs() + EPS).sqrt()


def signed_log(values: Tensor) -> Tensor:
    """Compute sign(v) log(1 + abs(v)), whose derivative at zero is 1."""
    above = values.relu()
    return above.log1p() - (above - values).log1p()  # one of the two is log 1


def matrix_sqrt(s: Tensor, iterations: int = ITERATIONS) -> Tensor:
    r"""Compute the square root of positive semi-definite matrices ``[G, F, F]`` by Newton-Schulz iterations.

    .. math::
        Y_0 = S / \|S\|_F, \; Z_0 = I, \quad
        T = \tfrac{1}{2} (3 I - Z Y), \; Y \leftarrow Y T, \; Z \leftarrow T Z,
        \quad \sqrt{S} \approx \sqrt{\|S\|_F} \, Y

    Only matrix products are needed, no eigendecomposition, so gradients are finite for equal and for zero eigenvalues
    (n < F). An eigenvalue :math:`\lambda` is exact once :math:`1.5^{iterations}` is well above :math:`(\|S\|_F /
    \lambda)^{1/2}`; smaller ones are underestimated but keep their sign. Half-precision input is computed in float32.
    The method follows
    `"Towards Faster Training of Global Covariance Pooling Networks by Iterative Matrix Square Root Normalization"
    <https://arxiv.org/abs/1712.01034>`_,
    which scales by the trace.
    """
    y, _, root = _newton_schulz(s, iterations)
    return (y * root).to(s.dtype)


def inverse_matrix_sqrt(s: Tensor, iterations: int = ITERATIONS) -> Tensor:
    """Return the matrix that, multiplied by S, gives :func:`matrix_sqrt`; zero eigenvalues are as exact as others."""
    _, z, root = _newton_schulz(s, iterations)
    return (z / root).to(s.dtype)


def _newton_schulz(s: Tensor, iterations: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return Y, Z and the square root of the norm."""
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
    """Return the upper triangle of symmetric matrices, ``[G, F, F]`` -> ``[G, F (F + 1) / 2]``.

    Off-diagonal entries are multiplied by sqrt(2), which preserves inner products.
    """
    rows, columns = torch.triu_indices(s.shape[1], s.shape[2], device=s.device).unbind()
    scale = torch.where(rows == columns, 1.0, 2.0).to(s.dtype).sqrt()  # computed in the type of S
    return s[:, rows, columns] * scale


def _unit(values: Tensor) -> Tensor:
    """Scale the values of each graph to unit length; zeros remain zeros, with finite gradients."""
    flat = values.flatten(1)
    scale = _scale(flat.detach().abs(), least=1.0).unsqueeze(1)
    scaled = flat / scale
    length = (scaled.square().sum(1, keepdim=True) + EPS / scale.square()).sqrt()
    return (scaled / length).view_as(values)


def _largest_on_diagonal(s: Tensor) -> Tensor:
    """Return the largest diagonal entry of positive semi-definite matrices, ``[G, F, F]`` -> ``[G, 1, 1]``.

    No entry of the matrix is larger in magnitude.
    """
    return _scale(s.detach().diagonal(dim1=1, dim2=2), least=_negligible(s)).view(-1, 1, 1)


def _scale(values: Tensor, least: float) -> Tensor:
    """Return the largest value of each graph, ``[G, n]`` -> ``[G]``, or 1 if it is at most ``least``.

    It is NaN if a value is NaN. It cancels out of the results, so it needs no gradient.
    """
    if not values.shape[1]:
        return values.new_ones(values.shape[0])
    largest = values.amax(1)
    return torch.where(largest <= least, 1.0, largest)


def _negligible(values: Tensor) -> float:
    """Return the number up to which pooled values count as zero, since gradients that divide by them might overflow."""
    kind = torch.finfo(values.dtype)
    return kind.tiny / kind.eps
