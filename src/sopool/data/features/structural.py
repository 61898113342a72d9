"""Encode the position of nodes in their graph, by return probabilities of random walks or by the heat kernel."""

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from sopool.data.analysis.walks import heat_diagonals, return_probabilities
from sopool.data.features.encoder import NumberEncoder
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError

S = TypeVar("S", bound="StructuralEncoder")

# Not in files, which graphs that are predicted only once would fill.
_computed: WeakKeyDictionary[PackedGraphs, dict[tuple[str, int], Tensor]] = WeakKeyDictionary()


class StructuralEncoder(NumberEncoder):
    """Base class of encoders that compute numbers from the edges alone, once for each store while it is in memory.

    Args:
        size: The number of columns.
    """

    rounding = 1e-5
    argument: ClassVar[str]
    """The name of the argument of the encoder, the number of columns."""
    most: ClassVar[int]
    """The largest number of columns."""

    def __init__(self, size: int) -> None:
        super().__init__()
        if type(size) is not int or not 1 <= size <= self.most:
            raise SettingError(f"{self.argument} is {size!r}, expected an integer from 1 to {self.most}.")
        self.size = size

    def __repr__(self) -> str:
        state = "not fitted, " if self._width is None else ""
        return f"{type(self).__name__}({state}{self.argument}={self.size})"

    @abstractmethod
    def _compute(self, store: PackedGraphs) -> np.ndarray:
        """Return the numbers of each node of a store on a CPU, float32 ``[N, F]``."""

    def _numbers(self, store: PackedGraphs) -> Tensor:
        known = _computed.setdefault(store, {})
        key = (self.kind, self.size)
        if key not in known:
            known[key] = torch.from_numpy(self._compute(store.to("cpu"))).to(store.device)
        return known[key]

    def _state(self) -> dict[str, Any]:
        return {self.argument: self.size, "mean": self.mean, "std": self.std}

    @classmethod
    def _load(cls: type[S], state: dict[str, Any]) -> S:
        try:
            encoder = cls(state[cls.argument])
        except SettingError as error:
            raise DataError(f"encoder: {error}") from error
        if encoder._restored(state).width != encoder.size:
            raise DataError(f"encoder: found {encoder.width} means, expected {encoder.size} as {cls.argument} says.")
        return encoder


class RandomWalkEncoder(StructuralEncoder):
    r"""The probability that a random walk is back at its node after 1, 2, ... steps, standardized.

    The columns are the diagonals of :math:`(D^{-1} A)^t` for :math:`t = 1, \dots, \text{steps}`, with the adjacency
    matrix A and the out-degrees D. They are equal for nodes that a symmetry of the graph exchanges, and they tell
    apart some graphs that message passing alone cannot, such as two triangles and a hexagon.

    A walk follows the edges out of its node with equal probability, in their direction. It chooses a repeated edge as
    many times more often as it is repeated, and may stay at a node with a self-loop. A walk ends at a node without an
    edge out of it, so isolated nodes have probability 0. Edge weights and labels are not used.

    Each column is standardized over the nodes of the fitted graphs, as by :class:`~sopool.data.AttributeEncoder`; one
    that is constant there, such as that of step 1 without self-loops, is centered only. The probabilities are computed
    on the CPU, in some ``2 * steps * n * (n + m)`` operations for a graph of n nodes and m edges, once for each store.
    Graphs may have up to 50,000 nodes.

    From "Graph Neural Networks with Learnable Structural and Positional Representations"
    (`arXiv:2110.07875 <https://arxiv.org/abs/2110.07875>`_).

    Args:
        steps: The number of steps, which is the number of columns, at most 256. Default: 16.

    Examples:
        >>> from sopool.data import RandomWalkEncoder, load
        >>> encoder = RandomWalkEncoder(steps=3).fit(load("MUTAG"))
        >>> encoder.feature_names
        ['return after 1 step', 'return after 2 steps', 'return after 3 steps']
    """

    kind = "random-walk"
    saved = ("steps", *NumberEncoder.saved)
    what = "return probabilities"
    argument = "steps"
    most = 256

    def __init__(self, steps: int = 16) -> None:
        super().__init__(steps)

    @property
    def feature_names(self) -> list[str]:
        """The number of steps of each column."""
        return [f"return after {step} step{'s' * (step > 1)}" for step in range(1, self.width + 1)]

    def _compute(self, store: PackedGraphs) -> np.ndarray:
        return return_probabilities(store, self.size)


class LaplacianEncoder(StructuralEncoder):
    r"""The heat that stays at its node after the times 1, 2, 4, ..., standardized: the diagonal of the heat kernel.

    The columns are the diagonals of :math:`\exp(-t L)` for :math:`t = 2^0, \dots, 2^{\text{scales} - 1}`, where
    :math:`L = I - D^{-1/2} A D^{-1/2}` is the symmetric normalized Laplacian. A short time shows the neighborhood of a
    node, a long time the size and the bottlenecks of its connected component: at last,
    :math:`d_i / \sum_j d_j` is left.

    With the eigenvalues :math:`\lambda_k` and the eigenvectors :math:`u_k` of L, a column is
    :math:`\sum_k \exp(-t \lambda_k) u_{ki}^2`. Eigenvectors themselves are not well-defined features: their signs are
    arbitrary, and so is the basis where several share an eigenvalue, as in most symmetric graphs and many molecules.
    Features and predictions would depend on the machine and on the order of nodes. The heat kernel depends on neither,
    changes continuously with L, and is equal for nodes that a symmetry of the graph exchanges.

    Edges count in both directions, and as often as they are given; a self-loop counts once. L is 0 at an
    isolated node, which keeps its heat of 1. Edge weights and labels are not used.

    Each column is standardized over the nodes of the fitted graphs, as by :class:`~sopool.data.AttributeEncoder`; one
    that is constant there is centered only. The heat is computed on the CPU, to single precision, once for each store.
    The time grows with ``n * (n + m)`` for a graph of n nodes and m edges and with the square root of the longest time
    t; by default it is some five times that of :class:`~sopool.data.RandomWalkEncoder`. Graphs may have up to 50,000
    nodes.

    From "A Concise and Provably Informative Multi-Scale Signature Based on Heat Diffusion"
    (`doi:10.1111/j.1467-8659.2009.01515.x <https://doi.org/10.1111/j.1467-8659.2009.01515.x>`_).

    Args:
        scales: The number of times, which is the number of columns, at most 16. Default: 8.

    Examples:
        >>> from sopool.data import LaplacianEncoder, load
        >>> encoder = LaplacianEncoder(scales=3).fit(load("MUTAG"))
        >>> encoder.feature_names
        ['heat after time 1', 'heat after time 2', 'heat after time 4']
    """

    kind = "laplacian"
    saved = ("scales", *NumberEncoder.saved)
    what = "heat kernels"
    argument = "scales"
    most = 16

    def __init__(self, scales: int = 8) -> None:
        super().__init__(scales)

    @property
    def feature_names(self) -> list[str]:
        """The time of each column."""
        return [f"heat after time {2**scale}" for scale in range(self.width)]

    def _compute(self, store: PackedGraphs) -> np.ndarray:
        return heat_diagonals(store, [2.0**scale for scale in range(self.size)])
