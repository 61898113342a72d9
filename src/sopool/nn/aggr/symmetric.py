"""The base class of readouts whose result is a symmetric matrix."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import SegmentAggregation, inherits
from sopool.nn.aggr.normalize import (
    FOR_MATRICES,
    check_normalize,
    inverse_matrix_sqrt,
    normalize_pooled,
    upper_triangle,
    widen_for,
)
from sopool.nn.aggr.terms import LINEAR, Products, Sums, Terms, identity, normalize_alone
from sopool.nn.layers import project
from sopool.ops import segment_bilinear, segment_gram, segment_mean, segment_sum
from sopool.ops.segment.gram import promote

ROOTS = {"matrix-sqrt": None, "size+matrix-sqrt": "size"}
"""Normalizations by a matrix root, each with the linear one that comes first.

S^(1/2) = S F with F = S^(-1/2) is also a sum over nodes.
"""


class SymmetricAggregation(SegmentAggregation):
    """Base class of readouts that pool Z = H W (or Z = H) into a symmetric matrix S.

    S is Z^T Z unless a subclass overrides :meth:`second_moment`. It is normalized, then flattened.

    Args:
        channels: Number of node features ``F``. If ``None``, any width is accepted.
        rank: Width ``R`` of the learned mapping W ``[F, R]``. Default: ``None``, for no mapping.
        triangle: Whether to keep only the upper triangle, with off-diagonal entries multiplied by sqrt(2), which
            preserves inner products. Default: ``False``.
        normalize: ``None`` (the paper's formula), ``"size"`` (S / n), ``"trace"`` (S / tr S), ``"sqrt"`` (signed square
            root of each entry, then scaled to unit length), ``"matrix-sqrt"`` (S^(1/2), by Newton-Schulz iterations) or
            ``"size+matrix-sqrt"`` ((S / n)^(1/2)). Default: ``None``.
        moments: ``(2,)``, or ``(1, 2)`` to append the first moment of Z: its mean if ``normalize`` is given, otherwise
            its sum. Default: ``(2,)``.
        lr_scale: Learning rate of W relative to the other parameters when training with Adam. W is ``lr_scale`` times
            the stored parameter, which is initialized correspondingly larger. An L2 penalty on the parameter acts more
            strongly on W, by a factor of 1 / lr_scale^2. Default: ``1.0``.
    """

    rounding = 0.0
    """An upper bound of the trace of a zero matrix after rounding."""

    def __init__(
        self,
        channels: int | None,
        rank: int | None = None,
        triangle: bool = False,
        normalize: str | None = None,
        moments: Sequence[int] = (2,),
        lr_scale: float = 1.0,
    ) -> None:
        super().__init__(channels)
        if rank is not None and rank < 1:
            raise ValueError(f"rank={rank}: it must be at least 1.")
        check_normalize(normalize, FOR_MATRICES, self)
        self.moments = tuple(moments) if isinstance(moments, Iterable) else ()
        if self.moments not in ((2,), (1, 2)):
            raise ValueError(
                f"moments={moments!r}: choose (2,), as in the paper, or (1, 2) to append the first moment."
            )
        if not 0 < lr_scale < float("inf"):
            raise ValueError(f"lr_scale={lr_scale!r}: it must be a positive number. To keep W fixed, freeze it.")
        self.rank = rank
        self.lr_scale = lr_scale
        self.triangle = triangle
        self.normalize = normalize
        self.weight = None
        if channels is not None and rank is not None:
            self.weight = torch.nn.Parameter(torch.empty(channels, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize W as ``torch.nn.Linear`` does."""
        if self.channels is not None:
            uniform(self.channels * self.lr_scale**2, self.weight)

    @property
    def mapping(self) -> Tensor | None:
        """The mapping W; ``None`` if there is none."""
        return self.weight if self.weight is None or self.lr_scale == 1 else self.lr_scale * self.weight

    def second_moment(self, z: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Return S, ``[G, width, width]``."""
        return segment_gram(z, z, ptr, order=order)

    @property
    def width(self) -> int | None:
        """The number of rows and columns of S; ``None`` if it depends on the input."""
        return self.channels if self.rank is None else self.rank

    @property
    def out_channels(self) -> int | None:
        """The width of the output; ``None`` if it depends on the input."""
        if self.width is None:
            return None
        second = self.width * (self.width + 1) // 2 if self.triangle else self.width**2
        return second + (self.width if 1 in self.moments else 0)

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Map, pool, normalize and flatten."""
        dtype = promote(x).dtype
        w = self.mapping
        x = widen_for(self.normalize, x)
        w = None if w is None else widen_for(self.normalize, w)
        if w is not None and w.dim() == 2 and self._only_products:
            return self._finish(segment_bilinear(x, w, ptr, order=order), ptr).to(dtype)
        z = x if w is None else project(x, w, ptr, order)
        out = self._finish(self.second_moment(z, ptr, order), ptr)
        if 1 not in self.moments:
            return out.to(dtype)
        first = segment_sum(z, ptr, order) if self.normalize is None else segment_mean(z, ptr, order)
        return torch.cat([out, first], dim=1).to(dtype)

    @property
    def _only_products(self) -> bool:
        """Whether the result depends on Z only through Z^T Z, so that one operator can compute it from H and W."""
        return self.moments == (2,) and inherits(self, SymmetricAggregation, "second_moment")

    def _finish(self, s: Tensor, ptr: Tensor) -> Tensor:
        s = normalize_pooled(s, ptr, self.normalize, self.rounding)
        return upper_triangle(s) if self.triangle else s.flatten(1)

    def terms(self, x: Tensor) -> Terms | None:
        """Return the terms of one graph: A = B = W."""
        return self._terms(x, x) if inherits(self, SymmetricAggregation, "second_moment") else None

    def _terms(self, x: Tensor, rows: Tensor) -> Terms:
        """Return the terms of S for ``rows``, and of the first moment for ``x``."""
        weight = identity(x) if self.mapping is None else self.mapping
        products = Products(rows, weight, weight)
        linear = self.normalize
        if linear in ROOTS:
            linear = ROOTS[linear]
            sized = normalize_alone(products.pooled(), len(x), linear).unsqueeze(0)
            products = products._replace(right=weight @ inverse_matrix_sqrt(sized).squeeze(0))

        def finish(pooled: Tensor, first: Tensor | None = None) -> Tensor:
            matrix = normalize_alone(pooled, len(x), linear, self.rounding)
            out = upper_triangle(matrix.unsqueeze(0)).squeeze(0) if self.triangle else matrix.flatten()
            if first is None:
                return out
            return torch.cat([out, first if self.normalize is None else first / max(1, len(x))])

        first = Sums(x, weight) if 1 in self.moments else None
        return Terms(products, first, finish, linear in LINEAR)
