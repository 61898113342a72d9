"""One trained classifier, one file: weights (safetensors) with everything else as JSON in the header. No pickle.

A file may come from anywhere. Nothing in it is run, every number and name is checked, and no array is made that the
file does not hold.
"""

import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from sopool.data.base_encoder import Encoder
from sopool.data.edge_labels import EdgeLabelEncoder
from sopool.data.encoders import encoder_from_json
from sopool.data.errors import DataError
from sopool.data.names import plain
from sopool.data.sealed import check_seal, read_header, seal
from sopool.data.whole_file import whole_file
from sopool.estimator.ensemble import Ensemble
from sopool.models.classifier import Classifier
from sopool.models.config import ModelConfig
from sopool.models.make import make_model
from sopool.models.stack import named_tensors, stack_of
from sopool.nn.drawing import planning
from sopool.nn.own import source_of
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, READOUTS
from sopool.training.devices import choose_device

if TYPE_CHECKING:
    from sopool.estimator.classifier import GraphClassifier

KIND, VERSION = "sopool model", 1
MOST_BYTES, MOST_HEADER = 2**31, 2**26
MOST = {"hidden": 2**16, "layers": 256, "blocks": 3, "edge_labels": 2**16}
MOST_MODELS, MOST_CLASSES, MOST_TEXT = 2**12, 2**20, 2**26
PARTS = {"settings", "config", "encoder", "edge_labels", "classes", "best_epochs", "about"}
NOT_SAVED = ("callback", "device", "encoder")
LATER = {"average": 0.0}
"""Settings that earlier versions did not have, and what they did."""
CONFIG_LATER = {"pool_source": ""}
"""The same, of the configuration."""
CHANGED = (
    "The readout {!r} has another source than when the model was saved, so its predictions may be others: put the old "
    "class into sopool.nn.READOUTS, or fit the model again."
)
CLASS_TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str}

C = TypeVar("C", bound="GraphClassifier")


def write_model(model: "GraphClassifier", path: str | Path) -> None:
    """Whole or not at all, also if interrupted."""
    ensemble = model.ensemble_
    arrays = {f"model.{name}": tensor for name, tensor in named_tensors(ensemble.model).items()}
    arrays |= {f"history.{name}": torch.from_numpy(curve) for name, curve in model.history_.items()}
    facts = {
        "settings": _settings(model),
        "config": asdict(model.config_),
        "encoder": model.encoder_.to_json(),
        "edge_labels": None if model.edge_encoder_ is None else model.edge_encoder_.to_json(),
        "classes": {"dtype": _dtype(model.classes_), "values": model.classes_.tolist()},
        "best_epochs": model.best_epochs_,
        "about": model.about_,
    }
    header = {"format": f"{KIND} {VERSION}", "facts": json.dumps(facts)}
    content = seal(arrays | {"substitutes": ensemble.substitutes}, header)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def read_model(cls: type[C], path: str | Path, device: str = "auto") -> C:
    """What :func:`write_model` wrote; ``DataError`` for anything else."""
    place = choose_device(device)
    content = _content(Path(path))
    try:
        facts = _facts(content, path)
        check_seal(content, path)
        return _rebuild(cls, facts, load(content), device, place)
    except DataError as error:
        raise error if error.path else DataError(f"not a model that can be used: {error}", path) from error
    except (SafetensorError, KeyError, TypeError, ValueError, OverflowError, RecursionError, RuntimeError) as error:
        raise DataError(f"not a whole model file ({type(error).__name__}: {error}).", path) from error


