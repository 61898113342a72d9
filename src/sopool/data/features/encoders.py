"""Encode nodes as features: labels, degrees, attributes, a constant, or several of them."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from sopool.data.edges import out_degrees
from sopool.data.features.categories import column_of, columns_from_json, columns_to_json, matched, occurring
from sopool.data.features.encoder import Encoder, Fields, NumberEncoder
from sopool.data.features.node_features import NodeFeatures
from sopool.data.features.numbers import Moments, side_by_side
from sopool.data.features.structural import LaplacianEncoder, RandomWalkEncoder
from sopool.data.graphs import PackedGraphs
from sopool.data.names import CategoryColumn
from sopool.errors import DataError, SettingError

LABELLED = ("MUTAG", "PTC", "PROTEINS", "NCI1", "DD")
BY_DEGREE = ("COLLAB", "IMDB-BINARY", "IMDB-MULTI")
FEATURELESS = ("REDDIT-BINARY", "REDDIT-MULTI-5K")
"""The paper's data sets, grouped by the features that their nodes get."""


class _OneHotEncoder(Encoder):
    """One column for each value seen in fitting and, if ``unknown``, a last column for all other values."""

    saved = ("unknown", "values")
    what: str
    short: str
    """The word for a value in column names."""

    def __init__(self, unknown: bool = True) -> None:
        self.unknown = unknown
        self.values: list[str | int] = []

    def __repr__(self) -> str:
        values = "not fitted" if self._width is None else f"{len(self.values)} values"
        return f"{type(self).__name__}({values}, unknown={self.unknown})"

    @property
    def feature_names(self) -> list[str]:
        """The values, and a last name for unknown values."""
        return [f"{self.short} {value}" for value in self.values] + [f"unknown {self.short}"] * self.unknown

    @abstractmethod
    def _codes(self, store: PackedGraphs) -> tuple[Tensor, Sequence[str | int]]:
        """Return a code for each node, int64 ``[N]``, and the values that the codes stand for."""

    @staticmethod
    @abstractmethod
    def _valid(value: Any) -> bool:
        """Return whether a value from a file is possible."""

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        codes, names = self._codes(store)
        values = occurring(codes[nodes], names)
        if not values:
            raise DataError(f"the graphs of {store.name} to fit on have no nodes, so there is no {self.what} to learn.")
        self.values = values
        return len(values) + self.unknown

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        codes, names = self._codes(store)
        known = len(self.values)
        columns = matched(codes, names, self.values)
        if not self.unknown and bool((columns == known).any()):
            new = codes[columns == known]
            raise DataError(
                f"{new.numel()} nodes of {store.name} have a {self.what} that was not seen in fitting, such as "
                f"{names[int(new[0])]!r}. Fit on graphs that have all of them, or use unknown=True."
            )
        return NodeFeatures(columns[:, None], torch.full((width,), known if self.unknown else -1, device=store.device))

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        unknown = state["unknown"]
        values = state["values"]
        if not isinstance(unknown, bool):
            raise DataError(f"encoder: unknown is {unknown!r}, expected true or false.")
        plain = isinstance(values, list) and values and all(map(cls._valid, values))
        if not plain or len(set(values)) < len(values):
            raise DataError(f"encoder: expected values to be a list of distinct {cls.what}s.")
        encoder = cls(unknown)
        encoder.values = values
        encoder._width = len(values) + unknown
        return encoder


class NodeLabelEncoder(_OneHotEncoder):
    """One-hot encoding of node labels.

    Labels are matched by name, so stores may number them differently.

    Args:
        unknown: Whether to add a column for labels that were not seen in fitting. Otherwise such a label raises a
            ``DataError``. Default: True.

    Examples:
        >>> from sopool.data import NodeLabelEncoder, load
        >>> encoder = NodeLabelEncoder().fit(load("MUTAG"))
        >>> encoder.feature_names[:3], encoder.feature_names[-1]
        (['label Br', 'label C', 'label Cl'], 'unknown label')
    """

    kind = "node-labels"
    what = "node label"
    short = "label"

    @property
    def fields(self) -> Fields:
        """Graphs must have node labels."""
        return {"node_labels": None}

    def _codes(self, store: PackedGraphs) -> tuple[Tensor, Sequence[str | int]]:
        if store.node_labels is None:
            raise DataError(f"the nodes of {store.name} have no labels: use another encoder, such as DegreeEncoder.")
        return store.node_labels.long(), store.node_label_names

    @staticmethod
    def _valid(value: Any) -> bool:
        return type(value) in (str, int)


