"""Fuzz targets for files that sopool keeps: each takes any bytes, and fails if they give anything but a ``DataError``.

Bytes that a mutator changed have a wrong digest, and would be refused before anything in them is looked at. So each
target puts the right one in its place, as a forger can.
"""

import hashlib
import json
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from sopool._files.sealed import BLANK, DIGEST, json_digest
from sopool.data.graphs import PackedGraphs
from sopool.data.sources.catalogue import load as load_dataset
from sopool.errors import DataError
from sopool.estimator import load_model
from sopool.experiments.reproduce.reproduction import load_reproduction
from sopool.experiments.systems.result import load_result
from sopool.training.runs.requests import FORMAT
from sopool.training.runs.store import RunStore
from tests.fuzz.registry import target
from tests.helpers.forging import facts_of, forge, key_of
from tests.helpers.stores import REQUEST

FIXTURES = Path(__file__).parents[1] / "fixtures"


def model_file(data: bytes) -> None:
    """Load a model and predict with it."""
    with quiet_folder() as folder, suppress(DataError):
        (folder / "model.sopool").write_bytes(sealed(data))
        load_model(folder / "model.sopool", device="cpu").predict(graphs())


def run_config(data: bytes) -> None:
    """List and load a run with this configuration."""
    key = "0" * 16
    with suppress(ValueError, RecursionError):  # no JSON
        key = key_of(json.loads(data))
    with quiet_folder() as folder:
        (folder / key).mkdir()
        (folder / key / "config.json").write_bytes(data)
        use_runs(folder)


def run_curves(data: bytes) -> None:
    """List and load a run with these curves."""
    with quiet_folder() as folder:
        write_run(folder, {"curves.safetensors": sealed(data)})
        use_runs(folder)


def run_predictions(data: bytes) -> None:
    """List and load a run with these predictions, which its curves are made to name."""
    content = sealed(data)
    found = DIGEST.search(content)
    curves = a_run()["curves.safetensors"]
    facts = facts_of(curves) | {"predictions": found[1].decode() if found else ""}
    with quiet_folder() as folder:
        files = {"predictions.safetensors": content, "curves.safetensors": forge(curves, facts=json.dumps(facts))}
        write_run(folder, files)
        use_runs(folder)


def run_checkpoint(data: bytes) -> None:
    """List an interrupted run with this checkpoint, and load that."""
    with quiet_folder() as folder:
        write_run(folder, {"checkpoint.safetensors": sealed(data)}, interrupted=True)
        use_runs(folder)


def dataset_facts(data: bytes) -> None:
    """Load what a store keeps of a data set."""
    with quiet_folder() as folder:
        (folder / "data").mkdir()
        (folder / "data" / "0b1074886d6d9366.safetensors").write_bytes(sealed(data))
        RunStore(folder).load_dataset("0b1074886d6d9366")


def request(data: bytes) -> None:
    """Load a request, under the name that its digest gives it."""
    content = data
    digest = "0" * 16
    with suppress(KeyError, RecursionError, TypeError, ValueError):
        plain = json.loads(data)
        digest = json_digest(plain["request"])
        content = json.dumps(plain | {"digest": digest}).encode()
    with quiet_folder() as folder:
        (folder / "requests").mkdir()
        (folder / "requests" / f"{digest[:16]}.json").write_bytes(content)
        RunStore(folder).load_requests()


def control_result(data: bytes) -> None:
    """Load the result of a control."""
    with quiet_folder() as folder:
        (folder / "key.json").write_bytes(with_digest(data, "result"))
        load_result(folder / "key.json")


def reproduced_table(data: bytes) -> None:
    """Load a reproduced table."""
    with quiet_folder() as folder, suppress(DataError):
        (folder / "table.json").write_bytes(with_digest(data))
        load_reproduction(folder / "table.json")


@cache
def stored_files() -> dict[str, bytes]:
    """Return the store among the fixtures, each file by its path."""
    with zipfile.ZipFile(FIXTURES / "store.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def seeds(ending: str, most: int = 3) -> list[bytes]:
    """Return some files of that store whose paths end so."""
    return [content for path, content in stored_files().items() if path.endswith(ending)][:most]


@cache
def graphs() -> PackedGraphs:
    """Return a few ordinary graphs."""
    return load_dataset("MUTAG").stretch(0, 5)


@cache
def a_run(interrupted: bool = False) -> dict[str, bytes]:
    """Return the files of the first run of that store that is complete, or is not."""
    ending = "checkpoint.safetensors" if interrupted else "curves.safetensors"
    folder = next(path for path in stored_files() if path.endswith(ending)).partition("/")[0]
    files = {path: content for path, content in stored_files().items() if path.startswith(folder)}
    return {path.partition("/")[2]: content for path, content in files.items()}


def write_run(folder: Path, changed: dict[str, bytes], interrupted: bool = False) -> None:
    """Write that run with some other files."""
    files = a_run(interrupted) | changed
    run = folder / key_of(json.loads(files["config.json"]))
    run.mkdir()
    for name, content in files.items():
        (run / name).write_bytes(content)


def use_runs(folder: Path) -> None:
    """List and load all runs of a store, and their checkpoints: what is damaged counts as not there."""
    store = RunStore(folder)
    for info in store.list():
        if info.config is not None:
            store.load(info.config)
            store.load_checkpoint(info.config)


def sealed(data: bytes) -> bytes:
    """Return the file with a right digest, if it has one at all."""
    found = DIGEST.search(data)
    if not found:
        return data
    start, end = found.span(1)
    digest = hashlib.sha256(data[:start] + BLANK.encode() + data[end:]).hexdigest()
    return data[:start] + digest.encode() + data[end:]


def with_digest(data: bytes, part: str | None = None) -> bytes:
    """Return the JSON with a right digest of all of it or of one ``part``, if it is JSON of that kind at all."""
    try:
        plain: Any = json.loads(data)
        plain.pop("digest", None)
        plain["digest"] = json_digest(plain if part is None else plain[part])
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return data
    return json.dumps(plain | ({} if part is None else {"key": "key"})).encode()


@contextmanager
def quiet_folder() -> Iterator[Path]:
    """Hand out a folder that goes away; nothing is said about damaged files meanwhile."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Path(folder)


TARGETS: dict[Callable[[bytes], None], list[bytes]] = {
    model_file: [path.read_bytes() for path in sorted(FIXTURES.glob("*.sopool"))],
    run_config: seeds("config.json"),
    run_curves: [a_run()["curves.safetensors"]],
    run_predictions: [a_run()["predictions.safetensors"]],
    run_checkpoint: [a_run(interrupted=True)["checkpoint.safetensors"]],
    dataset_facts: seeds("0b1074886d6d9366.safetensors"),
    request: [json.dumps({"format": FORMAT, "digest": "", "request": REQUEST.to_json()}).encode()],
    control_result: [content for path, content in stored_files().items() if path.startswith("controls/")],
    reproduced_table: [content for path, content in stored_files().items() if path.startswith("reproduce-")],
}
"""What takes any bytes, and bytes to begin from."""
WORDS = (b"0", b"-1", b"null", b"1e999", b"[]", b"{}", b'""', b"true", b"\x00", b"\xff", b"9" * 20, b'"x":')
for read, beginnings in TARGETS.items():
    target(*beginnings, words=WORDS)(read)
