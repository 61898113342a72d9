"""Read and write model files: weights in safetensors, everything else as JSON in the header, no pickle.

Files are not trusted: nothing in them is executed, every number and name is checked, and no array is allocated that the
file does not contain.
"""

import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from sopool._files.atomic import whole_file
from sopool._files.schema import (
    BOOLEAN,
    SCALAR,
    Array,
    Check,
    anything,
    blamed_on,
    check_arrays,
    choice,
    list_of,
    mapping_of,
    number,
    optional,
    record,
    text,
    whole,
)
from sopool._files.sealed import MOST_FACTS, parse_facts, read_sealed, seal
from sopool._runtime.devices import choose_device
from sopool._runtime.generators import planning
from sopool.data.features.edge_features import EdgeEncoder
from sopool.data.features.encoder import Encoder
from sopool.data.features.encoders import encoder_from_json
from sopool.data.features.graph_attributes import GraphAttributeEncoder
from sopool.data.features.node_features import NodeFeatures
from sopool.data.features.numbers import Moments
from sopool.data.formats.limits import MAX_TARGETS
from sopool.data.graphs import EDGE_FIELDS, NODE_FIELDS
from sopool.data.names import check_column_names, plain
from sopool.data.pack import Graph, pack
from sopool.errors import DataError
from sopool.estimator.base import GraphEstimator
from sopool.estimator.classifier import GraphClassifier
from sopool.estimator.ensemble import Ensemble
from sopool.estimator.regressor import GraphRegressor
from sopool.estimator.seen_graphs import SeenGraphs
from sopool.estimator.validation import check_settings
from sopool.models.base import Classifier
from sopool.models.config import ModelConfig
from sopool.models.make import make_model
from sopool.models.network import network_of
from sopool.models.presets import check_config
from sopool.models.stack import named_tensors, stack_of
from sopool.models.stackable import first_line
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, READOUTS, source_of
from sopool.objectives import LOSSES, METRICS, TASKS, MultiLabel, Objective, Regression, SingleLabel, Task
from sopool.objectives.calibration import COOLEST, HOTTEST
from sopool.training.bank.inputs import ModelInputs

