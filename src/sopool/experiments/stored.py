"""Find the experiments in a store of runs, and the facts they are judged by."""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sopool.data.formats.packed import content_key
from sopool.data.sources.catalogue import DatasetNote, find, load
from sopool.errors import UserError
from sopool.experiments.grids import Settings, by_grid, by_length
from sopool.experiments.judge import RunsByLooks
from sopool.training.runs.config import Looks, RunConfig
from sopool.training.runs.dataset_facts import DatasetFacts
from sopool.training.runs.info import RunInfo
from sopool.training.runs.requests import StoredRequest
from sopool.training.runs.store import RunStore

Configs = dict[Looks, list[RunConfig]]
Piece = tuple[list[RunConfig], Settings | None]


@dataclass(frozen=True)
class Experiment:
    """Complete runs that belong together; they differ in fold, setting, repeat and in the graphs they are scored on."""

    shared: RunConfig
    """What they have in common; its fold, setting, repeat, ``looks`` and ``encoder`` have no meaning."""
    configs: Configs
    """The runs, by the graphs that they are scored on."""
    settings: Settings | None = None
    """The settings that were chosen from, if others were evaluated separately."""


def find_experiments(infos: Iterable[RunInfo], requests: Iterable[StoredRequest] = ()) -> list[Experiment]:
    """Return the complete runs of a store in groups.

    Runs that a request names belong together. The other groups, as in stores of earlier versions, are inferred, see
    :mod:`sopool.experiments.grids`.
    """
    complete = {info.key: info.config for info in infos if info.config is not None and info.is_complete}
    asked = [[complete[key] for key in pool.among(complete)] for request in requests for pool in request.pools]
    named = {config.key for configs in asked for config in configs}
    pieces: list[Piece] = [(configs, None) for configs in asked if configs]
    pieces += _guessed([config for key, config in complete.items() if key not in named])
    return _joined(pieces)


def _guessed(configs: Iterable[RunConfig]) -> list[Piece]:
    groups: dict[str, list[RunConfig]] = defaultdict(list)
    for config in configs:
        groups[config.experiment().key].append(config)
    parts = [part for group in groups.values() for part in by_length(group)]
    return by_grid((_common(part).place().key, part) for part in parts)


def _joined(pieces: Iterable[Piece]) -> list[Experiment]:
    """Join groups that differ only in their protocols; record the settings if a pooling has several sets of them."""
    groups: dict[tuple[str, Settings], dict[str, RunConfig]] = defaultdict(dict)
    told: set[tuple[str, Settings]] = set()
    for configs, settings in pieces:
        group = _common(configs).key, settings or Settings(config.setting for config in configs)
        groups[group] |= {config.key: config for config in configs}
        told |= {group} if settings else set()
    grids: dict[str, set[Settings]] = defaultdict(set)
    for shared, settings in groups:
        grids[shared].add(settings)
    apart: dict[str, set[Settings]] = defaultdict(set)
    places = {group: _common([*configs.values()]).place().key for group, configs in groups.items()}
    for (shared, _), place in places.items():
        apart[place] |= grids[shared] if len(grids[shared]) > 1 else set()
    return [
        _experiment([*configs.values()], group[1] if group in told or group[1] in apart[places[group]] else None)
        for group, configs in groups.items()
    ]


def over_seeds(experiments: Iterable[Experiment]) -> list[list[Experiment]]:
    """Group experiments that differ only in their seed, in the order of the seeds."""
    groups: dict[tuple[str, Settings | None], list[Experiment]] = defaultdict(list)
    for one in experiments:
        groups[replace(one.shared, seed=0).key, one.settings].append(one)
    return [sorted(group, key=lambda one: one.shared.seed) for group in groups.values()]


def facts_of(store: RunStore, config: RunConfig, root: str | Path | None = None) -> DatasetFacts | None:
    """Return the facts that runs on a data set are judged by, from the store or else from the data set of that name.

    The data set must have the same fingerprint. Nothing is downloaded.
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
    known = graphs.labels is not None or graphs.targets is not None
    same = known and content_key(graphs) == config.fingerprint
    return DatasetFacts.of(graphs, config.fingerprint) if same else None


def load_runs(experiment: Experiment, store: RunStore) -> RunsByLooks:
    """Return all undamaged runs of an experiment; empty if there are none."""
    found = {looks: map(store.load, configs) for looks, configs in experiment.configs.items()}
    whole = {looks: [run for run in runs if run is not None] for looks, runs in found.items()}
    return {looks: runs for looks, runs in whole.items() if runs}


def _common(group: Sequence[RunConfig]) -> RunConfig:
    """Return the configuration that runs share, including their lengths if these are equal."""
    first = group[0]
    shared = first.experiment()
    steps, fitted = (set(lengths) for lengths in zip(*(config.lengths for config in group), strict=True))
    if len(steps) == 1:
        shared = replace(shared, steps=first.steps)
    if len(fitted) == 1 and not first.model.system:  # those of a system are never given
        shared = replace(shared, model=replace(shared.model, pool_options=first.model.pool_options))
    return shared


def _experiment(group: Sequence[RunConfig], settings: Settings | None) -> Experiment:
    configs: Configs = {}
    for config in group:
        configs.setdefault(config.looks, []).append(config)
    return Experiment(_common(group), configs, settings)
