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
import torch

from sopool._runtime.threads import cores
from sopool.data.division import Division
from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, check_name
from sopool.experiments.systems.path import by_representation, learn_together
from sopool.experiments.systems.registry import FixedSystem
from sopool.experiments.systems.result import ControlResult, load_result, save_result
from sopool.experiments.systems.views import Choice
from sopool.models.config import Setting, without_defaults
from sopool.models.systems import SYSTEMS
from sopool.objectives import Objective, objective_for, truth_of
from sopool.objectives.choose import check_truth
from sopool.training.protocols.outcome import average
from sopool.training.protocols.protocols import choose_settings, fair
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import LATER, RunConfig
from sopool.training.runs.layout import CONTROL_FILES, path_of
from sopool.training.runs.record import Run

CONTROLS = {name: system for name, system in SYSTEMS.items() if system.control}
"""The controls by name, ordered by how much of a graph they use.

Examples:
    >>> from sopool.experiments.systems import CONTROLS
    >>> list(CONTROLS)
    ['majority', 'size', 'histogram', 'wl']
"""


def run_control(
    name: str,
    store: PackedGraphs,
    folds: int = 10,
    seed: int = 0,
    runs_folder: str | Path | None = None,
    task: str | None = None,
    metric: str | None = None,
    fold_seed: int = 0,
) -> ControlResult:
    """Evaluate a fixed system on the folds and held-out graphs that networks with this ``seed`` have under ``fair``.

    Args:
        name: The name of the control, such as ``"majority"`` or ``"size"``, or of another fixed system.
        store: The graphs, with labels or targets.
        folds: The number of folds, unless the graphs carry given folds. Default: 10.
        seed: The random seed that the held-out graphs depend on. Default: 0.
        runs_folder: A folder of runs in which the result is stored, so that it is computed only once. A damaged result
            is computed again, with a warning. Default: None, the result is not stored.
        task: ``"classification"``, ``"multi-label"`` or ``"regression"``. Default: None, found from the values.
        metric: The name of the metric that chooses settings. Default: None, the usual one of the task.
        fold_seed: The random seed of the folds. Default: 0.

    Examples:
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments.systems import run_control
        >>> result = run_control("majority", make_agreement(60), folds=3)
        >>> result.outcome.folds
        (0.5, 0.5, 0.5)
    """
    check_name("control", name, {one: system for one, system in SYSTEMS.items() if isinstance(system, FixedSystem)})
    store = store.to("cpu")
    fingerprint = content_key(store)
    store, objective, truth = _goal(store, task, metric)
    control = SYSTEMS[name]
    assert isinstance(control, FixedSystem)
    if why := control.refuses(store):
        raise DataError(f"{name} cannot be evaluated on {store.name}: {why}.")
    division = Division.of(store)
    folds = division.count(folds)
    facts = {"control": name, "version": control.version, "data": fingerprint, "folds": folds, "seed": seed}
    facts |= without_defaults({"task": objective.task, "metric": objective.metric, "split": division.key}, LATER)
    facts |= {"split_seed": fold_seed} if fold_seed else {}
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    path = None if runs_folder is None else path_of(Path(runs_folder), CONTROL_FILES, key)
    if path is not None and (kept := load_result(path)) is not None:
        return replace(kept, dataset=store.name)
    import_module("sklearn.svm")  # imported before the clock starts
    start = time.perf_counter()
    config = RunConfig(store.name, fingerprint, "", control.model, 0, folds, fold_seed, seed, split=division.key)
    config = replace(config, epochs=len(control.path), path=control.path, **objective.settings)
    runs = _final_runs(store, control, config, objective, truth)
    outcome = replace(fair(runs, truth, objective), setting=(), epochs=())
    settings = [run.config.model.system_options | _strength(control, run) for run in runs[:folds]]
    seconds = time.perf_counter() - start
    found = (outcome, round(seconds, 3), tuple(settings), control.version, objective.task, division.key, fold_seed)
    result = ControlResult(store.name, fingerprint, name, *found)
    if path is not None:
        save_result(result, path)
    return result


def _final_runs(
    store: PackedGraphs, system: FixedSystem, config: RunConfig, objective: Objective, truth: np.ndarray
) -> list[Run]:
    """Return the final runs of ``fair``, those of the first repeat first, in the order of the folds."""
    Splitter.of(objective, truth, Division.of(store)).check(config.folds, held_out=True, seed=config.split_seed)
    folds = range(config.folds)
    settings = [Setting.of_system(setting) for setting in system.settings]
    grid = [replace(config, looks="validation", fold=fold).with_setting(one) for one in settings for fold in folds]
    chosen = choose_settings(_learned(store, grid)) if len(settings) > 1 else dict.fromkeys(folds, settings[0])
    final = [
        replace(config, looks="chosen", fold=fold, repeat=repeat).with_setting(setting)
        for repeat in range(1, system.final_runs + 1)
        for fold, setting in chosen.items()
    ]
    return _learned(store, final)


def _learned(store: PackedGraphs, configs: Sequence[RunConfig]) -> list[Run]:
    """Return the runs in the order of their configurations, computed without a store."""
    groups = by_representation(configs)
    found = {run.config.key: run for group in groups for run in learn_together(store, group, cores())}
    return [found[config.key] for config in configs]


def _strength(system: FixedSystem, run: Run) -> Choice:
    """Return the strength that was chosen, by name."""
    chosen = None if run.chosen_epoch is None else system.path[run.chosen_epoch]
    return {system.strength: chosen} if system.strength else {}


def _goal(store: PackedGraphs, task: str | None, metric: str | None) -> tuple[PackedGraphs, Objective, np.ndarray]:
    """Return the graphs, the objective and the true values; classes without a graph are left out."""
    objective = objective_for(store, task, metric)
    truth = truth_of(store, objective.task).numpy()
    check_truth(objective, truth)
    if objective.task != "classification":
        return store, objective, truth
    codes, labels = np.unique(truth, return_inverse=True)
    names = tuple(objective.names[code] for code in codes)
    store = replace(store, labels=torch.from_numpy(labels), classes=names)
    return store, replace(objective, names=names), labels


def read_controls(folder: Path) -> list[ControlResult]:
    """Return all stored results of controls by data set, in the usual order; seeds are averaged within folds."""
    groups: dict[tuple[str | int, ...], list[ControlResult]] = defaultdict(list)
    for path in sorted(folder.glob(CONTROL_FILES)):
        one = load_result(path)
        if one is not None and one.control in SYSTEMS and one.version == SYSTEMS[one.control].version:
            place = list(SYSTEMS).index(one.control)
            group = (one.dataset, place, one.fingerprint, len(one.outcome.folds), one.task, one.outcome.metric)
            groups[(*group, one.split, one.split_seed)].append(one)
    return [_averaged(groups[key]) for key in sorted(groups)]


def _averaged(results: Sequence[ControlResult]) -> ControlResult:
    outcome = average([one.outcome for one in results])
    settings = tuple(setting for one in results for setting in one.settings)
    return replace(results[0], outcome=outcome, seconds=sum(one.seconds for one in results), settings=settings)
