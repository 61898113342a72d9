"""The files of one run: JSON, and arrays with facts beside them (safetensors, no pickle). All are checked when read.

Every file of arrays carries a SHA-256 of itself, and the last one to be written those of the others: a bit that flips
on the disk, or files of two different saves side by side, are noticed and never taken for results.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from sopool._files.atomic import whole_file
from sopool._files.regular import read_regular
from sopool._files.schema import MOST_BYTES as MOST_JSON
from sopool._files.schema import Check, anything, blamed_on, parse_json, read_json, record, text
from sopool._files.sealed import MOST_FACTS, Sealed, check_seal, parse_facts, read_sealed, read_sealed_header, seal
from sopool.errors import DataError, UserError
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.schema import CURVE_FACTS, NO_FACTS, check_environment, check_run

FORMAT = "sopool run 1"
CONFIG, ENVIRONMENT = "config.json", "environment.json"
CURVES, PREDICTIONS, CHECKPOINT = "curves.safetensors", "predictions.safetensors", "checkpoint.safetensors"
MOST_BYTES = 2**33
HEADER = record({"format": text(), "run": text(), "facts": text(most=MOST_FACTS)}, more=anything)


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
    """Return the run in ``folder``, None if it is not complete; ``DataError`` if a file is not what was written."""
    if not (folder / CURVES).exists():
        return None
    try:
        return _read_run(folder, config)
    except FileNotFoundError as error:
        raise DataError("is missing.", error.filename) from error


def _read_run(folder: Path, config: RunConfig) -> Run:
    facts, curves = read_arrays(folder / CURVES, config.key, CURVE_FACTS)
    if _json_bytes(read_config(folder).to_json()) != _json_bytes(config.to_json()):
        raise DataError("the configuration of another run with the same key.", folder / CONFIG)
    environment = read_regular(folder / ENVIRONMENT, MOST_JSON)
    if hashlib.sha256(environment).hexdigest() != facts["environment"]:
        raise DataError(f"not the file that was written with {CURVES}.", folder / ENVIRONMENT)
    _, predictions = read_arrays(folder / PREDICTIONS, config.key, NO_FACTS)
    if predictions.digest != facts["predictions"]:
        raise DataError(f"not the file that was written with {CURVES}.", folder / PREDICTIONS)
    chosen_epoch = facts["chosen_epoch"]
    stopped = facts["stopped"]
    with blamed_on(folder, "not the figures of a run: "):
        check_run(config, curves.arrays, predictions.arrays, chosen_epoch, stopped)
    with blamed_on(folder / ENVIRONMENT):
        circumstances = check_environment(parse_json(environment))
    return Run(config, _to_numpy(curves), _to_numpy(predictions), chosen_epoch, stopped, circumstances)


def write_config(folder: Path, config: RunConfig) -> None:
    """Write the configuration, unless it is there; ``DataError`` for one that could not be read again.

    A file of an earlier version that says the same, with fewer words, stays as it is.
    """
    path = folder / CONFIG
    content = _json_bytes(config.to_json())
    if not (path.is_file() and _says(path, content)):
        RunConfig.from_json(parse_json(content))
        with whole_file(path) as temporary:
            temporary.write_bytes(content)


def _says(path: Path, content: bytes) -> bool:
    """Whether a file is the configuration that has this ``content`` if it is written now."""
    found = path.read_bytes()
    if found == content:
        return True
    try:
        return _json_bytes(RunConfig.from_json(parse_json(found)).to_json()) == content
    except UserError:
        return False


def read_config(folder: Path) -> RunConfig:
    """Return the configuration in a folder named by its key; ``DataError`` if it is damaged or of another version."""
    path = folder / CONFIG
    with blamed_on(path, "not the configuration of a run: damaged, or of another version: "):
        config = RunConfig.from_json(read_json(path))
    if config.key != folder.name:
        raise DataError(f"the configuration of run {config.key}, not of {folder.name}.", path)
    return config


def arrays_to_bytes(arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any], key: str) -> bytes:
    """A safetensors file of ``arrays`` from any device, with ``facts``, the run's key and a digest of it all."""
    return seal(arrays, {"format": FORMAT, "run": key, "facts": json.dumps(facts)})


def read_arrays(path: Path, key: str, facts: Check) -> tuple[dict[str, Any], Sealed]:
    """Return the facts and arrays that :func:`arrays_to_bytes` was given; ``DataError`` if a single bit is another."""
    return read_sealed(path, MOST_BYTES, partial(_facts, key=key, check=facts))


def read_facts(path: Path, key: str, facts: Check) -> dict[str, Any]:
    """Return the facts alone, from the head of a file, without a look at the arrays: for lists."""
    return read_sealed_header(path, MOST_BYTES, partial(_facts, key=key, check=facts))


def _facts(header: dict[str, str], key: str, check: Check) -> dict[str, Any]:
    about = HEADER(header, "the header")
    if about["format"] != FORMAT:
        raise DataError(f"expected {FORMAT!r}, found {about['format']!r}: written by another version or program.")
    if about["run"] != key:
        raise DataError(f"a file of run {about['run']}, not of {key}.")
    facts: dict[str, Any] = check(parse_facts(about["facts"]), "facts")
    return facts


def _json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _to_numpy(file: Sealed) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in file.arrays.items()}
