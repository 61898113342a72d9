"""Write a fitted estimator as an ONNX file, which runs without PyTorch and without this package.

The file holds all networks of the ensemble and the tables of its encoders. Its metadata describe the inputs, so that a
program in any language can prepare graphs for it.
"""

import json
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sopool import __version__
from sopool._files.atomic import whole_file
from sopool._runtime.packages import EXTRAS, require
from sopool.data.extras import NodePairs
from sopool.data.features.encoder import Encoder
from sopool.data.features.encoders import (
    AttributeEncoder,
    CategoryEncoder,
    ConcatEncoder,
    ConstantEncoder,
    DegreeEncoder,
    NodeLabelEncoder,
)
from sopool.errors import MissingPackageError, SettingError
from sopool.estimator.ensemble import Ensemble
from sopool.models.config import ModelConfig
from sopool.models.make import extras_for
from sopool.models.stack import member_of
from sopool.models.stackable import first_line
from sopool.objectives import Task
from sopool.objectives.base import LEAST_SHARE
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.pairs import find_pairs, list_pairs
from sopool.ops.segment import standard

if TYPE_CHECKING:
    from sopool.estimator.base import GraphEstimator

KINDS: dict[Task, str] = {
    "classification": "sopool classifier 1",
    "multi-label": "sopool multi-label classifier 1",
    "regression": "sopool regressor 1",
}
LOUD = ("torch.onnx", "onnxscript", "onnx_ir")
"""Loggers that warn about things which users cannot change."""
SHAPES = {
    "ptr": ["graphs + 1"],
    "edge_index": ["2", "edges"],
    "node_labels": ["nodes"],
    "node_categories": ["nodes"],
    "node_attributes": ["nodes"],
    "edge_labels": ["edges"],
    "pair_index": ["2", "pairs"],
    "pair_distance": ["pairs"],
}
MEANING = {
    "ptr": "The number of the first node of each graph, then the number of all nodes. The nodes of all graphs are "
    "numbered consecutively, from 0.",
    "edge_index": "The source (row 0) and the target (row 1) of each edge, numbered as in ptr. An undirected edge, "
    "such as a bond, is given in both directions.",
    "node_labels": "The position of each node's label in values; any other number, such as -1, for another label.",
    "node_categories": "The position of each node's value in the values of each of columns; any other number, such as "
    "-1, for another value.",
    "node_attributes": "The attributes of each node, as in the training data; the file standardizes them.",
    "edge_labels": "The position of each edge's label in values; any other number, such as -1, for another label.",
    "pair_index": "The first (row 0) and the second node (row 1) of each pair of different nodes of a graph that are "
    "at most as many steps apart as distances says, in any order. In undirected graphs a pair occurs in both orders.",
    "pair_distance": "The number of edges of a shortest path from the first to the second node of each pair, from 1.",
}


def _output(dtype: str, shape: list[str], meaning: str) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "meaning": meaning}


OUTPUTS: dict[Task, dict[str, dict[str, Any]]] = {
    "classification": {
        "probabilities": _output(
            "float32",
            ["graphs", "classes"],
            "The probability of each class, averaged over the networks. The most probable class is predicted.",
        ),
        "uncertainty": _output(
            "float32",
            ["graphs"],
            "The standard deviation of the predicted class's probability over the networks; NaN for one.",
        ),
    },
    "multi-label": {
        "probabilities": _output(
            "float32",
            ["graphs", "targets"],
            "The probability that each label is 1, averaged over the networks. Above one half, 1 is predicted.",
        ),
        "uncertainty": _output(
            "float32",
            ["graphs", "targets"],
            "The standard deviation of each probability over the networks; NaN for one.",
        ),
    },
    "regression": {
        "predictions": _output(
            "float64", ["graphs", "targets"], "Each predicted number in its own unit, averaged over the networks."
        ),
        "uncertainty": _output(
            "float64", ["graphs", "targets"], "The standard deviation of each number over the networks; NaN for one."
        ),
    },
}


def write_onnx(model: "GraphEstimator", path: str | Path) -> None:
    """Write an ONNX file atomically: after an interruption ``path`` has its old content or all of the new one."""
    content = onnx_bytes(model.ensemble_, description(model))
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def check_exportable() -> None:
    """Raise a ``MissingPackageError`` unless everything that an export needs is installed."""
    require("writing an ONNX file", *EXTRAS["export"])
    if not hasattr(torch.compiler, "is_exporting"):
        raise MissingPackageError(
            f"writing an ONNX file needs PyTorch 2.7 or newer, but version {torch.__version__} is installed: "
            "pip install --upgrade torch."
        )