def _content(path: Path) -> bytes:
    """The bytes of the file, if they are not too many."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}).", path) from error
    if len(content) > MOST_BYTES:
        raise DataError(f"larger than {MOST_BYTES:,} bytes: no model is.", path)
    if len(content) < 8 or int.from_bytes(content[:8], "little") > min(MOST_HEADER, len(content) - 8):
        raise DataError("not a whole model file, such as sopool fit writes.", path)
    return content


def _facts(content: bytes, path: str | Path) -> dict[str, Any]:
    header = read_header(content)
    kind, _, version = header["format"].rpartition(" ")
    if kind != KIND:
        raise DataError(f"expected a {KIND!r}, found {header['format']!r}.", path)
    if version != str(VERSION):
        raise DataError(
            f"a {KIND} of version {version}; this sopool reads version {VERSION}. Install a newer one.", path
        )
    facts = json.loads(header["facts"])
    if not isinstance(facts, dict) or set(facts) != PARTS:
        raise DataError(f"expected {sorted(PARTS)} in the header.", path)
    return facts


def _rebuild(cls: type[C], facts: dict[str, Any], arrays: dict[str, Tensor], device: str, place: str) -> C:
    encoder, config, classes = encoder_from_json(facts["encoder"]), _config(facts["config"]), _classes(facts["classes"])
    substitutes = _substitutes(arrays.pop("substitutes"), encoder.width)
    models = len(substitutes)
    history = {name: arrays.pop(name) for name in sorted(arrays) if name.startswith("history.")}
    stacked = _stack(config, encoder, len(classes), models, arrays)
    model = cls(**_given(facts["settings"], set(cls._get_param_names()), encoder), device=device)
    model.classes_, model.encoder_, model.config_ = classes, encoder, config
    model.edge_encoder_ = _edge_encoder(facts["edge_labels"], config)
    model.ensemble_ = Ensemble(stacked, encoder, substitutes, len(classes), model.edge_encoder_).to(place)
    model.history_ = {name.partition(".")[2]: _curve(curve, models) for name, curve in history.items()}
    model.best_epochs_ = [_whole(number, "best_epochs", 2**31) for number in facts["best_epochs"]]
    if len(model.best_epochs_) != models or not isinstance(facts["about"], dict):
        raise DataError("its facts do not fit together.")
    model.about_ = facts["about"]
    return model


def _stack(
    config: ModelConfig, encoder: Encoder, classes: int, models: int, arrays: Mapping[str, Tensor]
) -> Classifier:
    """The models, with the weights of the file, once names, types and shapes are what the configuration asks for."""
    with planning():  # takes no memory, whatever sizes the file names
        like = make_model(config, encoder.width, classes)
    expected = {f"model.{name}": (models, *tensor.shape) for name, tensor in named_tensors(like).items()}
    if set(arrays) != set(expected):
        odd = sorted(set(arrays) ^ set(expected))[0]
        raise DataError(
            f"its weights are not those of its configuration: {odd!r} is {'not ' * (odd in expected)}there."
        )
    for name, shape in expected.items():
        found = arrays[name]
        if tuple(found.shape) != shape or found.dtype != torch.float32:
            raise DataError(f"{name} is {found.dtype} {list(found.shape)}, expected {torch.float32} {list(shape)}.")
        if not bool(found.isfinite().all()):
            raise DataError(f"{name} holds numbers that are not finite.")
    return stack_of(like, {name.partition(".")[2]: arrays[name] for name in expected}).requires_grad_(False)


def _substitutes(found: Tensor, width: int) -> Tensor:
    fits = found.dtype == torch.int64 and found.dim() == 2 and found.shape[1] == width and 0 < len(found) <= MOST_MODELS
    if not fits or not 0 <= int(found.min()) <= int(found.max()) < width:
        raise DataError(f"substitutes are {found.dtype} {list(found.shape)}, expected columns of [models, {width}].")
    return found


def _edge_encoder(saved: Any, config: ModelConfig) -> EdgeLabelEncoder | None:
    found = None if saved is None else EdgeLabelEncoder.from_json(saved)
    if (0 if found is None else len(found.values)) != config.edge_labels:
        raise DataError(f"its edge labels are not the {config.edge_labels} of its configuration.")
    return found


def _curve(found: Tensor, models: int) -> np.ndarray:
    if found.dtype != torch.float64 or found.dim() != 2 or len(found) != models:
        raise DataError(f"a curve is {found.dtype} {list(found.shape)}, expected float64 [{models}, epochs].")
    return found.numpy()


def _config(saved: Any) -> ModelConfig:
    if not isinstance(saved, dict) or set(CONFIG_LATER | saved) != {item.name for item in fields(ModelConfig)}:
        raise DataError("its configuration has other settings than this version knows.")
    told = "pool_source" in saved
    saved = CONFIG_LATER | saved
    for item in fields(ModelConfig):
        name, value = item.name, saved[item.name]
        if name in MOST:
            _whole(value, name, MOST[name])
        elif name != "pool_options" and type(value) is not type(item.default):
            raise DataError(f"{name} is {value!r}, expected something like {item.default!r}.")
    if (pool := saved["pool"]) not in {*READOUTS, *GRAPH_READOUTS, *POOLINGS}:
        raise DataError(f"its pooling {pool!r} is not known here. One of your own goes into sopool.nn.READOUTS first.")
    if told and saved["pool_source"] != source_of(pool):
        warnings.warn(CHANGED.format(pool), stacklevel=5)
    options = saved["pool_options"]
    if not isinstance(options, dict):
        raise DataError("pool_options must be settings by name.")
    for name, value in options.items():
        for one in value if isinstance(value, list) and len(value) < 10 else [value]:
            if not (one is None or isinstance(one, str | bool) or (isinstance(one, int | float) and abs(one) <= 2**16)):
                raise DataError(f"pool_options: {name} is {value!r}, which no pooling takes.")
    return ModelConfig(**saved)


def _whole(value: Any, name: str, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise DataError(f"{name} is {value!r}, expected a whole number of at most {most:,}.")
    return value


def _dtype(classes: np.ndarray) -> str:
    return "str" if classes.dtype.kind == "U" else classes.dtype.name


def _classes(saved: Any) -> np.ndarray:
    """The classes, of the type they had; texts take as much room as the longest each, so that is looked at first."""
    values, dtype = saved["values"], np.dtype(str if saved["dtype"] == "str" else saved["dtype"])
    if not isinstance(values, list) or not 2 <= len(values) <= MOST_CLASSES or dtype.kind not in "biufUO":
        raise DataError("its classes are not a list of at least two.")
    plain = (str, int, bool, float) if dtype.kind == "O" else (CLASS_TYPES[dtype.kind],)
    if not all(type(value) in plain for value in values) or len(set(values)) < len(values):
        raise DataError(f"its classes are not distinct values of type {saved['dtype']}.")
    if dtype.kind == "U" and max(map(len, values)) * len(values) > MOST_TEXT:
        raise DataError("the names of its classes are too long.")
    if dtype.kind != "O":
        return np.array(values, dtype=None if dtype.kind == "U" else dtype)
    classes = np.empty(len(values), dtype=object)
    classes[:] = values
    return classes


def _settings(model: "GraphClassifier") -> dict[str, Any]:
    """What it was told, as JSON; an encoder of the user's own is there by what it learnt."""
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in NOT_SAVED}
    if isinstance(given["class_weight"], Mapping):
        given["class_weight"] = [list(item) for item in given["class_weight"].items()]
    if not isinstance(given["random_state"], int | np.integer):
        given["random_state"] = None
    return {name: plain(value) for name, value in given.items()} | {"own_encoder": model.encoder is not None}


def _given(saved: dict[str, Any], known: set[str], encoder: Encoder) -> dict[str, Any]:
    """The arguments that the classifier was made with."""
    saved = LATER | saved
    if set(saved) != known - set(NOT_SAVED) | {"own_encoder"}:
        raise DataError("its settings are not those that this version knows.")
    given = {name: value for name, value in saved.items() if name != "own_encoder"}
    if isinstance(given["class_weight"], list):
        given["class_weight"] = dict(given["class_weight"])
    return given | {"encoder": encoder if saved["own_encoder"] else None}