class _ColumnEncoder(_OneHotEncoder):
    """One-hot encoding of one column of node categories, matched by its name."""

    def __init__(self, name: str, unknown: bool = True) -> None:
        super().__init__(unknown)
        self.name = self.short = name
        self.what = f"node category {name!r}"

    def _codes(self, store: PackedGraphs) -> tuple[Tensor, Sequence[str | int]]:
        if store.node_categories is None:
            raise DataError(
                f"the nodes of {store.name} have no categories: use another encoder, such as DegreeEncoder."
            )
        return column_of(store, "node_categories", self.name)

    @staticmethod
    def _valid(value: Any) -> bool:
        return type(value) in (str, int)


class CategoryEncoder(Encoder):
    """One-hot encoding of each column of node categories, such as the formal charges of atoms.

    Columns and their values are matched by name, so stores may order and number them differently. Columns that the
    fitted graphs do not have are not used.

    Args:
        unknown: Whether to add a column for values that were not seen in fitting to the columns of each. Otherwise such
            a value raises a ``DataError``. Default: True.

    Examples:
        >>> from sopool.data import CategoryEncoder, Graph, pack
        >>> graphs = pack([Graph(2, node_categories={"charge": [0, 1], "ring": ["no", "no"]})])
        >>> CategoryEncoder().fit(graphs).feature_names
        ['charge 0', 'charge 1', 'unknown charge', 'ring no', 'unknown ring']
    """

    kind = "node-categories"
    saved = ("unknown", "columns")

    def __init__(self, unknown: bool = True) -> None:
        self.unknown = unknown
        self.parts: list[_ColumnEncoder] = []

    def __repr__(self) -> str:
        columns = "not fitted" if self._width is None else f"{len(self.parts)} columns"
        return f"CategoryEncoder({columns}, unknown={self.unknown})"

    @property
    def fields(self) -> Fields:
        """Graphs must have the columns of node categories that the fitted graphs had."""
        return {"node_categories": tuple(part.name for part in self.parts)}

    @property
    def feature_names(self) -> list[str]:
        """The values of each column, and a last name for its unknown values."""
        return [name for part in self.parts for name in part.feature_names]

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        if not has_node_categories(store):
            raise DataError(
                f"the nodes of {store.name} have no categories: use another encoder, such as DegreeEncoder."
            )
        self.parts = [_ColumnEncoder(column.name, self.unknown) for column in store.node_category_columns]
        return _learn_each(self.parts, store, nodes)

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        return _encode_each(self.parts, store)

    def _state(self) -> dict[str, Any]:
        columns = [CategoryColumn(part.name, tuple(part.values)) for part in self.parts]
        return {"unknown": self.unknown, "columns": columns_to_json(columns)}

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        unknown = state["unknown"]
        if not isinstance(unknown, bool):
            raise DataError(f"encoder: unknown is {unknown!r}, expected true or false.")
        columns = columns_from_json(state["columns"], "encoder: node categories")
        if not columns:
            raise DataError("encoder: node categories: expected at least one column.")
        encoder = cls(unknown)
        for column in columns:
            part = _ColumnEncoder(column.name, unknown)
            part.values = list(column.values)
            part._width = len(column.values) + unknown
            encoder.parts.append(part)
        encoder._width = sum(part.width for part in encoder.parts)
        return encoder


class DegreeEncoder(_OneHotEncoder):
    """One-hot encoding of the out-degree of each node, with a column for each degree that occurs in fitting.

    Args:
        unknown: Whether to add a column for degrees that were not seen in fitting. Otherwise such a degree raises a
            ``DataError``. Default: True.

    Examples:
        >>> from sopool.data import DegreeEncoder, load
        >>> DegreeEncoder().fit(load("MUTAG")).feature_names
        ['degree 1', 'degree 2', 'degree 3', 'degree 4', 'unknown degree']
    """

    kind = "degree"
    what = "degree"
    short = "degree"

    def _codes(self, store: PackedGraphs) -> tuple[Tensor, Sequence[str | int]]:
        values, codes = out_degrees(store).unique(return_inverse=True)
        return codes, values.tolist()

    @staticmethod
    def _valid(value: Any) -> bool:
        return type(value) is int and value >= 0


