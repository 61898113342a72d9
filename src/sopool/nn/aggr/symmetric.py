"""The options shared by readouts whose result is a symmetric matrix."""

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
"""Normalisations by a root, and what comes before it. S^(1/2) = S F, with F = S^(-1/2), is a sum over nodes as well."""


class SymmetricAggregation(SegmentAggregation):
    """Base of readouts that pool rows Z = H W (or H) into a symmetric matrix S, Z^T Z unless overridden.

    S is normalised, then flattened; the first moment is appended if asked for.

    Args:
        channels: Number of node features.
        rank: Width of the learned mapping W [channels, rank]; None for no mapping.
        triangle: Keep the upper triangle only, off-diagonal entries times sqrt 2, so that inner products stay.
        normalize: None (the paper), ``"size"`` (S / n), ``"trace"`` (S / tr S), ``"sqrt"`` (signed square root of each
            entry, then length 1), ``"matrix-sqrt"`` (S^(1/2), by Newton-Schulz iterations) or ``"size+matrix-sqrt"``.
        moments: ``(2,)`` (the paper) or ``(1, 2)``, which appends the first moment of Z: its sum, or its mean
            with any ``normalize``.
        lr_scale: How fast W learns beside all else; 1 in the paper. W is ``lr_scale`` times the parameter, which is
            drawn so much larger: a step of Adam, whose length does not follow the gradient's, moves W so much less.
            (A weight decay that is added to the gradient holds it down the more, by 1 / lr_scale^2.)
    """

    rounding = 0.0
    """What the trace of an S that is 0 may come out as."""

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
            raise ValueError(f"moments={moments!r}: choose (2,), as the paper, or (1, 2) to append the first moment.")
        if not 0 < lr_scale < float("inf"):
            raise ValueError(f"lr_scale={lr_scale!r}: it must be a positive number. To leave W as drawn, freeze it.")
        self.rank = rank
        self.lr_scale = lr_scale
        self.triangle = triangle
        self.normalize = normalize
        self.weight = None
        if channels is not None and rank is not None:
            self.weight = torch.nn.Parameter(torch.empty(channels, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw W anew, as ``torch.nn.Linear`` does."""
        if self.channels is not None:
            uniform(self.channels * self.lr_scale**2, self.weight)

    @property
    def mapping(self) -> Tensor | None:
        """W, where there is one."""
        return self.weight if self.weight is None or self.lr_scale == 1 else self.lr_scale * self.weight

    def second_moment(self, z: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """S [G, width, width]."""
        return segment_gram(z, z, ptr, order=order)

    @property
    def width(self) -> int | None:
        """The number of rows and columns of S."""
        return self.channels if self.rank is None else self.rank

    @property
    def out_channels(self) -> int | None:
        """The width of the output, None where it depends on the input."""
        if self.width is None:
            return None
        second = self.width * (self.width + 1) // 2 if self.triangle else self.width**2
        return second + (self.width if 1 in self.moments else 0)

    def pool(self, x: Tensor, ptr: Tensor, order: Tensor | None = None) -> Tensor:
        """Map, pool, normalise, flatten."""
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
        """Whether Z^T Z is all that is wanted of Z: then the mapping is part of the product."""
        return self.moments == (2,) and inherits(self, SymmetricAggregation, "second_moment")

    def _finish(self, s: Tensor, ptr: Tensor) -> Tensor:
        s = normalize_pooled(s, ptr, self.normalize, self.rounding)
        return upper_triangle(s) if self.triangle else s.flatten(1)

    def terms(self, x: Tensor) -> Terms | None:
        """Take one graph apart: A = B = W."""
        return self._terms(x, x) if inherits(self, SymmetricAggregation, "second_moment") else None

    def _terms(self, x: Tensor, rows: Tensor) -> Terms:
        """Take S of ``rows`` apart, and the first moment of ``x``."""
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
