"""Write small models, runs and graphs with this version, as fixtures for tests of later versions.

    python tools/make_fixtures.py tests/fixtures/2026-11

The graphs are those in the package. The description of the machine in the files is fictitious, and the accuracies have
no meaning, because models are trained for two epochs of two steps.
"""

import argparse
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
from typer.testing import CliRunner

from sopool import GraphClassifier, __version__
from sopool.cli import app
from sopool.data import PackedGraphs, load, save_graphs
from sopool.experiments.summary import summarise
from sopool.training.runs.store import RunStore

MADE_UP = {
    "sopool": __version__,
    "python": "3.11",
    "torch": "2",
    "torch-geometric": "2",
    "numpy": "2",
    "numba": "0",
    "platform": "Linux",
    "device": "cpu",
    "threads": 1,
    "commit": None,
}
GRAPHS = 8
"""The number of graphs that are predicted and stored."""

SMALL = {"hidden": 4, "layers": 2, "n_models": 1, "epochs": 2, "steps": 2, "batch_size": 16}
MODELS: dict[str, dict[str, Any]] = {
    "m-attn": {"pool": "sopool-m-attn", "n_models": 2},
    "covpool": {"pool": "covpool"},
    "attn": {"pool": "sopool-attn", "n_models": 2},
    "attnpool": {"pool": "attnpool"},
    "sortpool": {"pool": "sortpool", "hidden": 2},
    "topkpool": {"pool": "topkpool"},
    "sagpool": {"pool": "sagpool"},
    "diffpool": {"pool": "diffpool"},
    "eigenpool": {"pool": "eigenpool"},
    "m-attn-blocks": {"pool": "sopool-m-attn", "blocks": 2, "n_models": 2},
    "topkpool-blocks": {"pool": "topkpool", "blocks": 2, "lr": 0.1, "average": 0.0},
    "diffpool-blocks": {"pool": "diffpool", "blocks": 2},
    "eigenpool-blocks": {"pool": "eigenpool", "blocks": 2},
    "covpool-rank": {"pool": "covpool", "pool_options": {"rank": 4, "moments": [1, 2]}, "weight_decay": 0.001},
    "bonds": {"pool": "sopool-bimap", "pool_options": {"rank": 4}, "gnn": "gine"},
    "balanced": {"pool": "sopool", "class_weight": "balanced", "data": "SOLUBILITY"},
}
"""Most use the default options of a pooling, which are not in the files and must therefore never change."""

LITTLE = "--folds 2 --epochs 2 --steps 2 --device cpu --workers 1"
FINISHED = (
    "evaluate MUTAG --pool sum,sopool-m-attn,covpool,sortpool,sum-avg --protocol per-fold-max,fair --hidden 2,3 "
    f"{LITTLE}",
    f"evaluate MUTAG --pool sopool-m-attn --protocol per-fold-max,fair --hidden 2,3 --seed 1 {LITTLE}",
    f"evaluate MUTAG --pool sopool-m-attn --blocks 2 --protocol per-fold-max --hidden 2,3 {LITTLE}",
    "controls MUTAG --controls majority,size,histogram --folds 2",
    "reproduce table2 --datasets MUTAG --pools sum-avg,sopool-bimap --protocol per-fold-max --hidden 2 --batch-size 32 "
    f"--no-controls {LITTLE}",
)
INTERRUPTED = (
    f"evaluate MUTAG --pool sopool-m-attn --protocol per-fold-max --hidden 2 --seed 7 {LITTLE}",
    f"evaluate MUTAG --pool sopool-m-attn --blocks 2 --protocol fair --hidden 2,3 --seed 7 {LITTLE}",
)
"""These commands stop after the first epoch of their first models."""


def write_models(folder: Path) -> None:
    """Write a file for each of ``MODELS``, and the probabilities that they predict for the first graphs."""
    expected = {}
    for name, own in MODELS.items():
        settings = SMALL | own
        graphs = load(settings.pop("data", "MUTAG"))
        model = GraphClassifier(**settings, device="cpu", random_state=0).fit(graphs)
        model.save(folder / f"model-{name}.sopool")
        expected[name] = predictions(model, graphs[:GRAPHS])
    write_json(folder / "model-predictions.json", expected)