KIND, VERSION, VERSIONS = "sopool model", 4, ("1", "2", "3", "4")
KINDS: dict[Task, type[GraphEstimator]] = {
    "classification": GraphClassifier,
    "multi-label": GraphClassifier,
    "regression": GraphRegressor,
}
MOST_BYTES = 2**31
MOST_OPTION = 2**16
MOST_MODELS = 2**12
MOST_CLASSES = 2**20
MOST_TEXT = 2**26
UNKNOWN = "any"
"""A label that may or may not be known."""
NOT_SAVED = ("callback", "checkpoints", "device", "encoder")
LATER = {"average": 0.0, "metric": None, "system": None, "system_options": None}
"""Settings that earlier versions did not have, with the values that correspond to their behavior."""
CHANGED = (
    "The source code of the readout {!r} has changed since the model was saved, so predictions may differ: register "
    "the old class in sopool.nn.READOUTS, or fit the model again."
)
CHANGED_SYSTEM = (
    "The system {!r} has version {}, but the model was saved with version {}, so predictions may differ: register the "
    "old one, or fit the model again."
)
CLASS_TYPES: dict[str, tuple[type, ...]] = {
    "b": (bool,),
    "i": (int,),
    "u": (int,),
    "f": (float,),
    "U": (str,),
    "O": (str, int, bool, float),
}
CLASS_DTYPES = (
    *("str", "object", "bool", "float16", "float32", "float64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)

HEADER = record({"format": text(), "facts": text(most=MOST_FACTS)}, more=anything)
DATA = record({"graphs": whole(), "nodes": whole()}, {"graphs": 0, "nodes": 0}, more=anything)
COLUMNS = optional(
    record({"smiles": optional(text()), "label": optional(text()), "targets": list_of(text(), most=MAX_TARGETS)})
)
SEEN = optional(list_of(choice(*NODE_FIELDS, *EDGE_FIELDS), most=len(NODE_FIELDS + EDGE_FIELDS)))
"""The fields that the hashes of training graphs depend on; None in files without hashes."""
HASHES = "seen.hashes"
"""The array of these hashes, which earlier files do not have."""
CLASSES = record({"dtype": choice(*CLASS_DTYPES), "values": list_of(SCALAR, least=2, most=MOST_CLASSES)})
OBJECTIVE = record(
    {
        "task": choice(*TASKS),
        "metric": choice(*METRICS),
        "loss": optional(choice(*LOSSES)),
        "targets": list_of(text(), most=MAX_TARGETS),
        "units": list_of(number(0), most=MAX_TARGETS),
        "flat": BOOLEAN,
    }
)
FACTS: dict[str, Check] = {
    "settings": mapping_of(anything),
    "config": anything,
    "encoder": anything,
    "classes": optional(CLASSES),
    "best_epochs": list_of(whole(0, 2**31), most=MOST_MODELS),
    "about": mapping_of(anything),
}
EARLIER: dict[str, Check] = {"edge_labels": anything}
THIRD: dict[str, Check] = {"objective": OBJECTIVE, "edges": anything, "graph_attributes": anything}
FOURTH: dict[str, Check] = {"temperature": optional(number(COOLEST, HOTTEST))}
"""Facts that a file of version 4 may lack."""
CHECKS = {
    "1": record(FACTS | EARLIER),
    "2": record(FACTS | EARLIER | {"objective": OBJECTIVE}),
    "3": record(FACTS | THIRD),
    "4": record(FACTS | THIRD | FOURTH, dict.fromkeys(FOURTH)),
}
FIRST: dict[str, Any] = {
    "task": "classification",
    "metric": "accuracy",
    "loss": None,
    "targets": [],
    "units": [],
    "flat": False,
}
"""What files of version 1, which have no objective, are for."""
SEED = optional(whole(0, 2**32 - 1))
CURVE = Array(("models", "epochs"), (torch.float64,), gaps=True)
HISTORY = ("history.loss", "history.validation_loss", "history.validation_score")

E = TypeVar("E", bound=GraphEstimator)


def write_model(model: GraphEstimator, path: str | Path) -> None:
    """Write a model file atomically: after an interruption ``path`` has its old content or all of the new one."""
    ensemble = model.ensemble_
    arrays = {f"model.{name}": tensor for name, tensor in named_tensors(ensemble.model).items()}
    arrays |= {f"history.{name}": torch.from_numpy(curve) for name, curve in model.history_.items()}
    facts = {
        "settings": _settings(model),
        "config": asdict(model.config_),
        "encoder": model.encoder_.to_json(),
        "edges": None if model.edge_encoder_ is None else model.edge_encoder_.to_json(),
        "graph_attributes": None if model.graph_encoder_ is None else model.graph_encoder_.to_json(),
        **_predicted(model),
        "best_epochs": model.best_epochs_,
        "about": model.about_ | _hashed(model),
        "temperature": ensemble.temperature,
    }
    header = {"format": f"{KIND} {VERSION}", "facts": json.dumps(facts)}
    content = seal(arrays | _units(ensemble) | _inputs(ensemble.inputs) | _seen(model), header)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def load_model(path: str | Path, device: str = "auto") -> GraphClassifier | GraphRegressor:
    """Read a model file, whatever kind of estimator wrote it.

    Args:
        path: The model file. It is checked, and nothing in it is executed.
        device: Where the models predict: ``"auto"`` (default), ``"cpu"`` or ``"cuda"``.

    Raises:
        DataError: If the file is not a valid model file.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sopool.data import make_measurements
        >>> from sopool.estimator import GraphRegressor, load_model
        >>> model = GraphRegressor(n_models=1, epochs=1, hidden=8, random_state=0).fit(make_measurements(40))
        >>> with TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "numbers.model")
        ...     type(load_model(Path(folder) / "numbers.model")).__name__
        'GraphRegressor'
    """
    found = read_model(path, device, GraphEstimator)
    assert isinstance(found, GraphClassifier | GraphRegressor)
    return found


def read_model(path: str | Path, device: str, wanted: type[E]) -> E:
    """Read a file that :func:`write_model` wrote; raise ``DataError`` for anything else.

    ``wanted`` is the class of the estimator; a base class stands for the one that wrote the file.
    """
    place = choose_device(device)
    try:
        facts, file = read_sealed(path, MOST_BYTES, _facts)
    except FileNotFoundError as error:
        raise DataError(
            "there is no such file. Expected a model written by sopool fit or GraphEstimator.save.", path
        ) from error
    except OSError as error:
        raise DataError(f"the model cannot be read ({error.strerror}).", path) from error
    with blamed_on(path, "this model cannot be used: "):
        model = _rebuild(_class_for(facts["objective"]["task"], wanted), facts, file.arrays, device, place)
        _try(model.ensemble_)
        return model


def _facts(header: dict[str, str]) -> dict[str, Any]:
    """Return the checked facts of a file's header."""
    about = HEADER(header, "the header")
    kind, _, version = about["format"].rpartition(" ")
    if kind != KIND:
        raise DataError(f"the format is {about['format']!r}, expected a {KIND!r}.")
    if version not in VERSIONS:
        raise DataError(
            f"this is a {KIND} of version {version}, but this version of sopool reads versions "
            f"{', '.join(VERSIONS[:-1])} and {VERSIONS[-1]}. Install a newer sopool."
        )
    facts: dict[str, Any] = CHECKS[version](parse_facts(about["facts"]), "facts")
    earlier = {"objective": FIRST, "edges": facts.pop("edge_labels", None), "graph_attributes": None}
    earlier |= dict.fromkeys(FOURTH)
    return earlier | facts | {"version": version}


def _class_for(task: Task, wanted: type[E]) -> type[E]:
    """Return the class for a model of this task; raise ``DataError`` if it is not one that is ``wanted``."""
    own = KINDS[task]
    if issubclass(wanted, own):
        return wanted  # a class of the user's that extends it
    if issubclass(own, wanted):
        return own
    raise DataError(f"it is a {own.__name__}, not a {wanted.__name__}: read it with {own.__name__}.load or load_model.")


def _rebuild(cls: type[E], facts: dict[str, Any], arrays: dict[str, Tensor], device: str, place: str) -> E:
    """Return the estimator that a file describes."""
    encoder = encoder_from_json(facts["encoder"])
    config = _config(facts["config"])
    classes = None if facts["classes"] is None else _classes(facts["classes"])
    objective = _objective(facts["objective"], classes)
    edge_encoder = _edge_encoder(facts["edges"], config)
    graph_encoder = _graph_encoder(facts["graph_attributes"], config)
    if "history.validation_accuracy" in arrays and facts["objective"] is FIRST:
        arrays = arrays | {"history.validation_score": arrays["history.validation_accuracy"]}
        del arrays["history.validation_accuracy"]
    with planning():  # allocates nothing, whatever sizes the file has
        like = make_model(config, encoder.width, objective.width)
    moments = {
        "nodes": encoder.moments,
        # The extras of a system's network have attributes of edges as they are.
        "edges": None if edge_encoder is None or config.system else edge_encoder.moments,
        "graphs": None if graph_encoder is None else graph_encoder.moments,
    }
    if facts["version"] in ("1", "2"):
        arrays = arrays | _shared_moments(moments, len(facts["best_epochs"]))
    models = _check_arrays(arrays, like, encoder.width, facts["best_epochs"], objective, moments)
    model = cls(**_given(facts["settings"], set(cls._get_param_names()), encoder), device=device)
    model._learn(objective, classes, facts["objective"]["flat"])
    model.encoder_ = encoder
    model.config_ = config
    model.edge_encoder_ = edge_encoder
    model.graph_encoder_ = graph_encoder
    each = _objectives(objective, arrays, models.models)
    inputs = ModelInputs(arrays["substitutes"], **_saved_moments(arrays, moments))
    temperature = facts["temperature"]
    if temperature is not None and objective.task == "regression":
        raise DataError(f"it has the temperature {temperature}, expected none for a regression.")
    model.ensemble_ = Ensemble(models, encoder, inputs, each, edge_encoder, graph_encoder, temperature).to(place)
    model.history_ = {name.partition(".")[2]: arrays[name].numpy() for name in HISTORY}
    model.best_epochs_ = facts["best_epochs"]
    model.about_ = facts["about"]
    DATA(model.trained_on_, "about.data")
    COLUMNS(model.about_.get("columns"), "about.columns")
    model.seen_graphs_ = _seen_graphs(model, arrays)
    return model


def _check_arrays(
    arrays: dict[str, Tensor],
    like: Classifier,
    width: int,
    best_epochs: list[int],
    objective: Objective,
    moments: dict[str, Moments | None],
) -> Classifier:
    """Return models like ``like`` with the weights of the file, after checking all arrays."""
    weights = {f"model.{name}": tensor for name, tensor in named_tensors(like).items()}
    expected = {name: Array(("models", *one.shape), (_saved_as(one),)) for name, one in weights.items()}
    expected["substitutes"] = Array(("models", width), (torch.int64,), low=0, high=width - 1)
    expected |= dict.fromkeys(HISTORY, CURVE)
    if HASHES in arrays:
        expected[HASHES] = Array(("seen",), (torch.int64,))
    if objective.chosen_by.share:
        expected["history.validation_score"] = CURVE._replace(low=0, high=1)
    for kind, found in moments.items():
        if found is not None:
            shape = ("models", found.shift.numel())
            expected[f"{kind}.shift"] = Array(shape, (torch.float64,))
            expected[f"{kind}.scale"] = Array(shape, (torch.float64,), low=sys.float_info.min)
    for name, low in UNITS.items() if objective.task == "regression" else ():
        expected[name] = Array(("models", objective.width), (torch.float64,), low=low)
    sizes = check_arrays(arrays, expected)
    if not 1 <= sizes["models"] <= MOST_MODELS or len(best_epochs) != sizes["models"]:
        raise DataError(
            f"there are {sizes['models']} models and {len(best_epochs)} best epochs, expected one for each model."
        )
    if max(best_epochs) >= sizes["epochs"]:
        raise DataError(
            f"best_epochs has {max(best_epochs)}, expected numbers below {sizes['epochs']}, the number of epochs."
        )
    return stack_of(like, {name.partition(".")[2]: arrays[name] for name in weights}).requires_grad_(False)


def _saved_as(tensor: Tensor) -> torch.dtype:
    """Return the type in which models have a parameter or buffer; other than numbers, networks of users have any."""
    return torch.float32 if tensor.is_floating_point() else tensor.dtype


UNITS = {"objective.scale": 0.0, "objective.shift": None}
"""The arrays of the units in which the models of a regression were trained, with the lowest values."""


def _predicted(model: GraphEstimator) -> dict[str, Any]:
    """Return what is predicted, as JSON."""
    objective = model.objective_
    classes = model.classes_ if isinstance(model, GraphClassifier) and not model.target_names_ else None
    told = {"loss": None, **objective.settings, "targets": model.target_names_, "units": [], "flat": False}
    if isinstance(objective, Regression):
        told["units"] = list(objective.units)
    if isinstance(model, GraphRegressor):
        told["flat"] = model.flat_
    values = None if classes is None else {"dtype": _dtype(classes), "values": classes.tolist()}
    return {"objective": told, "classes": values}


def _inputs(inputs: ModelInputs) -> dict[str, Tensor]:
    """Return the arrays that say how each model takes the features of graphs."""
    named = inputs._asdict()
    arrays = {"substitutes": named.pop("substitutes")}
    for kind, moments in named.items():
        if moments is not None:
            arrays |= {f"{kind}.shift": moments.shift, f"{kind}.scale": moments.scale}
    return arrays


def _hashed(model: GraphEstimator) -> dict[str, Any]:
    """Return what the hashes of training graphs depend on, if there are hashes."""
    return {} if model.seen_graphs_ is None else {"hashed": list(model.seen_graphs_.fields)}


def _seen(model: GraphEstimator) -> dict[str, Tensor]:
    """Return the hashes of training graphs, if there are some."""
    return {} if model.seen_graphs_ is None else {HASHES: torch.from_numpy(model.seen_graphs_.hashes)}


def _seen_graphs(model: GraphEstimator, arrays: dict[str, Tensor]) -> SeenGraphs | None:
    """Return the hashes of training graphs, taken out of what a file says about the training."""
    fields = SEEN(model.about_.pop("hashed", None), "about.hashed")
    if (fields is None) != (HASHES not in arrays):
        raise DataError(f"it has only one of about.hashed and the array {HASHES}, expected both or neither.")
    return None if fields is None else SeenGraphs(arrays[HASHES].numpy(), fields, model.ensemble_.fields)


def _saved_moments(arrays: dict[str, Tensor], moments: dict[str, Moments | None]) -> dict[str, Moments]:
    """Return the moments of each model of a file, for the kinds of numbers that its encoders have."""
    kinds = [kind for kind, found in moments.items() if found is not None]
    return {kind: Moments(arrays[f"{kind}.shift"], arrays[f"{kind}.scale"]) for kind in kinds}


def _shared_moments(moments: dict[str, Moments | None], models: int) -> dict[str, Tensor]:
    """Return the arrays that files of versions 1 and 2 lack: all models have the moments of the encoder."""
    return {
        f"{kind}.{name}": tensor.expand(models, -1)
        for kind, found in moments.items()
        if found is not None
        for name, tensor in found._asdict().items()
    }


def _units(ensemble: Ensemble) -> dict[str, Tensor]:
    """Return the units in which the models of a regression were trained ``[M, T]``."""
    if not isinstance(ensemble.objectives[0], Regression):
        return {}
    units = zip(*(objective.scaling for objective in ensemble.objectives), strict=True)
    return {name: torch.from_numpy(np.stack(each)) for name, each in zip(UNITS, units, strict=True)}


def _objective(saved: dict[str, Any], classes: np.ndarray | None) -> Objective:
    """Return what the models of a file predict; raise ``DataError`` if its facts contradict each other."""
    task = saved["task"]
    targets = saved["targets"]
    fits = (classes is None) != (task == "classification") and bool(targets) == (classes is None)
    units = len(saved["units"]) == (len(targets) if task == "regression" else 0)
    losses = (saved["loss"] is None) != (task == "regression")
    if not (fits and units and losses and task in METRICS[saved["metric"]].tasks):
        raise DataError(f"its classes, targets, units, loss and metric are not those of a {task}.")
    if saved["flat"] and (task != "regression" or len(targets) > 1):
        raise DataError("objective.flat is true, expected false for anything but a single number.")
    if classes is not None:
        return SingleLabel(tuple(classes.tolist()), metric=saved["metric"])
    check_column_names("target", targets)
    if task == "multi-label":
        return MultiLabel(tuple(targets), metric=saved["metric"])
    return Regression(tuple(targets), saved["metric"], saved["loss"], tuple(saved["units"]))


def _objectives(objective: Objective, arrays: dict[str, Tensor], models: int) -> tuple[Objective, ...]:
    """Return what each model predicts, in the units that it was trained in."""
    if not isinstance(objective, Regression):
        return (objective,) * models
    units = zip(*(arrays[name].tolist() for name in UNITS), strict=True)
    return tuple(replace(objective, scale=tuple(scale), shift=tuple(shift)) for scale, shift in units)


def _try(ensemble: Ensemble) -> None:
    """Raise ``DataError`` unless the models can predict two small graphs."""
    path = Graph(3, [(0, 1), (1, 0), (1, 2), (2, 1)], **_edges_like(ensemble, 4))
    point = Graph(1, **_edges_like(ensemble, 0))
    graphs = [path, point]
    if ensemble.graphs is not None:
        graphs = [replace(graph, graph_attributes=dict.fromkeys(ensemble.graphs.names, 0.0)) for graph in graphs]
    first = torch.zeros(4, 1, dtype=torch.int32)  # all nodes have the first feature
    features = NodeFeatures(first, torch.full((ensemble.encoder.width,), -1))
    try:
        ensemble.scores(pack(graphs), features)
    except Exception as error:  # a pooling may raise anything for unexpected options
        raise DataError(f"its networks fail on a small graph: {first_line(error)}") from error


def _edges_like(ensemble: Ensemble, count: int) -> dict[str, Any]:
    """Return what ``count`` edges need for these models: unknown labels and categories, and weights of 1."""
    edges = ensemble.edges
    if edges is None:
        return {}
    columns = {column.name: [UNKNOWN] * count for column in edges.columns}
    return {
        "edge_labels": [UNKNOWN] * count if edges.labels else None,
        "edge_categories": columns or None,
        "edge_attributes": np.zeros((count, edges.width)) if edges.attributes else None,
        "edge_weights": [1.0] * count if edges.weights else None,
    }


def _edge_encoder(saved: Any, config: ModelConfig) -> EdgeEncoder | None:
    found = None if saved is None else EdgeEncoder.from_json(saved)
    encoder = found or EdgeEncoder(labels=False)
    used = (
        len(encoder.values),
        [len(column.values) for column in encoder.columns],
        encoder.width,
        encoder.weights,
    )
    expected = (config.edge_labels, config.edge_categories, config.edge_attributes, config.edge_weights)
    for name, one, other in zip(("labels", "categories", "attributes", "weights"), used, expected, strict=True):
        if one != other:
            raise DataError(f"its edges have {one} {name}, expected {other} as in its configuration.")
    return found


def _graph_encoder(saved: Any, config: ModelConfig) -> GraphAttributeEncoder | None:
    found = None if saved is None else GraphAttributeEncoder.from_json(saved)
    names = [] if found is None else found.names
    if len(names) != config.graph_attributes:
        raise DataError(
            f"it has {len(names)} graph attributes, expected {config.graph_attributes} as in its configuration."
        )
    return found


def _config(saved: Any) -> ModelConfig:
    config = ModelConfig.from_json(saved)
    if config.system:
        version = network_of(config.system).model.system_version
        if version != config.system_version:
            warnings.warn(CHANGED_SYSTEM.format(config.system, version, config.system_version), stacklevel=5)
    elif config.pool not in {*READOUTS, *GRAPH_READOUTS, *POOLINGS}:
        raise DataError(
            f"its pooling {config.pool!r} is not known. If it is your own, register it in sopool.nn.READOUTS first."
        )
    elif "pool_source" in saved and config.pool_source != source_of(config.pool):
        warnings.warn(CHANGED.format(config.pool), stacklevel=5)
    what = "system" if config.system else "pooling"
    for name, value in (config.effective_options | config.system_options).items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, int | float) and abs(one) > MOST_OPTION:  # a custom pooling may allocate that much
                raise DataError(f"the {what}'s {name} is {one}, expected a number of at most {MOST_OPTION:,}.")
    check_config(config)
    return config


def _dtype(classes: np.ndarray) -> str:
    return "str" if classes.dtype.kind == "U" else classes.dtype.name


def _classes(saved: dict[str, Any]) -> np.ndarray:
    """Return the classes with their original type."""
    values = saved["values"]
    name = saved["dtype"]
    dtype = np.dtype(str if name == "str" else name)
    if not all(type(value) in CLASS_TYPES[dtype.kind] for value in values) or len(set(values)) < len(values):
        raise DataError(f"classes.values are not distinct values of type {name}.")
    # An array of strings takes as much memory for each as for the longest one.
    if dtype.kind == "U" and max(map(len, values)) * len(values) > MOST_TEXT:
        raise DataError(f"classes.values are too long, expected at most {MOST_TEXT:,} characters in all.")
    if dtype.kind == "O":
        classes = np.empty(len(values), dtype=object)
        classes[:] = values
        return classes
    try:
        with np.errstate(over="ignore"):
            classes = np.array(values, dtype=None if dtype.kind == "U" else dtype)
    except OverflowError:
        classes = np.empty(0)
    if classes.tolist() != values:
        raise DataError(f"classes.values are not values that {name} can hold.")
    return classes


def _settings(model: GraphEstimator) -> dict[str, Any]:
    """Return the estimator's arguments as JSON; a custom encoder is stored in its fitted state."""
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in NOT_SAVED}
    if isinstance(given.get("class_weight"), Mapping):
        given["class_weight"] = [list(item) for item in given["class_weight"].items()]
    if not isinstance(given["random_state"], int | np.integer):
        given["random_state"] = None
    return {name: plain(value) for name, value in given.items()} | {"own_encoder": model.encoder is not None}


def _given(saved: dict[str, Any], known: set[str], encoder: Encoder) -> dict[str, Any]:
    """Return the estimator's arguments from a file, with the checks for user input."""
    saved = LATER | saved
    if set(saved) != known - set(NOT_SAVED) | {"own_encoder"}:
        raise DataError("its settings are not those of this version of sopool.")
    given = {name: value for name, value in saved.items() if name != "own_encoder"}
    if "class_weight" in given:
        given["class_weight"] = _class_weight(given["class_weight"])
    SEED(given["random_state"], "settings.random_state")
    given["encoder"] = encoder if BOOLEAN(saved["own_encoder"], "settings.own_encoder") else None
    check_settings(given | {"device": "auto", "callback": None})
    return given


def _class_weight(saved: Any) -> Any:
    """Return class weights, which are stored as pairs because JSON keys can only be text."""
    if saved is None or saved == "balanced":
        return saved
    pairs = list_of(list_of(SCALAR, least=2, most=2), most=MOST_CLASSES)(saved, "settings.class_weight")
    return {name: number()(weight, "settings.class_weight") for name, weight in pairs}
