"""Run a control, unless its result is stored, and read stored results."""

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
    """Evaluate a control on the folds and held-out graphs that networks with this ``seed`` have under ``fair``.

    Args:
        name: The name of the control: ``"majority"``, ``"size"``, ``"histogram"`` or ``"wl"``.
        store: The labeled graphs.
        folds: The number of folds. Default: 10.
        seed: The random seed that the held-out graphs depend on. Default: 0.
        runs_folder: A folder of runs in which the result is stored, so that it is computed only once. A damaged result
            is computed again, with a warning. Default: None, the result is not stored.

    Examples:
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments.systems import run_control
        >>> result = run_control("majority", make_agreement(60), folds=3)
        >>> result.outcome.folds
        (0.5, 0.5, 0.5)
    """
    check_name("control", name, CONTROLS)
    store = store.to("cpu")
    if store.labels is None:
        raise DataError(f"{store.name} has no labels, which a control needs. Give labeled graphs.")
    control = CONTROLS[name]
    fingerprint = content_key(store)
    facts = {"control": name, "version": control.version, "data": fingerprint, "folds": folds, "seed": seed}
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    path = None if runs_folder is None else path_of(Path(runs_folder), CONTROL_FILES, key)
    if path is not None and (kept := load_result(path)) is not None:
        return replace(kept, dataset=store.name)
    import_module("sklearn.svm")  # imported before the clock starts
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
    """Return all stored results of controls by data set, in the usual order; seeds are averaged within folds."""
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
