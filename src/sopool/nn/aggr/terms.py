"""Readouts taken apart: what each node adds to what a graph is pooled into.

A readout here is a sum over nodes that something is made of, mostly nothing more than a vector:

    S = sum_i (A^T h_i) (B^T h_i)^T,    s = sum_i V^T g_i,    embedding = finish(S, s)

with A = B = W for bimap, A = U^T and B = I for m_attn, A = I and B = mu for attn. Where ``finish`` is linear, so is all
that a linear classifier makes of it, and every node has its exact share. The rows of CovPool are centred, those of
AttnPool weighted: there a node's term depends on the others by way of the mean, or of the softmax; with the root of the
matrix by way of S^(-1/2), which B is multiplied with.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import torch
from torch import Tensor

from sopool.nn.aggr.attentional import AttentionalSecondOrderAggregation
from sopool.nn.aggr.base import inherits
from sopool.nn.aggr.covariance import CovarianceAggregation
from sopool.nn.aggr.first_order import MeanAggregation, SumAggregation
from sopool.nn.aggr.multi_head import MultiHeadSecondOrderAggregation
from sopool.nn.aggr.normalize import inverse_matrix_sqrt, normalize_pooled, upper_triangle
from sopool.nn.aggr.softmax_attention import SoftmaxAttentionAggregation
from sopool.nn.aggr.symmetric import SymmetricAggregation

LINEAR = (None, "size")
"""Normalisations that leave a sum over nodes a sum over nodes."""
ROOTS = {"matrix-sqrt": None, "size+matrix-sqrt": "size"}
"""Those that take a root, and what comes before it. S^(1/2) = S F, with F = S^(-1/2), is a sum over nodes as well."""
WAY = ("__call__", "forward", "_pool", "pool")
"""The methods that rows pass through."""


class Products(NamedTuple):
    """S, of one graph."""

    rows: Tensor
    """h_i [n, f]."""
    left: Tensor
    """A [f, p]."""
    right: Tensor
    """B [f, q]."""

    def pooled(self) -> Tensor:
        """S [p, q]."""
        return (self.rows @ self.left).T @ (self.rows @ self.right)

    def shares(self, gradient: Tensor) -> Tensor:
        """What each node adds to <slope, S> [n]."""
        return ((self.rows @ self.left @ gradient) * (self.rows @ self.right)).sum(1)

    def pairs(self, gradient: Tensor) -> Tensor:
        """What each pair of features adds to it [f, f]."""
        return (self.left @ gradient @ self.right.T) * (self.rows.T @ self.rows)


class Sums(NamedTuple):
    """s, of one graph."""

    rows: Tensor
    """g_i [n, f]."""
    map: Tensor
    """V [f, s]."""

    def pooled(self) -> Tensor:
        """s [s]."""
        return self.rows.sum(0) @ self.map

    def shares(self, gradient: Tensor) -> Tensor:
        """What each node adds to <slope, s> [n]."""
        return self.rows @ (self.map @ gradient)


class Terms(NamedTuple):
    """The sums that a readout is made of, and how."""

    second: Products | None
    first: Sums | None
    finish: Callable[..., Tensor]
    """(the pooled values of those that are there) -> embedding [out]."""
    exact: bool
    """Whether ``finish`` is linear."""

    @property
    def parts(self) -> list[Products | Sums]:
        """Those that are there."""
        return [part for part in (self.second, self.first) if part is not None]


def terms_of(readout: torch.nn.Module, x: Tensor) -> Terms | None:
    """A readout of one graph's nodes [n, f], taken apart; None where it is no such sum, as far as is known.

    Of a class of a user's own that derives from one here and has another formula nothing is known.
    """
    kind = next(kind for kind in type(readout).__mro__ if kind in _terms.registry)
    return _terms(readout, x) if inherits(readout, kind, *WAY) else None


@singledispatch
def _terms(readout: torch.nn.Module, x: Tensor) -> Terms | None:
    return None


@_terms.register
def _(readout: SumAggregation, x: Tensor) -> Terms:
    return Terms(None, Sums(x, _identity(x)), lambda s: s, True)


@_terms.register
def _(readout: MeanAggregation, x: Tensor) -> Terms:
    return Terms(None, Sums(x, _identity(x)), lambda s: s / max(1, len(x)), True)


@_terms.register
def _(readout: SoftmaxAttentionAggregation, x: Tensor) -> Terms:
    return Terms(None, Sums(x * (x @ readout.query).softmax(0), _identity(x)), lambda s: s, True)


@_terms.register
def _(readout: AttentionalSecondOrderAggregation, x: Tensor) -> Terms:
    bias = readout.query_bias

    def finish(pooled: Tensor, first: Tensor | None = None) -> Tensor:
        vector = pooled.squeeze(1) if first is None else pooled.squeeze(1) + first
        return _normalize(vector, x, readout.normalize)

    first = None if bias is None else Sums(x, _identity(x) * bias)
    return Terms(Products(x, _identity(x), readout.query), first, finish, readout.normalize in LINEAR)


@_terms.register
def _(readout: MultiHeadSecondOrderAggregation, x: Tensor) -> Terms:
    products = Products(x, readout.queries.T, _identity(x))
    return Terms(
        products, None, lambda pooled: _normalize(pooled.flatten(), x, readout.normalize), readout.normalize in LINEAR
    )


@_terms.register
def _(readout: SymmetricAggregation, x: Tensor) -> Terms | None:
    is_covariance = inherits(readout, CovarianceAggregation, "second_moment")
    if not (is_covariance or inherits(readout, SymmetricAggregation, "second_moment")):
        return None
    weight = _identity(x) if readout.mapping is None else readout.mapping
    centred = x - x.mean(0) if is_covariance and len(x) else x
    products = Products(centred, weight, weight)
    linear = readout.normalize
    if linear in ROOTS:
        linear = ROOTS[linear]
        sized = _normalize(products.pooled(), x, linear).unsqueeze(0)
        products = products._replace(right=weight @ inverse_matrix_sqrt(sized).squeeze(0))

    def finish(pooled: Tensor, first: Tensor | None = None) -> Tensor:
        matrix = _normalize(pooled, x, linear, readout.rounding)
        out = upper_triangle(matrix.unsqueeze(0)).squeeze(0) if readout.triangle else matrix.flatten()
        if first is None:
            return out
        return torch.cat([out, first if readout.normalize is None else first / max(1, len(x))])

    first = Sums(x, weight) if 1 in readout.moments else None
    return Terms(products, first, finish, linear in LINEAR)


def _normalize(pooled: Tensor, x: Tensor, how: str | None, rounding: float = 0.0) -> Tensor:
    ptr = torch.tensor([0, len(x)], device=x.device)
    return normalize_pooled(pooled.unsqueeze(0), ptr, how, rounding).squeeze(0)


def _identity(x: Tensor) -> Tensor:
    return torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
