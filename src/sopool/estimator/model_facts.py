"""Say what a fitted estimator is, as plain data."""

from typing import Any

from sopool._files.schema import SCALAR, anything, choice, list_of, mapping_of, number, optional, record, text, whole
from sopool.data.division import RANDOM, new_graphs
from sopool.data.features.encoder import Encoder
from sopool.data.features.encoders import (
    AttributeEncoder,
    CategoryEncoder,
    ConcatEncoder,
    ConstantEncoder,
    DegreeEncoder,
    NodeLabelEncoder,
)
from sopool.errors import DataError
from sopool.estimator.base import GraphEstimator
from sopool.estimator.validation import listing
from sopool.objectives import METRICS, TASKS

COUNTS = list_of(whole())
FIGURES = mapping_of(record({"mean": optional(number()), "std": optional(number())}, {"std": None}))
DATA = record(
    {"name": text(), "graphs": whole(), "nodes": whole(), "graphs_of_class": COUNTS, "graphs_of_target": COUNTS},
    {"name": "graphs", "graphs": 0, "nodes": 0, "graphs_of_class": [], "graphs_of_target": []},
    more=anything,
)
ESTIMATE = record(
    {
        "task": choice(*TASKS),
        "metric": choice(*METRICS),
        "folds": whole(1),
        "split": text(),
        "scores": FIGURES,
        "baseline": mapping_of(optional(number())),
    },
    {"task": None, "metric": None, "split": RANDOM, "baseline": {}},
    more=anything,
)
ABOUT = record(
    {
        "data": DATA,
        "environment": mapping_of(SCALAR),
        "estimate": optional(ESTIMATE),
        "training": mapping_of(optional(SCALAR)),
        "searched": mapping_of(list_of(SCALAR)),
    },
    {"data": {}, "environment": {}, "estimate": None, "training": {}, "searched": {}},
    more=anything,
)
"""What is read of ``about_``; that of a file may say anything."""
OF_THE_NETWORK = (
    *("pool", "pool_options", "gnn", "hidden", "layers", "blocks", "n_models"),
    *("system", "system_options"),
)
NOT_SHOWN = (*OF_THE_NETWORK, "callback", "device", "encoder", "metric")


def model_facts(model: GraphEstimator) -> dict[str, Any]:
    """Return what a model predicts, its data, features, networks, settings, estimate and versions, as JSON.

    Args:
        model: The fitted estimator.

    Raises:
        DataError: If the file that the model was read from says something unexpected about its training.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.estimator import GraphClassifier
        >>> from sopool.estimator.model_facts import model_facts
        >>> facts = model_facts(GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(load("MUTAG")))
        >>> facts["task"], facts["data"]["graphs"], facts["features"]["nodes"]
        ('classification', 188, ['7 node labels'])
    """
    objective = model.objective_
    about = ABOUT(model.about_, "about")
    data = DATA(about["data"], "about.data")
    kind = "targets" if model.target_names_ else "classes"
    counts = data.pop("graphs_of_target"), data.pop("graphs_of_class")
    known = counts[kind == "classes"] or [None] * len(objective.names)
    if len(known) != len(objective.names):
        raise DataError(f"about.data has {len(known):,} counts of graphs for {len(objective.names):,} {kind}.")
    estimate = about["estimate"]
    return {
        "task": objective.task,
        kind: [{"name": name, "graphs": count} for name, count in zip(objective.names, known, strict=True)],
        "metric": objective.metric,
        "data": data,
        "columns": model.columns_.to_json(),
        "features": {
            "nodes": _node_features(model.encoder_),
            "edges": _edge_features(model),
            "graphs": [] if model.graph_encoder_ is None else list(model.graph_encoder_.names),
        },
        "network": _network(model),
        "searched": about["searched"],
        "settings": _settings(model) | about["training"] | {"best_epochs": model.best_epochs_},
        "estimate": None if estimate is None else _estimate(estimate),
        "environment": about["environment"],
    }


def _network(model: GraphEstimator) -> dict[str, Any]:
    """Say what the networks are: layers and a pooling, or a system that takes the place of both."""
    config = model.config_
    system = bool(config.system)
    return {
        "system": config.system or None,
        "system_options": config.pool_options | config.system_options if system else {},
        "gnn": None if system else config.gnn,
        "layers": None if system else config.layers,
        "hidden": config.hidden,
        "blocks": config.blocks,
        "pool": None if system else config.pool,
        "pool_options": {} if system else config.effective_options,
        "networks": len(model.best_epochs_),
        "parameters": sum(one[0].numel() for one in model.ensemble_.model.parameters()),
        "temperature": model.ensemble_.temperature,
    }


def _estimate(found: dict[str, Any]) -> dict[str, Any]:
    """Return an estimate with words for the new graphs that it is for, and without metrics of other versions."""
    try:
        words = new_graphs(found["split"])
    except KeyError as error:
        raise DataError(f"about.estimate.split is {found['split']!r}, which is not a split.") from error
    named = {
        part: {name: one for name, one in found[part].items() if name in METRICS} for part in ("scores", "baseline")
    }
    return found | named | {"new_graphs": words}


def _settings(model: GraphEstimator) -> dict[str, Any]:
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in NOT_SHOWN}
    if isinstance(given.get("class_weight"), dict):
        given["class_weight"] = [list(item) for item in given["class_weight"].items()]
    if not isinstance(given["random_state"], int):
        given["random_state"] = None
    return given


def _node_features(encoder: Encoder) -> list[str]:
    """Say what a model reads of nodes."""
    if isinstance(encoder, ConcatEncoder):
        return [words for part in encoder.parts for words in _node_features(part)]
    if isinstance(encoder, CategoryEncoder):
        return [f"categories: {listing([part.name for part in encoder.parts])}"]
    if isinstance(encoder, ConstantEncoder):
        return ["the same of every node"]
    if isinstance(encoder, NodeLabelEncoder | DegreeEncoder):
        return [f"{len(encoder.values):,} {'node labels' if isinstance(encoder, NodeLabelEncoder) else 'degrees'}"]
    if isinstance(encoder, AttributeEncoder):
        return [f"{encoder.width:,} attributes"]
    return [repr(encoder)]


def _edge_features(model: GraphEstimator) -> list[str]:
    """Say what a model reads of edges besides their ends."""
    edges = model.edge_encoder_
    if edges is None:
        return []
    return [
        *([f"{len(edges.values):,} edge labels"] if edges.labels else []),
        *([f"categories: {listing([column.name for column in edges.columns])}"] if edges.columns else []),
        *([f"{edges.width:,} attributes"] if edges.width else []),
        *(["weights"] if edges.weights else []),
    ]
