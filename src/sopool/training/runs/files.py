"""Read and write the files of a run: JSON, and arrays with facts (safetensors, no pickle). All are checked when read.

Every file of arrays contains a SHA-256 digest of itself, and the last one to be written contains those of the others.
So a flipped bit on the disk, or files of two different saves, are detected and never used as results.
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
    """Write all four files; the curves are renamed into place last, which completes the run."""
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
        # The files are renamed into place in reverse order, so the curves come last.
        for name, content in {CURVES: curves, PREDICTIONS: predictions, ENVIRONMENT: environment}.items():
            files.enter_context(whole_file(folder / name)).write_bytes(content)


def read_run(folder: Path, config: RunConfig) -> Run | None:
    """Return the run in ``folder``, None if it is not complete; raise ``DataError`` if a file was changed."""
    if not (folder / CURVES).exists():
        return None
    try:
        return _read_run(folder, config)
    except FileNotFoundError as error:
        raise DataError("this file of a run is missing.", error.filename) from error


def _read_run(folder: Path, config: RunConfig) -> Run:
    facts, curves = read_arrays(folder / CURVES, config.key, CURVE_FACTS)
    if _json_bytes(read_config(folder).to_json()) != _json_bytes(config.to_json()):
        raise DataError("this is the configuration of another run with the same key.", folder / CONFIG)
    environment = read_regular(folder / ENVIRONMENT, MOST_JSON)
    if hashlib.sha256(environment).hexdigest() != facts["environment"]:
        raise DataError(f"this is not the file that was written with {CURVES}.", folder / ENVIRONMENT)
    _, predictions = read_arrays(folder / PREDICTIONS, config.key, NO_FACTS)
    if predictions.digest != facts["predictions"]:
        raise DataError(f"this is not the file that was written with {CURVES}.", folder / PREDICTIONS)
    chosen_epoch = facts["chosen_epoch"]
    stopped = facts["stopped"]
    with blamed_on(folder, "these are not the results of a run: "):
        check_run(config, curves.arrays, predictions.arrays, chosen_epoch, stopped)
    with blamed_on(folder / ENVIRONMENT):
        circumstances = check_environment(parse_json(environment))
    return Run(config, _to_numpy(curves), _to_numpy(predictions), chosen_epoch, stopped, circumstances)


def write_config(folder: Path, config: RunConfig) -> None:
    """Write the configuration unless it exists; raise ``DataError`` if it could not be read again.

    A file of an earlier version that describes the same configuration with fewer fields is left as it is.
    """
    path = folder / CONFIG
    content = _json_bytes(config.to_json())
    if not (path.is_file() and _says(path, content)):
        RunConfig.from_json(parse_json(content))
        with whole_file(path) as temporary:
            temporary.write_bytes(content)


def _says(path: Path, content: bytes) -> bool:
    """Return whether a file describes the configuration that is written as ``content`` now."""
    found = path.read_bytes()
    if found == content:
        return True
    try:
        return _json_bytes(RunConfig.from_json(parse_json(found)).to_json()) == content
    except UserError:
        return False


def read_config(folder: Path) -> RunConfig:
    """Return the configuration in a folder named by its key; raise ``DataError`` if it is damaged or unknown."""
    path = folder / CONFIG
    with blamed_on(path, "this is not the configuration of a run, or it is damaged or of another version: "):
        config = RunConfig.from_json(read_json(path))
    if config.key != folder.name:
        raise DataError(f"this is the configuration of run {config.key}, not of {folder.name}.", path)
    return config


def arrays_to_bytes(arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any], key: str) -> bytes:
    """Return a safetensors file of ``arrays`` from any device, with ``facts``, the run's key and a digest."""
    return seal(arrays, {"format": FORMAT, "run": key, "facts": json.dumps(facts)})


def read_arrays(path: Path, key: str, facts: Check) -> tuple[dict[str, Any], Sealed]:
    """Return the facts and arrays of :func:`arrays_to_bytes`; raise ``DataError`` if a single bit has changed."""
    return read_sealed(path, MOST_BYTES, partial(_facts, key=key, check=facts))


def read_facts(path: Path, key: str, facts: Check) -> dict[str, Any]:
    """Return only the facts, from the header of a file, without reading the arrays."""
    return read_sealed_header(path, MOST_BYTES, partial(_facts, key=key, check=facts))


def _facts(header: dict[str, str], key: str, check: Check) -> dict[str, Any]:
    about = HEADER(header, "the header")
    if about["format"] != FORMAT:
        raise DataError(
            f"the format is {about['format']!r}, expected {FORMAT!r}: another version or program wrote the file."
        )
    if about["run"] != key:
        raise DataError(f"this is a file of run {about['run']}, not of {key}.")
    facts: dict[str, Any] = check(parse_facts(about["facts"]), "facts")
    return facts


def _json_bytes(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _to_numpy(file: Sealed) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in file.arrays.items()}
