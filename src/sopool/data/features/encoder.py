"""Define what all encoders of nodes have in common."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from sopool.data.features.node_features import GraphSelection, NodeFeatures, nodes_of
from sopool.data.features.numbers import Moments, Numbers, moments_from_json
from sopool.data.graphs import PackedGraphs
from sopool.data.names import Needed
from sopool.errors import DataError

E = TypeVar("E", bound="Encoder")
N = TypeVar("N", bound="NumberEncoder")


Fields = dict[str, Needed]
"""Fields of :class:`~sopool.data.Graph` that graphs must have, each with its number of columns or their names."""


class Encoder(ABC):
    """Base class of encoders, which turn the nodes of graphs into features.

    Call :meth:`fit` with the training graphs, then :meth:`transform` with any graphs.
    """

    kind: ClassVar[str]
    saved: ClassVar[tuple[str, ...]] = ()
    """The keys of :meth:`to_json` other than ``kind``."""
    _width: int | None = None

    @property
    def width(self) -> int:
        """The number of columns."""
        return self._check_fitted()

    @property
    def fields(self) -> Fields:
        """The fields of :class:`~sopool.data.Graph` that graphs must have, with their columns, see :data:`Fields`."""
        return {}

    @property
    def moments(self) -> Moments | None:
        """The moments of the D real-valued columns, ``[D]`` each; None if there are no such columns."""
        return None

    @property
    def number_columns(self) -> list[int]:
        """The indices of the real-valued columns."""
        return []

    @property
    def standardizes(self) -> bool:
        """Whether columns are standardized."""
        return False

    @property
    @abstractmethod
    def feature_names(self) -> list[str]:
        """The name of each column."""

    @property
    def recipe(self) -> str:
        """A text that identifies the features of a run: numbers are standardized by each model's training graphs."""
        return f"{self!r}, standardized for each model" if self.standardizes else repr(self)

    def fit(self: E, store: PackedGraphs, graphs: GraphSelection = None) -> E:
        """Learn from the graphs of a store and return the encoder.

        Args:
            store: The graphs.
            graphs: The indices of the graphs to learn from, or a mask. Default: None, all graphs.
        """
        self._width = self._learn(store, nodes_of(store, graphs))
        return self

    def transform(self, store: PackedGraphs) -> NodeFeatures:
        """Return the features of all nodes of a store, on its device.

        Args:
            store: The graphs.
        """
        return self._encode(store, self.width)

    def to_json(self) -> dict[str, Any]:
        """Return the fitted encoder as a dictionary for :func:`encoder_from_json`."""
        self._check_fitted()
        return {"kind": self.kind, **self._state()}

    def _check_fitted(self) -> int:
        if self._width is None:
            raise RuntimeError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        return self._width

    @abstractmethod
    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        """Learn from the nodes in a mask ``[N]`` and return the number of columns."""

    @abstractmethod
    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures: ...

    def _state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.saved}

    @classmethod
    @abstractmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        """Create a fitted encoder from the values stored under the names in ``saved``, which are not checked yet."""


class NumberEncoder(Encoder):
    """Base class of encoders of numbers, standardized over the nodes of the fitted graphs.

    Columns that are constant in the fitted graphs are centered only.
    """

    saved: ClassVar[tuple[str, ...]] = ("mean", "std")
    what: ClassVar[str]
    """The word for the numbers in error messages."""
    rounding: ClassVar[float] = 0.0
    """The standard deviation up to which a column counts as constant, because rounding alone may explain it. If it is
    zero, columns of zeros and ones are not standardized."""

    def __init__(self) -> None:
        self.mean: list[float] = []
        self.std: list[float] = []

    @property
    def moments(self) -> Moments:
        """The mean and the standard deviation of each column."""
        return Moments(*torch.tensor([self.mean, self.std], dtype=torch.float64))

    @property
    def number_columns(self) -> list[int]:
        """All columns."""
        return list(range(self.width))

    @property
    def standardizes(self) -> bool:
        """Whether columns are standardized."""
        return True

    @abstractmethod
    def _numbers(self, store: PackedGraphs) -> Tensor:
        """Return the numbers of each node of a store, float32 ``[N, F]``, on its device."""

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        values = self._numbers(store)[nodes]
        if not len(values):
            raise DataError(
                f"the graphs of {store.name} to fit on have no nodes, so there are no {self.what} to learn."
            )
        moments = Numbers.of(values, self.standardizes, self.rounding).moments
        self.mean = moments.shift.tolist()
        self.std = moments.scale.tolist()
        return len(self.mean)

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        values = self._numbers(store)
        codes = torch.empty(len(values), 0, dtype=torch.int32, device=store.device)
        columns = torch.arange(width, device=store.device)
        numbers = Numbers.given(values, self.moments, self.standardizes, self.rounding)
        return NodeFeatures(codes, columns, numbers, columns)

    def _restored(self: N, state: dict[str, Any]) -> N:
        """Take the mean and the standard deviation from a file, and return the encoder."""
        moments = moments_from_json({name: state[name] for name in ("mean", "std")}, "encoder")
        self.mean = moments.shift.tolist()
        self.std = moments.scale.tolist()
        self._width = len(self.mean)
        return self