class ConstantEncoder(Encoder):
    """A single feature that is 1 for every node.

    Examples:
        >>> from sopool.data import ConstantEncoder, load
        >>> ConstantEncoder().transform(load("MUTAG")).rows().shape
        torch.Size([3371, 1])
    """

    kind = "constant"
    _width = 1

    def __repr__(self) -> str:
        return "ConstantEncoder()"

    @property
    def feature_names(self) -> list[str]:
        """The name of the only column."""
        return ["constant"]

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        return 1

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        codes = torch.zeros(store.num_nodes, 1, dtype=torch.int32, device=store.device)
        return NodeFeatures(codes, torch.zeros(width, dtype=torch.long, device=store.device))

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        return cls()


class AttributeEncoder(NumberEncoder):
    """Node attributes, standardized to mean 0 and standard deviation 1 over the nodes of the fitted graphs.

    Columns that are constant in the fitted graphs are centered only, and columns of zeros and ones keep their values. A
    model that is trained replaces the mean and the standard deviation by those of its own training graphs.

    Args:
        standardize: Whether to standardize; otherwise attributes are used unchanged. Default: True.

    Examples:
        >>> from sopool.data import AttributeEncoder, make_agreement
        >>> AttributeEncoder().fit(make_agreement(graphs=20)).feature_names
        ['attribute 0', 'attribute 1']
    """

    kind = "attributes"
    saved = ("standardize", *NumberEncoder.saved)
    what = "attributes"

    def __init__(self, standardize: bool = True) -> None:
        super().__init__()
        self.standardize = standardize

    @property
    def fields(self) -> Fields:
        """Graphs must have as many node attributes as the fitted graphs."""
        return {"node_attributes": self.width}

    @property
    def standardizes(self) -> bool:
        """Whether columns are standardized."""
        return self.standardize

    def __repr__(self) -> str:
        columns = "not fitted" if self._width is None else f"{self._width} columns"
        return f"AttributeEncoder({columns}, standardize={self.standardize})"

    @property
    def feature_names(self) -> list[str]:
        """The attributes, numbered from 0."""
        return [f"attribute {column}" for column in range(self.width)]

    def _numbers(self, store: PackedGraphs) -> Tensor:
        if store.node_attributes is None or not store.node_attributes.shape[1]:
            raise DataError(
                f"the nodes of {store.name} have no attributes: use another encoder, such as DegreeEncoder."
            )
        return store.node_attributes

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        found = self._numbers(store).shape[1]
        if found != width:
            raise DataError(f"{store.name} has {found} attributes per node, but the encoder was fitted with {width}.")
        return super()._encode(store, width)

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        standardize = state["standardize"]
        if not isinstance(standardize, bool):
            raise DataError(f"encoder: standardize is {standardize!r}, expected true or false.")
        return cls(standardize)._restored(state)


