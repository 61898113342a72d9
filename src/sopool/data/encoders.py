"""Node features: an encoder is fitted on some graphs and turns the nodes of any store into columns of numbers."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from sopool.data.base_encoder import Encoder
from sopool.data.edges import degrees
from sopool.data.errors import DataError
from sopool.data.features import NodeFeatures
from sopool.data.store import PackedGraphs


class _OneHotEncoder(Encoder):
    """One column for each value seen in fitting, and with ``unknown`` a last one for all others.

    Without it a value that was not seen is an error: fit on all graphs, as the paper's code does.
    """

    saved = ("unknown", "values")
    what: ClassVar[str]

    def __init__(self, unknown: bool = True) -> None:
        self.unknown = unknown
        self.values: list[str | int] = []

    def __repr__(self) -> str:
        values = "not fitted" if self._width is None else f"{len(self.values)} values"
        return f"{type(self).__name__}({values}, unknown={self.unknown})"

    @abstractmethod
    def _codes(self, store: PackedGraphs) -> tuple[Tensor, Sequence[str | int]]:
        """A number for each node [N], int64, and the values that these numbers stand for."""

    @staticmethod
    @abstractmethod
    def _valid(value: Any) -> bool:
        """Whether this, from a file, can be a value."""

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        codes, names = self._codes(store)
        values = [names[code] for code in codes[nodes].unique().tolist()]
        if not values:
            raise DataError(f"the graphs of {store.name} to fit on have no nodes: there is no {self.what} to learn.")
        self.values = sorted(values, key=lambda value: (isinstance(value, str), value))
        return len(values) + self.unknown

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        codes, names = self._codes(store)
        known = len(self.values)
        column = {value: i for i, value in enumerate(self.values)}
        table = torch.tensor([column.get(name, known) for name in names], dtype=torch.int32, device=store.device)
        columns = table[codes]
        if not self.unknown and bool((columns == known).any()):
            new = codes[columns == known]
            raise DataError(
                f"{new.numel()} nodes of {store.name} have a {self.what} that was not seen in fitting, the first "
                f"{names[int(new[0])]!r}. Fit on graphs that have them all, or allow for others with unknown=True."
            )
        return NodeFeatures(columns[:, None], torch.full((width,), known if self.unknown else -1, device=store.device))

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        unknown, values = state["unknown"], state["values"]
        if not isinstance(unknown, bool):
            raise DataError(f"encoder: unknown is {unknown!r}, expected true or false.")
        plain = isinstance(values, list) and values and all(map(cls._valid, values))
        if not plain or len(set(values)) < len(values):
            raise DataError(f"encoder: expected values to be a list of distinct {cls.what}s.")
        encoder = cls(unknown)
        encoder.values, encoder._width = values, len(values) + unknown
        return encoder


class NodeLabelEncoder(_OneHotEncoder):
    """One-hot node labels. They are matched by name, so stores that number them differently go together."""

    kind = "node-labels"
    what = "node label"

    @property
    def fields(self) -> dict[str, int | None]:
        """Node labels."""
        return {"node_labels": None}

    def _codes(self, store: PackedGraphs) -> tuple[Tensor, Sequence[str | int]]:
        if store.node_labels is None:
            raise DataError(f"the nodes of {store.name} have no labels: use another encoder, such as DegreeEncoder.")
        return store.node_labels.long(), store.node_label_names

    @staticmethod
    def _valid(value: Any) -> bool:
        return type(value) in (str, int)


class DegreeEncoder(_OneHotEncoder):
    """One-hot number of edges out of a node: a column for each that occurs, not for each up to the largest."""

    kind = "degree"
    what = "degree"

    def _codes(self, store: PackedGraphs) -> tuple[Tensor, Sequence[str | int]]:
        values, codes = degrees(store).unique(return_inverse=True)
        return codes, values.tolist()

    @staticmethod
    def _valid(value: Any) -> bool:
        return type(value) is int and value >= 0


class ConstantEncoder(Encoder):
    """A single feature that is one for every node."""

    kind = "constant"
    _width = 1

    def __repr__(self) -> str:
        return "ConstantEncoder()"

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        return 1

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        codes = torch.zeros(store.num_nodes, 1, dtype=torch.int32, device=store.device)
        return NodeFeatures(codes, torch.zeros(width, dtype=torch.long, device=store.device))

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        return cls()


class AttributeEncoder(Encoder):
    """Node attributes, shifted and scaled to mean 0 and standard deviation 1 over the nodes of the fitted graphs.

    Columns that are constant there are shifted only. Without ``standardize`` attributes stay as they are.
    """

    kind = "attributes"
    saved = ("standardize", "mean", "std")

    def __init__(self, standardize: bool = True) -> None:
        self.standardize = standardize
        self.mean: list[float] = []
        self.std: list[float] = []

    @property
    def fields(self) -> dict[str, int | None]:
        """Node attributes, as many as there were in fitting."""
        return {"node_attributes": self.width}

    def __repr__(self) -> str:
        columns = "not fitted" if self._width is None else f"{self._width} columns"
        return f"AttributeEncoder({columns}, standardize={self.standardize})"

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        values = _attributes(store)[nodes].double()
        if not len(values):
            raise DataError(f"the graphs of {store.name} to fit on have no nodes: there are no attributes to learn.")
        mean, std = torch.zeros_like(values[0]), torch.ones_like(values[0])
        if self.standardize:
            low, high = values.aminmax(dim=0)
            constant = low == high  # looked for, since the deviation of equal numbers is not always zero to the bit
            mean = torch.where(constant, low, values.mean(0))
            std = torch.where(constant, std, values.std(0, correction=0))
        self.mean, self.std = mean.tolist(), std.tolist()
        return len(self.mean)

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        values = _attributes(store)
        if values.shape[1] != width:
            raise DataError(f"{store.name} has {values.shape[1]} attributes per node, the fitted graphs had {width}.")
        mean, std = torch.tensor([self.mean, self.std], dtype=torch.float64, device=store.device)
        codes = torch.empty(len(values), 0, dtype=torch.int32, device=store.device)
        columns = torch.arange(width, device=store.device)
        return NodeFeatures(codes, columns, ((values - mean) / std).float(), columns)

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        standardize, mean, std = state["standardize"], state["mean"], state["std"]
        if not isinstance(standardize, bool):
            raise DataError(f"encoder: standardize is {standardize!r}, expected true or false.")
        if not (_are_numbers(mean) and _are_numbers(std) and len(mean) == len(std) and min(std) > 0):
            raise DataError("encoder: expected mean and std to be as many finite numbers, those of std above 0.")
        encoder = cls(standardize)
        encoder.mean, encoder.std, encoder._width = mean, std, len(mean)
        return encoder


class ConcatEncoder(Encoder):
    """The columns of several encoders, side by side."""

    kind = "concat"
    saved = ("parts",)

    def __init__(self, parts: Sequence[Encoder]) -> None:
        if not parts:
            raise ValueError("ConcatEncoder needs at least one encoder.")
        nested = [part.parts if isinstance(part, ConcatEncoder) else [part] for part in parts]
        self.parts: list[Encoder] = [part for some in nested for part in some]

    def __repr__(self) -> str:
        return f"ConcatEncoder({self.parts})"

    @property
    def fields(self) -> dict[str, int | None]:
        """Those of all parts."""
        return {name: width for part in self.parts for name, width in part.fields.items()}

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        for part in self.parts:
            part._width = part._learn(store, nodes)
        return sum(part.width for part in self.parts)

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        codes, fallback, dense, columns, start = [], [], [], [], 0
        for part in self.parts:
            made = part.transform(store)
            codes.append(made.codes + start)
            fallback.append(torch.where(made.fallback < 0, -1, made.fallback + start))
            if made.dense is not None and made.dense_columns is not None:
                dense.append(made.dense)
                columns.append(made.dense_columns + start)
            start += made.width
        numbers = (torch.cat(dense, 1), torch.cat(columns)) if dense else (None, None)
        return NodeFeatures(torch.cat(codes, 1), torch.cat(fallback), *numbers)

    def _state(self) -> dict[str, Any]:
        return {"parts": [part.to_json() for part in self.parts]}

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        parts = state["parts"]
        if not isinstance(parts, list) or not parts:
            raise DataError("encoder: expected parts to be a list of encoders.")
        if any(isinstance(part, dict) and part.get("kind") == cls.kind for part in parts):
            raise DataError(f"encoder: a part of a {cls.kind!r} encoder cannot be another one.")
        encoder = cls([encoder_from_json(part) for part in parts])
        encoder._width = sum(part.width for part in encoder.parts)
        return encoder


KINDS = (NodeLabelEncoder, DegreeEncoder, ConstantEncoder, AttributeEncoder, ConcatEncoder)
ENCODERS: dict[str, type[Encoder]] = {cls.kind: cls for cls in KINDS}
LARGEST = 3.5e38  # no float32 exceeds it


def encoder_from_json(saved: Any) -> Encoder:
    """The encoder that :meth:`Encoder.to_json` has written. Everything is checked: the file may come from anywhere."""
    kind = saved.get("kind") if isinstance(saved, dict) else None
    if not isinstance(kind, str) or kind not in ENCODERS:
        raise DataError(f"encoder: expected a dictionary with a kind out of {sorted(ENCODERS)}, found kind {kind!r}.")
    expected = {"kind", *ENCODERS[kind].saved}
    if set(saved) != expected:
        raise DataError(f"encoder: {kind!r} has {sorted(map(str, saved))}, expected {sorted(expected)}.")
    return ENCODERS[kind]._load(saved)


def _attributes(store: PackedGraphs) -> Tensor:
    if store.node_attributes is None or not store.node_attributes.shape[1]:
        raise DataError(f"the nodes of {store.name} have no attributes: use another encoder, such as DegreeEncoder.")
    return store.node_attributes


def _are_numbers(values: Any) -> bool:
    """Whether this is a list of finite numbers, at least one; a comparison with NaN is false."""
    some = isinstance(values, list) and len(values) > 0
    return some and all(type(value) in (float, int) and abs(value) < LARGEST for value in values)