def pair_distances(config: ModelConfig) -> int:
    """Return the largest distance of the pairs of nodes that a model needs; 0 if it needs none."""
    pairs = extras_for(config).get("pairs")
    return pairs.distances if isinstance(pairs, NodePairs) else 0


def onnx_bytes(ensemble: Ensemble, described: dict[str, Any]) -> bytes:
    """Return the content of the ONNX file of an ensemble."""
    check_exportable()
    config = ensemble.model.config
    if config.system:
        raise SettingError(
            f"a model with system={config.system!r} cannot be exported: its network need not be one that ONNX can "
            "express. Fit a model with a pooling, such as sopool-bimap, or keep the model file and predict with sopool."
        )
    if "clusters" in extras_for(config):
        raise SettingError(
            f"a model with {config.pool} cannot be exported: it divides each graph into clusters by an "
            "eigendecomposition, which ONNX cannot express. Fit a model with another pooling, such as sopool-bimap."
        )
    if config.edge_categories or config.edge_attributes or config.edge_weights or config.graph_attributes:
        raise SettingError(
            "a model with several categories of edges, with attributes or weights of edges, or with attributes of "
            "graphs cannot be exported: an ONNX file has inputs for nodes and for one label of each edge only. Fit a "
            "model without these columns."
        )
    program = EnsembleProgram(ensemble.to("cpu")).eval()
    inputs = sample_inputs(described["inputs"])
    sizes = {name: {int(name in ("edge_index", "pair_index")): torch.export.Dim.DYNAMIC} for name in inputs}
    try:
        with _quiet():
            exported = torch.onnx.export(
                program,
                kwargs=inputs,
                dynamic_shapes=sizes,
                output_names=list(described["outputs"]),
                verbose=False,
            )
        assert exported is not None
        file = exported.model_proto
        for node in file.graph.node:  # these tell where on this machine the source code is
            node.ClearField("metadata_props")
            node.ClearField("doc_string")
        file.producer_name = "sopool"
        file.producer_version = __version__
        file.metadata_props.add(key="sopool", value=json.dumps(described))
        content: bytes = file.SerializeToString()
    except Exception as error:  # a user's readout may use anything
        raise SettingError(f"this model cannot be exported to ONNX: {first_line(error)}") from error
    return content


