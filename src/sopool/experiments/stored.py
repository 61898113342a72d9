"""From a store of runs alone: which experiments it holds, and what each protocol says of them."""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from sopool.data.formats.packed import content_key
from sopool.data.sources.catalogue import DatasetNote, find, load
from sopool.errors import UserError
from sopool.experiments.grids import Settings, by_grid, by_length
from sopool.models.config import Setting
from sopool.training.protocols.outcome import Outcome
from sopool.training.protocols.protocols import PROTOCOLS, choose_settings
from sopool.training.runs.config import Looks, RunConfig
from sopool.training.runs.dataset_facts import DatasetFacts
from sopool.training.runs.info import RunInfo
from sopool.training.runs.record import Run
from sopool.training.runs.store import RunStore

Configs = dict[Looks, list[RunConfig]]
Runs = dict[Looks, list[Run]]


@dataclass(frozen=True)
class Experiment:
    """Complete runs that belong together: they differ in fold, setting, repeat and in what they look at."""

    shared: RunConfig
    """What they have in common; its fold, setting, repeat, ``looks`` and ``encoder`` say nothing."""
    configs: Configs
    settings: Settings | None = None
    """The settings they were chosen from, where others were tried by themselves."""


@dataclass(frozen=True)
class Judged:
    """What the protocols say."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    reported: dict[str, list[Run]] = field(default_factory=dict)
    """The runs that each protocol had to choose from; of ``fair``, those at the settings it chose."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why a protocol that some runs are made for has no outcome."""


def find_experiments(infos: Iterable[RunInfo]) -> list[Experiment]:
    """The complete runs of a store in groups, the first written first."""
    groups: dict[str, list[RunConfig]] = defaultdict(list)
    for info in infos:
        if info.config is not None and info.is_complete:
            groups[info.config.experiment().key].append(info.config)
    parts = [part for group in groups.values() for part in by_length(group)]
    return [_experiment(*piece) for piece in by_grid((_common(part).place().key, part) for part in parts)]


def over_seeds(experiments: Iterable[Experiment]) -> list[list[Experiment]]:
    """Those that differ in their seed only, together, in the order of the seeds."""
    groups: dict[tuple[str, Settings | None], list[Experiment]] = defaultdict(list)
    for one in experiments:
        groups[replace(one.shared, seed=0).key, one.settings].append(one)
    return [sorted(group, key=lambda one: one.shared.seed) for group in groups.values()]


def facts_of(store: RunStore, config: RunConfig, root: str | Path | None = None) -> DatasetFacts | None:
    """What the runs on a data set are judged by: from the store, else from the data set of that name.

    That must be the same one, by its fingerprint. Nothing is downloaded.
    """
    kept = store.load_dataset(config.fingerprint)
    if kept is not None or find(config.data, root).place is None:
        return kept
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DatasetNote)
            graphs = load(config.data, root)
    except UserError:
        return None
    same = graphs.labels is not None and content_key(graphs) == config.fingerprint
    return DatasetFacts.of(graphs, config.fingerprint) if same else None


def load_runs(experiment: Experiment, store: RunStore) -> Runs:
    """All its runs that are whole; empty where none is."""
    found = {looks: map(store.load, configs) for looks, configs in experiment.configs.items()}
    whole = {looks: [run for run in runs if run is not None] for looks, runs in found.items()}
    return {looks: runs for looks, runs in whole.items() if runs}


def judge(runs: Runs, labels: np.ndarray) -> Judged:
    """Every protocol that some of the runs are made for. Settings that lack a fold are left out."""
    judged = Judged()
    for name, protocol in PROTOCOLS.items():
        looks = protocol.looks[-1]
        if not runs.get(looks):
            if any(runs.get(other) for other in protocol.looks):
                judged.missing[name] = "the final runs are not there yet."
            continue
        try:
            reported = whole_settings(runs[looks]) or runs[looks] if looks == "test" else _final(runs)
            judged.outcomes[name] = protocol.outcome(reported, labels)
            judged.reported[name] = reported
        except UserError as error:
            judged.missing[name] = str(error).removeprefix(f"{name}: ")
    return judged


def whole_settings(runs: Sequence[Run]) -> list[Run]:
    """The runs of those settings that have every fold."""
    folds: dict[Setting, set[int]] = defaultdict(set)
    for run in runs:
        folds[run.config.setting].add(run.config.fold)
    return [run for run in runs if len(folds[run.config.setting]) == run.config.folds]


def _final(runs: Runs) -> list[Run]:
    """At the settings chosen for each fold on held-out graphs; all of them where there was nothing to choose."""
    grid = whole_settings(runs.get("validation", []))
    if not grid:
        return runs["chosen"]
    chosen = choose_settings(grid)
    return [run for run in runs["chosen"] if run.config.setting == chosen[run.config.fold]]


def _common(group: Sequence[RunConfig]) -> RunConfig:
    """Return what runs share; their lengths, too, where they are the same for all."""
    first = group[0]
    shared = first.experiment()
    steps, fitted = (set(lengths) for lengths in zip(*(config.lengths for config in group), strict=True))
    if len(steps) == 1:
        shared = replace(shared, steps=first.steps)
    if len(fitted) == 1:
        shared = replace(shared, model=replace(shared.model, pool_options=first.model.pool_options))
    return shared


def _experiment(group: Sequence[RunConfig], settings: Settings | None) -> Experiment:
    configs: Configs = {}
    for config in group:
        configs.setdefault(config.looks, []).append(config)
    return Experiment(_common(group), configs, settings)
