"""Run a control, or find that it was run; read all that were."""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np

from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, check_name
from sopool.experiments.systems.fair import judge_control
from sopool.experiments.systems.registry import CONTROLS
from sopool.experiments.systems.result import ControlResult, load_result, save_result
from sopool.training.protocols.outcome import average
from sopool.training.runs.layout import CONTROL_FILES, path_of


def run_control(
    name: str, store: PackedGraphs, folds: int = 10, seed: int = 0, runs_folder: str | Path | None = None
) -> ControlResult:
    """A control on the folds, and the held-out graphs, that networks with this ``seed`` have under ``fair``.

    With a ``runs_folder`` the result is kept there, and not computed again; a damaged one is, with a warning.
    """
    check_name("control", name, CONTROLS)
    store = store.to("cpu")
    if store.labels is None:
        raise DataError(f"{store.name} has no labels: there is nothing to classify.")
    control = CONTROLS[name]
    fingerprint = content_key(store)
    facts = {"control": name, "version": control.version, "data": fingerprint, "folds": folds, "seed": seed}
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    path = None if runs_folder is None else path_of(Path(runs_folder), CONTROL_FILES, key)
    if path is not None and (kept := load_result(path)) is not None:
        return replace(kept, dataset=store.name)
    import_module("sklearn.svm")  # now: the seconds it takes are nobody's
    start = time.perf_counter()
    codes, labels = np.unique(store.labels.numpy(), return_inverse=True)
    names = [store.classes[code] for code in codes]
    outcome, settings = judge_control(control.views(store), labels, folds, seed, names)
    seconds = time.perf_counter() - start
    found = (outcome, round(seconds, 3), tuple(settings), control.version)
    result = ControlResult(store.name, fingerprint, name, *found)
    if path is not None:
        save_result(result, path)
    return result


def read_controls(folder: Path) -> list[ControlResult]:
    """All results of controls, by data set, in the usual order; several seeds of one are averaged within folds."""
    groups: dict[tuple[str, int, str, int], list[ControlResult]] = defaultdict(list)
    for path in sorted(folder.glob(CONTROL_FILES)):
        one = load_result(path)
        if one is not None and one.control in CONTROLS and one.version == CONTROLS[one.control].version:
            place = list(CONTROLS).index(one.control)
            groups[one.dataset, place, one.fingerprint, len(one.outcome.folds)].append(one)
    return [_averaged(groups[key]) for key in sorted(groups)]


def _averaged(results: Sequence[ControlResult]) -> ControlResult:
    outcome = average([one.outcome for one in results])
    settings = tuple(setting for one in results for setting in one.settings)
    return replace(results[0], outcome=outcome, seconds=sum(one.seconds for one in results), settings=settings)