class EnsembleProgram(torch.nn.Module):
    """A trained ensemble as one module, from the codes of a batch of graphs to probabilities or numbers.

    Args:
        ensemble: The trained models and their encoders, on a CPU.
    """

    columns: Tensor
    mean: Tensor
    std: Tensor
    scale: Tensor
    shift: Tensor

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__()
        encoder = ensemble.encoder
        self.parts = torch.nn.ModuleList(map(_features_of, _parts(encoder)))
        self.register_buffer("mean", torch.zeros(ensemble.model.models, encoder.width, dtype=torch.float64))
        self.register_buffer("std", torch.ones_like(self.mean))
        if ensemble.inputs.nodes is not None:
            self.mean[:, encoder.number_columns], self.std[:, encoder.number_columns] = ensemble.inputs.nodes
        # A product with this matrix moves the features that a network does not know to the column that it uses instead.
        assert ensemble.inputs.substitutes is not None
        self.register_buffer("columns", torch.eye(encoder.width)[ensemble.inputs.substitutes])
        self.networks = torch.nn.ModuleList(member_of(ensemble.model, m) for m in range(ensemble.model.models))
        self.task = ensemble.objectives[0].task
        scale, shift = (
            np.stack(each)[:, None] for each in zip(*(one.scaling for one in ensemble.objectives), strict=True)
        )
        self.register_buffer("scale", torch.from_numpy(scale))
        self.register_buffer("shift", torch.from_numpy(shift))
        self.temperature = ensemble.temperature
        self.kinds = 0 if ensemble.edges is None else len(ensemble.edges.values) + 1
        self.distances = pair_distances(ensemble.model.config)

    def forward(
        self,
        ptr: Tensor,
        edge_index: Tensor,
        node_labels: Tensor | None = None,
        node_categories: Tensor | None = None,
        node_attributes: Tensor | None = None,
        edge_labels: Tensor | None = None,
        pair_index: Tensor | None = None,
        pair_distance: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the probabilities or numbers ``[G, W]``, and the uncertainty ``[G]`` of classes or ``[G, W]``."""
        given = next((one for one in (node_attributes, node_categories, node_labels) if one is not None), None)
        nodes = standard.length(ptr[-1]) if given is None else given.shape[0]
        fields = _Nodes(standard.count(edge_index[0], nodes), node_labels, node_categories, node_attributes)
        x = torch.cat([part(fields).double() for part in self.parts], 1)
        if edge_labels is not None:
            unknown = self.kinds - 1
            edge_labels = edge_labels.where((edge_labels >= 0) & (edge_labels < unknown), unknown)
        neighbors = neighbors_of(edge_index, nodes, edge_labels, self.kinds)
        if pair_index is not None and pair_distance is not None:
            neighbors = neighbors._replace(
                extras={"pairs": list_pairs(pair_index, pair_distance, nodes, self.distances)}
            )
        elif self.distances:
            neighbors = neighbors._replace(extras={"pairs": find_pairs(edge_index, nodes, self.distances)})
        taken = (((x - mean) / std).float() @ columns for mean, std, columns in self._inputs())
        each = self._outputs(
            torch.stack([network(own, neighbors, ptr) for own, network in zip(taken, self.networks, strict=True)])
        )
        mean = each.mean(0)
        if self.task == "classification":  # the spread of the predicted class only
            each = each.gather(2, mean.argmax(1).view(1, -1, 1).expand(each.shape[0], -1, 1)).squeeze(2)
        spread = each.std(0, correction=0) if each.shape[0] > 1 else each[0] * float("nan")
        if self.temperature is None:
            return mean, spread
        return self._calibrated(mean, self.temperature).float(), spread.float()

    def _inputs(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Return how each network takes the features."""
        return zip(self.mean, self.std, self.columns, strict=True)

    def _outputs(self, scores: Tensor) -> Tensor:
        """Return the probabilities or numbers of each network ``[M, G, W]``."""
        scores = scores if self.temperature is None else scores.double()  # whose tails a temperature makes visible
        if self.task == "classification":
            return scores.softmax(2)
        if self.task == "multi-label":
            return scores.sigmoid()
        return scores.double() * self.scale + self.shift  # the mean may be much larger than the spread

    def _calibrated(self, mean: Tensor, temperature: float) -> Tensor:
        """Return the mean probabilities ``[G, W]`` at a temperature."""
        logs = mean.clamp(min=LEAST_SHARE).log()
        if self.task == "classification":
            return (logs / temperature).softmax(1)
        odds = logs - (1 - mean).clamp(min=LEAST_SHARE).log()
        return (odds / temperature).sigmoid()


class _Nodes(NamedTuple):
    """What the inputs say of N nodes."""

    degrees: Tensor
    labels: Tensor | None
    categories: Tensor | None
    attributes: Tensor | None


class _OneHot(torch.nn.Module):
    """One column for each of K values and, if ``unknown``, a last one for all other values."""

    values: Tensor

    def __init__(self, values: Tensor, unknown: bool) -> None:
        super().__init__()
        self.register_buffer("values", values)
        self.unknown = unknown

    def forward(self, found: Tensor) -> Tensor:
        """Return the columns ``[N, K]`` or ``[N, K + 1]`` of the values ``[N]``."""
        columns = (found.unsqueeze(1) == self.values).float()
        return torch.cat([columns, 1 - columns.sum(1, keepdim=True)], 1) if self.unknown else columns


class _Single(torch.nn.Module):
    """The columns of the degrees or of the labels."""

    def __init__(self, field: str, values: Tensor, unknown: bool) -> None:
        super().__init__()
        self.field = field
        self.columns = _OneHot(values, unknown)

    def forward(self, nodes: _Nodes) -> Tensor:
        """Return the columns ``[N, F]``."""
        columns: Tensor = self.columns(getattr(nodes, self.field))
        return columns


class _Categories(torch.nn.Module):
    """The columns of several categories, one after the other."""

    def __init__(self, parts: Iterable[tuple[Tensor, bool]]) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(_OneHot(values, unknown) for values, unknown in parts)

    def forward(self, nodes: _Nodes) -> Tensor:
        """Return the columns ``[N, F]``."""
        assert nodes.categories is not None
        return torch.cat([part(nodes.categories[:, column]) for column, part in enumerate(self.parts)], 1)


class _Attributes(torch.nn.Module):
    """The attributes, which each network standardizes by its own moments."""

    def forward(self, nodes: _Nodes) -> Tensor:
        """Return the columns ``[N, F]``."""
        assert nodes.attributes is not None
        return nodes.attributes


class _Constant(torch.nn.Module):
    """A column of ones."""

    def forward(self, nodes: _Nodes) -> Tensor:
        """Return the column ``[N, 1]``."""
        return torch.ones_like(nodes.degrees, dtype=torch.float32).unsqueeze(1)


def _parts(encoder: Encoder) -> Sequence[Encoder]:
    """Return the encoders whose columns stand side by side."""
    return encoder.parts if isinstance(encoder, ConcatEncoder) else [encoder]


def _features_of(encoder: Encoder) -> torch.nn.Module:
    """Return an encoder as a module, which takes :class:`_Nodes`."""
    if isinstance(encoder, NodeLabelEncoder):
        return _Single("labels", torch.arange(len(encoder.values)), encoder.unknown)
    if isinstance(encoder, CategoryEncoder):
        return _Categories((torch.arange(len(part.values)), part.unknown) for part in encoder.parts)
    if isinstance(encoder, DegreeEncoder):
        return _Single("degrees", torch.tensor(encoder.values), encoder.unknown)
    if isinstance(encoder, AttributeEncoder):
        return _Attributes()
    if isinstance(encoder, ConstantEncoder):
        return _Constant()
    raise SettingError(
        f"a model with {encoder!r} cannot be exported: its columns are computed from all edges of a graph, but an ONNX "
        "file has only the tables of encoders. Fit a model with other encoders, such as DegreeEncoder()."
    )


def description(model: "GraphEstimator") -> dict[str, Any]:
    """Return what the metadata of the file say: the inputs, the outputs, the classes or targets and the encoder."""
    objective = model.objective_
    ensemble = model.ensemble_
    encoder = ensemble.encoder
    inputs = {name: _input(name, "int64") for name in ("ptr", "edge_index")}
    for part in _parts(encoder):
        if isinstance(part, NodeLabelEncoder):
            inputs["node_labels"] = _input("node_labels", "int64") | {"values": part.values}
        elif isinstance(part, CategoryEncoder):
            columns = [{"name": column.name, "values": column.values} for column in part.parts]
            inputs["node_categories"] = _input("node_categories", "int64", str(len(columns))) | {"columns": columns}
        elif isinstance(part, AttributeEncoder):
            inputs["node_attributes"] = _input("node_attributes", "float32", str(part.width))
    if ensemble.edges is not None:
        inputs["edge_labels"] = _input("edge_labels", "int64") | {"values": ensemble.edges.values}
    distances = pair_distances(ensemble.model.config)
    if distances > 1:  # an ONNX file cannot search for pairs that are farther apart than an edge
        for name in ("pair_index", "pair_distance"):
            inputs[name] = _input(name, "int64") | {"distances": distances}
    return {
        "format": KINDS[objective.task],
        "task": objective.task,
        "inputs": inputs,
        "outputs": OUTPUTS[objective.task],
        "targets" if model.target_names_ else "classes": list(objective.names),
        "encoder": encoder.to_json(),
        "networks": ensemble.model.models,
        "network": model.config_.network,
        "pool": model.config_.pool_name,
    }


def _input(name: str, dtype: str, width: str = "") -> dict[str, Any]:
    shape = SHAPES[name] + [width] * bool(width)
    return {"dtype": dtype, "shape": shape, "meaning": MEANING[name]}


def sample_inputs(inputs: dict[str, dict[str, Any]]) -> dict[str, Tensor]:
    """Return inputs for a path of three nodes, a graph without nodes and a pair; all dimensions differ."""
    sample = {
        "ptr": torch.tensor([0, 3, 3, 5]),
        "edge_index": torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]]),
        "node_labels": torch.zeros(5, dtype=torch.long),
        "edge_labels": torch.zeros(6, dtype=torch.long),
        "pair_index": torch.tensor([[0, 0, 1, 1, 2, 2, 3, 4], [1, 2, 0, 2, 0, 1, 4, 3]]),
        "pair_distance": torch.tensor([1, 2, 1, 1, 2, 1, 1, 1]),
    }
    for name, dtype in (("node_categories", torch.long), ("node_attributes", torch.float32)):
        if name in inputs:
            sample[name] = torch.zeros(5, int(inputs[name]["shape"][1]), dtype=dtype)
    return {name: sample[name] for name in inputs}


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter, whose messages are about its own code."""
    loggers = [logging.getLogger(name) for name in LOUD]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