def predictions(model: GraphClassifier, graphs: PackedGraphs) -> list[list[float] | None]:
    """Return the probabilities of each graph, or None if they depend on the eigenvectors that a machine finds.

    EigenPool's eigenvectors are not unique if a graph is symmetric, so they are computed again with nodes in other
    orders.
    """
    found = model.predict_proba(graphs)
    with mock.patch("numpy.linalg.eigh", shuffled(np.linalg.eigh)):
        others = [model.predict_proba(graphs) for _ in range(5)]
    sure = np.abs(found - others).max((0, 2)) < 1e-6
    return [row.round(6).tolist() if same else None for row, same in zip(found, sure, strict=True)]


def shuffled(eigh: Any) -> Any:
    """Return a function like ``eigh`` that orders rows and columns differently in each call."""
    draw = np.random.default_rng(0)

    def found(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = draw.permutation(matrix.shape[-1])
        values, vectors = eigh(matrix[..., order[:, None], order])
        return values, vectors[..., np.argsort(order), :]

    return found


def write_store(folder: Path) -> None:
    """Write the runs of all commands as ``store.zip``, and the commands and the names of all runs as ``store.json``."""
    with TemporaryDirectory() as runs:
        for command in FINISHED:
            call(command, runs, 0)
        with mock.patch("sopool.cli.progress.Interruption.__call__", return_value=True):
            for command in INTERRUPTED:
                call(command, runs, 130)
        facts = {"finished": FINISHED, "interrupted": INTERRUPTED} | contents(RunStore(runs))
        pack(Path(runs), folder / "store.zip")
    write_json(folder / "store.json", facts)


def contents(store: RunStore) -> dict[str, Any]:
    """Return the names of the runs in a store, and what a report on it contains, without results."""
    found = summarise(store)
    return {
        "entries": [[one.network, one.pool, list(one.seeds), sorted(one.outcomes)] for one in found.entries],
        "controls": [one.control for one in found.controls],
        "tables": [one.table for one in found.reproductions],
        "runs": dict(sorted((info.key, info.kind) for info in store.list())),
    }


def call(command: str, runs: str, code: int) -> None:
    """Run ``sopool`` with this folder of runs; raise unless it ends with this exit code."""
    done = CliRunner().invoke(app, [*command.split(), "--runs", runs])
    if done.exit_code != code:
        raise RuntimeError(f"sopool {command} ended with {done.exit_code}: {done.output}") from done.exception


def pack(runs: Path, target: Path) -> None:
    """Write the files of a store, without its locks, as a zip without time stamps."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(runs.rglob("*")):
            if path.suffix in (".json", ".safetensors"):
                name = zipfile.ZipInfo(path.relative_to(runs).as_posix())
                archive.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED)


def write_json(path: Path, facts: dict[str, Any]) -> None:
    """Write indented JSON."""
    path.write_text(json.dumps(facts, indent=1) + "\n")


@contextmanager
def made_up_machine() -> Iterator[None]:
    """Make all files describe the same fictitious machine, and leave the user's cache alone."""
    with TemporaryDirectory() as cache, mock.patch.dict(os.environ, SOPOOL_CACHE=cache):
        os.environ.pop("SOPOOL_DATA", None)
        with (
            mock.patch("sopool.training.trainer.environment", return_value=MADE_UP),
            mock.patch("sopool.training.trainer.peak_memory", return_value=1000),
            mock.patch("sopool.estimator.fitting.environment", return_value=MADE_UP),
        ):
            yield


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all fixtures to a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where they are written to; it is made")
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True)
    with made_up_machine():
        write_models(folder)
        write_store(folder)
        for name in ("MUTAG", "SOLUBILITY"):
            save_graphs(load(name)[:GRAPHS], folder / f"{name}.graphs")
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>8,} {path.name}")


if __name__ == "__main__":
    main()
