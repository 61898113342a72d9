"""The terms that each node adds to the result of a readout, for explanations.

Most readouts here are functions of sums over nodes, mostly linear ones:

    S = sum_i (A^T h_i) (B^T h_i)^T,    s = sum_i V^T g_i,    embedding = finish(S, s)

with A = B = W for bimap, A = U^T and B = I for m_attn, and A = I and B = mu for attn. If ``finish`` is linear, the
scores of a linear classifier are exact sums of contributions of the nodes. In CovPool the rows are centered, and in
AttnPool they are weighted, so the term of a node also depends on the other nodes. With a matrix root, B is multiplied
by S^(-1/2), which depends on all nodes as well.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from sopool.nn.aggr.normalize import normalize_pooled
from sopool.ops.message_passing.pairs import Pairs
from sopool.ops.segment.pairs import share_pairs

LINEAR = (None, "size")
"""Normalizations that are linear, so that the result remains a sum over nodes."""


class Products(NamedTuple):
    """The sum S of products, for one graph."""

    rows: Tensor
    """The node features h_i, ``[N, F]``."""
    left: Tensor
    """The matrix A, ``[F, P]``."""
    right: Tensor
    """The matrix B, ``[F, Q]``."""

    def pooled(self) -> Tensor:
        """Return S, ``[P, Q]``."""
        return (self.rows @ self.left).T @ (self.rows @ self.right)

    def shares(self, gradient: Tensor) -> Tensor:
        """Return the contribution of each node to <gradient, S>, ``[N]``."""
        return ((self.rows @ self.left @ gradient) * (self.rows @ self.right)).sum(1)

    def pairs(self, gradient: Tensor) -> Tensor:
        """Return the contribution of each pair of features to <gradient, S>, ``[F, F]``."""
        return (self.left @ gradient @ self.right.T) * (self.rows.T @ self.rows)

    def leading_node(self, first: int, second: int, gradient: Tensor) -> int:
        """Return the node that contributes most to a pair of features."""
        return _leading(self.rows[:, first] * self.rows[:, second])


class PairProducts(NamedTuple):
    """The matrices S_k of the pairs of nodes at each distance k, for one graph. They are quadratic in Z = H W."""

    rows: Tensor
    """The node features h_i, ``[N, F]``."""
    weight: Tensor
    """The matrix W, ``[F, R]``."""
    matrices: Callable[[Tensor], Tensor]
    """The function from Z ``[N, R]`` to the matrices ``[C, R, R]``."""
    listed: Pairs | None
    """The pairs of nodes; None if there are no lists, for walks."""

    def pooled(self) -> Tensor:
        """Return the matrices, ``[C, R, R]``."""
        return self.matrices(self.rows @ self.weight)

    def shares(self, gradient: Tensor) -> Tensor:
        """Return the contribution of each node to <gradient, S>, ``[N]``, with one half of each pair that it is in."""
        with torch.enable_grad():
            z = (self.rows @ self.weight).detach().requires_grad_()
            (derivative,) = torch.autograd.grad((gradient * self.matrices(z)).sum(), z)
        return (z.detach() * derivative).sum(1) / 2

    def pairs(self, gradient: Tensor) -> Tensor:
        """Return the contribution of each pair of features, at all distances together, to <gradient, S>, ``[F, F]``."""
        return ((self.weight @ gradient @ self.weight.T) * self.matrices(self.rows)).sum(0)

    def leading_node(self, first: int, second: int, gradient: Tensor) -> int:
        """Return the node that contributes most to a pair of features."""
        both = [first, second]
        columns = self.weight[both]
        of_both = columns @ gradient @ columns.T
        if first != second:
            of_both[:, [0, 1], [0, 1]] = 0
        else:
            of_both[:, 0, 1] = of_both[:, 1, 0] = of_both[:, 1, 1] = 0
        alone = self._replace(rows=self.rows[:, both], weight=torch.eye(2, dtype=columns.dtype, device=columns.device))
        return _leading(alone.shares(of_both))

    def node_pairs(self, gradient: Tensor) -> Tensor:
        """Return the contribution of each pair of ``listed`` to <gradient, S>, ``[P]``."""
        assert self.listed is not None
        return share_pairs(self.rows @ self.weight, self.listed, gradient).pairs


class Sums(NamedTuple):
    """The first-order sum s, for one graph."""

    rows: Tensor
    """The node features g_i, ``[N, F]``."""
    map: Tensor
    """The matrix V, ``[F, P]``."""

    def pooled(self) -> Tensor:
        """Return s, ``[P]``."""
        return self.rows.sum(0) @ self.map

    def shares(self, gradient: Tensor) -> Tensor:
        """Return the contribution of each node to <gradient, s>, ``[N]``."""
        return self.rows @ (self.map @ gradient)

    def leading_node(self, first: int) -> int:
        """Return the node that contributes most to a feature."""
        return _leading(self.rows[:, first])


class Terms(NamedTuple):
    """The sums that define a readout, and the function that turns them into the embedding."""

    second: Products | PairProducts | None
    first: Sums | None
    finish: Callable[..., Tensor]
    """A function of the pooled values of ``parts`` that returns the embedding ``[out_channels]``."""
    exact: bool
    """Whether ``finish`` is linear."""

    @property
    def parts(self) -> list[Products | PairProducts | Sums]:
        """The sums that are not ``None``."""
        return [part for part in (self.second, self.first) if part is not None]


def _leading(products: Tensor) -> int:
    """Return the node with the largest share of a sum over nodes ``[N]``."""
    return int((products * products.sum().sign()).argmax())


def normalize_alone(pooled: Tensor, nodes: int, how: str | None, rounding: float = 0.0) -> Tensor:
    """Normalize the pooled values of one graph with ``nodes`` nodes, see :mod:`sopool.nn.aggr.normalize`."""
    ptr = torch.tensor([0, nodes], device=pooled.device)
    return normalize_pooled(pooled.unsqueeze(0), ptr, how, rounding).squeeze(0)


def identity(x: Tensor) -> Tensor:
    """Return the identity matrix ``[F, F]`` for rows ``[N, F]``."""
    return torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
