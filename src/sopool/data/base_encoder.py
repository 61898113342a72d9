"""What every encoder of nodes has in common."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from torch import Tensor

from sopool.data.features import Graphs, NodeFeatures, nodes_of
from sopool.data.store import PackedGraphs

E = TypeVar("E", bound="Encoder")


class Encoder(ABC):
    """Turns nodes into features. What it needs to know, it learns from the graphs that it is fitted on."""

    kind: ClassVar[str]
    saved: ClassVar[tuple[str, ...]] = ()
    """What :meth:`to_json` holds besides the kind."""
    _width: int | None = None

    @property
    def width(self) -> int:
        """How many columns it makes."""
        return self._check_fitted()

    @property
    def fields(self) -> dict[str, int | None]:
        """What the nodes of a graph must have: the names of :class:`Graph`, with the width of attributes."""
        return {}

    def fit(self: E, store: PackedGraphs, graphs: Graphs = None) -> E:
        """Learn from some graphs of a store, or from all."""
        self._width = self._learn(store, nodes_of(store, graphs))
        return self

    def transform(self, store: PackedGraphs) -> NodeFeatures:
        """The features of all nodes of a store, on its device."""
        return self._encode(store, self.width)

    def to_json(self) -> dict[str, Any]:
        """Everything it has learned, for :func:`encoder_from_json`."""
        self._check_fitted()
        return {"kind": self.kind, **self._state()}

    def _check_fitted(self) -> int:
        if self._width is None:
            raise RuntimeError(f"This {type(self).__name__} has not seen any graphs yet: call fit first.")
        return self._width

    @abstractmethod
    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        """Learn from the nodes in the mask [N]; the width."""

    @abstractmethod
    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures: ...

    def _state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.saved}

    @classmethod
    @abstractmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        """From what is stored under the names in ``saved``, which may be anything."""