class ConcatEncoder(Encoder):
    """The concatenated columns of several encoders.

    Args:
        parts: The encoders, at least one.

    Examples:
        >>> from sopool.data import ConcatEncoder, DegreeEncoder, NodeLabelEncoder, load
        >>> ConcatEncoder([NodeLabelEncoder(), DegreeEncoder()]).fit(load("MUTAG")).width
        13
    """

    kind = "concat"
    saved = ("parts",)

    def __init__(self, parts: Sequence[Encoder]) -> None:
        if not parts:
            raise SettingError("ConcatEncoder needs at least one encoder.")
        nested = [part.parts if isinstance(part, ConcatEncoder) else [part] for part in parts]
        self.parts: list[Encoder] = [part for some in nested for part in some]

    def __repr__(self) -> str:
        return f"ConcatEncoder({self.parts})"

    @property
    def fields(self) -> Fields:
        """The fields that the parts need."""
        return {name: width for part in self.parts for name, width in part.fields.items()}

    @property
    def moments(self) -> Moments | None:
        """The moments of the real-valued columns of all parts."""
        each = [part.moments for part in self.parts if part.moments is not None]
        return Moments(*map(torch.cat, zip(*each, strict=True))) if each else None

    @property
    def number_columns(self) -> list[int]:
        """The indices of the real-valued columns of all parts."""
        starts = accumulate((part.width for part in self.parts), initial=0)
        return [
            start + column for start, part in zip(starts, self.parts, strict=False) for column in part.number_columns
        ]

    @property
    def standardizes(self) -> bool:
        """Whether some part standardizes its columns."""
        return any(part.standardizes for part in self.parts)

    @property
    def feature_names(self) -> list[str]:
        """The column names of all parts."""
        return [name for part in self.parts for name in part.feature_names]

    def _learn(self, store: PackedGraphs, nodes: Tensor) -> int:
        return _learn_each(self.parts, store, nodes)

    def _encode(self, store: PackedGraphs, width: int) -> NodeFeatures:
        return _encode_each(self.parts, store)

    def _state(self) -> dict[str, Any]:
        return {"parts": [part.to_json() for part in self.parts]}

    @classmethod
    def _load(cls, state: dict[str, Any]) -> "Encoder":
        parts = state["parts"]
        if not isinstance(parts, list) or not parts:
            raise DataError("encoder: expected parts to be a list of encoders.")
        if any(isinstance(part, dict) and part.get("kind") == cls.kind for part in parts):
            raise DataError(f"encoder: the parts of a {cls.kind!r} encoder cannot be {cls.kind!r} encoders.")
        encoder = cls([encoder_from_json(part) for part in parts])
        encoder._width = sum(part.width for part in encoder.parts)
        return encoder


def _learn_each(parts: Sequence[Encoder], store: PackedGraphs, nodes: Tensor) -> int:
    """Fit encoders on the nodes in a mask ``[N]`` and return the number of their columns."""
    for part in parts:
        part._width = part._learn(store, nodes)
    return sum(part.width for part in parts)


def _encode_each(parts: Sequence[Encoder], store: PackedGraphs) -> NodeFeatures:
    """Return the features of several encoders side by side."""
    codes = []
    fallback = []
    numbers = []
    columns = []
    start = 0
    for part in parts:
        made = part.transform(store)
        codes.append(made.codes + start)
        fallback.append(torch.where(made.fallback < 0, -1, made.fallback + start))
        if made.numbers is not None and made.number_columns is not None:
            numbers.append(made.numbers)
            columns.append(made.number_columns + start)
        start += made.width
    joined = (side_by_side(numbers), torch.cat(columns)) if numbers else (None, None)
    return NodeFeatures(torch.cat(codes, 1), torch.cat(fallback), *joined)


ENCODERS: dict[str, type[Encoder]] = {
    cls.kind: cls
    for cls in (
        NodeLabelEncoder,
        CategoryEncoder,
        DegreeEncoder,
        ConstantEncoder,
        AttributeEncoder,
        RandomWalkEncoder,
        LaplacianEncoder,
        ConcatEncoder,
    )
}


def encoder_from_json(saved: Any) -> Encoder:
    """Create a fitted encoder from what :meth:`Encoder.to_json` returned; raise a ``DataError`` if it is invalid.

    Args:
        saved: The dictionary.

    Examples:
        >>> from sopool.data import NodeLabelEncoder, encoder_from_json, load
        >>> saved = NodeLabelEncoder().fit(load("MUTAG")).to_json()
        >>> encoder_from_json(saved)
        NodeLabelEncoder(7 values, unknown=True)
    """
    kind = saved.get("kind") if isinstance(saved, dict) else None
    if not isinstance(kind, str) or kind not in ENCODERS:
        raise DataError(f"encoder: expected a dictionary whose kind is one of {sorted(ENCODERS)}, found {kind!r}.")
    expected = {"kind", *ENCODERS[kind].saved}
    if set(saved) != expected:
        raise DataError(f"encoder: {kind!r} has {sorted(map(str, saved))}, expected {sorted(expected)}.")
    return ENCODERS[kind]._load(saved)


def paper_encoder(name: str, unknown: bool = True) -> Encoder:
    """Return the encoder that the paper uses for one of its ten data sets.

    Args:
        name: The name of the data set, such as ``"MUTAG"``.
        unknown: Whether to add a column for values that were not seen in fitting; the paper's code has none. Default:
            True.

    Examples:
        >>> from sopool.data import paper_encoder
        >>> paper_encoder("COLLAB")
        DegreeEncoder(not fitted, unknown=True)
    """
    if name in LABELLED:
        return NodeLabelEncoder(unknown)
    if name in BY_DEGREE:
        return DegreeEncoder(unknown)
    if name in FEATURELESS:
        return ConstantEncoder()
    known = ", ".join(LABELLED + BY_DEGREE + FEATURELESS)
    raise SettingError(f"{name!r} is not one of the paper's data sets, which are {known}.")


