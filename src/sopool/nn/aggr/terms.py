"""Readouts taken apart: what each node adds to what a graph is pooled into.

A readout here is a sum over nodes that something is made of, mostly nothing more than a vector:

    S = sum_i (A^T h_i) (B^T h_i)^T,    s = sum_i V^T g_i,    embedding = finish(S, s)

with A = B = W for bimap, A = U^T and B = I for m_attn, A = I and B = mu for attn. Where ``finish`` is linear, so is all
that a linear classifier makes of it, and every node has its exact share. The rows of CovPool are centred, those of
AttnPool weighted: there a node's term depends on the others by way of the mean, or of the softmax; with the root of the
matrix by way of S^(-1/2), which B is multiplied with.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from sopool.nn.aggr.normalize import normalize_pooled

LINEAR = (None, "size")
"""Normalisations that leave a sum over nodes a sum over nodes."""


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
        """What each node adds to <gradient, S> [n]."""
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
        """What each node adds to <gradient, s> [n]."""
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


def normalize_alone(pooled: Tensor, nodes: int, how: str | None, rounding: float = 0.0) -> Tensor:
    """Normalise what was pooled of one graph with so many nodes, see :mod:`sopool.nn.aggr.normalize`."""
    ptr = torch.tensor([0, nodes], device=pooled.device)
    return normalize_pooled(pooled.unsqueeze(0), ptr, how, rounding).squeeze(0)


def identity(x: Tensor) -> Tensor:
    """Return the map that leaves rows [n, f] as they are [f, f]."""
    return torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
