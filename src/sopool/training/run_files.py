"""The files of one run: JSON, and arrays with facts beside them (safetensors, no pickle). All are checked when read.

Every file of arrays carries a SHA-256 of itself, and the last one to be written those of the others: a bit that flips
on the disk, or files of two different saves side by side, are noticed and never taken for results.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load
from torch import Tensor

from sopool.data.errors import DataError
from sopool.data.sealed import check_seal, read_header, seal
from sopool.data.whole_file import whole_file
from sopool.training.config import RunConfig
from sopool.training.record import Run

FORMAT = "sopool run 1"
CONFIG, ENVIRONMENT = "config.json", "environment.json"
CURVES, PREDICTIONS, CHECKPOINT = "curves.safetensors", "predictions.safetensors", "checkpoint.safetensors"


def write_run(folder: Path, run: Run) -> None:
    """All four files; the curves take their name last, and with them the run is complete."""
    environment = _json_bytes(run.environment)
    predictions = arrays_to_bytes(run.predictions, {}, run.config.key)
    facts = {
        "chosen_epoch": run.chosen_epoch,
        "stopped": run.stopped,
        "environment": hashlib.sha256(environment).hexdigest(),
        "predictions": check_seal(predictions, folder / PREDICTIONS),
    }
    curves = arrays_to_bytes(run.curves, facts, run.config.key)
    write_config(folder, run.config)
    with ExitStack() as files:
        # Left in the reverse order: curves last.
        for name, content in {CURVES: curves, PREDICTIONS: predictions, ENVIRONMENT: environment}.items():
            files.enter_context(whole_file(folder / name)).write_bytes(content)


def read_run(folder: Path, config: RunConfig) -> Run | None:
    """The run in ``folder``, None if it is not complete; ``DataError`` if one of its files is not what was written."""
    if not (folder / CURVES).exists():
        return None
    try:
        return _read_run(folder, config)
    except FileNotFoundError as error:
        raise DataError("is missing.", error.filename) from error


def _read_run(folder: Path, config: RunConfig) -> Run:
    curves, facts = arrays_from_bytes((folder / CURVES).read_bytes(), folder / CURVES, config.key)
    if _json_bytes(read_config(folder).to_json()) != _json_bytes(config.to_json()):
        raise DataError("the configuration of another run with the same key.", folder / CONFIG)
    environment, predictions = (folder / ENVIRONMENT).read_bytes(), (folder / PREDICTIONS).read_bytes()
    if hashlib.sha256(environment).hexdigest() != facts["environment"]:
        raise DataError(f"not the file that was written with {CURVES}.", folder / ENVIRONMENT)
    if check_seal(predictions, folder / PREDICTIONS) != facts["predictions"]:
        raise DataError(f"not the file that was written with {CURVES}.", folder / PREDICTIONS)
    return Run(
        config=config,
        curves=_to_numpy(curves),
        predictions=_to_numpy(arrays_from_bytes(predictions, folder / PREDICTIONS, config.key)[0]),
        chosen_epoch=facts["chosen_epoch"],
        stopped=facts["stopped"],
        environment=json.loads(environment),
    )


def write_config(folder: Path, config: RunConfig) -> None:
    """The configuration, unless it is there."""
    path, content = folder / CONFIG, _json_bytes(config.to_json())
    if not path.is_file() or path.read_bytes() != content:
        with whole_file(path) as temporary:
            temporary.write_bytes(content)


def read_config(folder: Path) -> RunConfig:
    """The configuration in a folder named by its key; ``DataError`` if it is damaged or of another version."""
    path = folder / CONFIG
    try:
        config = RunConfig.from_json(json.loads(path.read_bytes()))
        if config.key == folder.name:
            return config
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"not the configuration of a run: damaged, or of another version ({error}).", path) from error
    raise DataError(f"the configuration of run {config.key}, not of {folder.name}.", path)


def arrays_to_bytes(arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any], key: str) -> bytes:
    """A safetensors file of ``arrays`` from any device, with ``facts``, the run's key and a digest of it all."""
    return seal(arrays, {"format": FORMAT, "run": key, "facts": json.dumps(facts)})


def arrays_from_bytes(content: bytes, path: Path, key: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The arrays and facts that :func:`arrays_to_bytes` was given; ``DataError`` if a single bit is another."""
    check_seal(content, path)
    return load(content), _facts(content, path, key)


def read_facts(path: Path, key: str) -> dict[str, Any]:
    """The facts alone, from the head of a file, without a look at the arrays: for lists."""
    # Not with safe_open: it calls every file that cannot be opened, for whatever reason, one that does not exist.
    with path.open("rb") as file:
        length = file.read(8)
        head = length + file.read(min(int.from_bytes(length, "little"), path.stat().st_size))
    return _facts(head, path, key)


def _facts(content: bytes, path: Path, key: str) -> dict[str, Any]:
    try:
        about = read_header(content)
        found, run, facts = about["format"], about["run"], json.loads(about["facts"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError("not a whole file of a run: its header cannot be read.", path) from error
    if found != FORMAT:
        raise DataError(f"expected {FORMAT!r}, found {found!r}: written by another version or program.", path)
    if run != key:
        raise DataError(f"a file of run {run}, not of {key}.", path)
    return dict(facts)


def _json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _to_numpy(arrays: dict[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in arrays.items()}