def default_encoder(store: PackedGraphs, unknown: bool = True) -> Encoder:
    """Return the encoder that suits the graphs of a store.

    For the paper's data sets it is that of :func:`paper_encoder`. Otherwise it encodes node labels, node categories and
    node attributes, whichever the graphs have, or degrees if they have none of these.

    Args:
        store: The graphs.
        unknown: Whether to add a column for values that were not seen in fitting. Default: True.

    Examples:
        >>> from sopool.data import default_encoder, load, make_agreement
        >>> default_encoder(load("MUTAG"))
        NodeLabelEncoder(not fitted, unknown=True)
        >>> default_encoder(make_agreement(graphs=20))
        AttributeEncoder(not fitted, standardize=True)
    """
    if store.name in BY_DEGREE + FEATURELESS or (store.name in LABELLED and store.node_labels is not None):
        return paper_encoder(store.name, unknown)
    parts: list[Encoder] = [NodeLabelEncoder(unknown)] if has_node_labels(store) else []
    if has_node_categories(store):
        parts.append(CategoryEncoder(unknown))
    if has_node_attributes(store):
        parts.append(AttributeEncoder())
    return ConcatEncoder(parts) if len(parts) > 1 else parts[0] if parts else DegreeEncoder(unknown)


def has_node_labels(store: PackedGraphs) -> bool:
    """Return whether nodes have labels that say more than the graph structure does.

    Files in GIN's text format have a tag for every node. In social networks, whose nodes have no labels, the tag is 0
    everywhere, or the degree.
    """
    labels = store.node_labels
    if labels is None or store.name in BY_DEGREE + FEATURELESS:
        return False
    if store.name in LABELLED:
        return True
    if not labels.numel() or bool((labels == labels[0]).all()):
        return False
    return not _are_degrees(labels, store)


def has_node_categories(store: PackedGraphs) -> bool:
    """Return whether nodes have columns of categories."""
    return store.node_categories is not None and store.node_categories.shape[1] > 0


def has_node_attributes(store: PackedGraphs) -> bool:
    """Return whether nodes have attributes."""
    return store.node_attributes is not None and store.node_attributes.shape[1] > 0


def _are_degrees(labels: Tensor, store: PackedGraphs) -> bool:
    if any(isinstance(name, str) for name in store.node_label_names):
        return False
    possible = [name if 0 <= int(name) <= store.num_edges else -1 for name in store.node_label_names]
    names = torch.tensor(possible, dtype=torch.long, device=labels.device)
    return bool((names[labels.long()] == out_degrees(store)).all())


def only_encoded_nodes(store: PackedGraphs, encoder: Encoder) -> PackedGraphs:
    """Return graphs without the labels, attributes and categories of nodes that an encoder does not use.

    Labels have the numbers of the values that the encoder has seen; all others have the next one. Categories, which
    stores may order differently, are always left out.

    Args:
        store: The graphs.
        encoder: The fitted encoder.

    Examples:
        >>> from sopool.data import Graph, NodeLabelEncoder, pack
        >>> from sopool.data.features.encoders import only_encoded_nodes
        >>> first, other = (pack([Graph(2, node_labels=labels)]) for labels in ("ba", "bc"))
        >>> only_encoded_nodes(other, NodeLabelEncoder().fit(first)).node_labels
        tensor([1, 2], dtype=torch.int32)
    """
    kept = store.node_attributes if "node_attributes" in encoder.fields else None
    found = replace(store, node_attributes=kept, node_categories=None, node_category_columns=())
    parts = encoder.parts if isinstance(encoder, ConcatEncoder) else [encoder]
    for part in parts:
        if isinstance(part, NodeLabelEncoder) and store.node_labels is not None:
            codes = matched(store.node_labels, store.node_label_names, part.values)
            return replace(found, node_labels=codes, node_label_names=tuple(range(len(part.values) + 1)))
    return found if "node_labels" in encoder.fields else replace(found, node_labels=None, node_label_names=())
