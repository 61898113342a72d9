"""Summarize a store of runs: its results, their gains over a reference pooling, and ranks across data sets."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sopool.data.sources.catalogue import PAPER
from sopool.errors import DataError, check_name
from sopool.experiments.comparison import Comparison, corrected_paired_test
from sopool.experiments.entries import Entry, digest, join_words, reference_of
from sopool.experiments.ranks import Ranks, rank_all
from sopool.experiments.reproduce.merge import read_reproductions
from sopool.experiments.reproduce.reproduction import Reproduction
from sopool.experiments.stored import Experiment, facts_of, find_experiments, load_runs, over_seeds
from sopool.experiments.systems import ControlResult
from sopool.experiments.systems.run import read_controls
from sopool.models.config import Setting
from sopool.models.presets import POOLS
from sopool.training.protocols.outcome import average, describe_settings
from sopool.training.protocols.protocols import PROTOCOLS
from sopool.training.runs.dataset_facts import DatasetFacts
from sopool.training.runs.info import RunInfo, tell_apart
from sopool.training.runs.store import RunStore


class Gain(NamedTuple):
    """The comparison of an entry with its reference under one protocol."""

    entry: Entry
    """The entry."""
    reference: Entry
    """The entry that it is compared with."""
    protocol: str
    """The name of the protocol."""
    comparison: Comparison
    """The corrected paired test."""
    seeds: str
    """The seeds that are compared, as text."""


@dataclass(frozen=True)
class Summary:
    """The results of a store of runs."""

    folder: Path
    """The folder of the store."""
    entries: list[Entry]
    """The results, one for each pooling, network and data set."""
    gains: list[Gain]
    """The comparisons with the reference poolings."""
    notes: list[str]
    """What is not in the report, and why."""
    runs: int
    """The number of complete runs."""
    written: datetime
    """When the last of them was written."""
    ranks: list[Ranks] = field(default_factory=list)
    """Rankings across data sets."""
    controls: list[ControlResult] = field(default_factory=list)
    """The results of the controls."""
    reproductions: list[Reproduction] = field(default_factory=list)
    """The reproduced tables of the paper."""

    @property
    def protocols(self) -> list[str]:
        """The protocols that any entry has a result under, in the usual order."""
        return [name for name in PROTOCOLS if any(name in entry.outcomes for entry in self.entries)]

    @property
    def datasets(self) -> list[str]:
        """The names of the data sets, in the order of the entries."""
        return list(dict.fromkeys(entry.data for entry in self.entries))

    def not_above(self, entry: Entry) -> list[str]:
        """Return the controls on the same folds whose mean score under ``fair`` is at least as good as the entry's."""
        outcome = entry.outcomes.get("fair")
        if outcome is None:
            return []
        same = [one for one in self.controls if one.fingerprint == entry.shared.fingerprint]
        same = [one for one in same if len(one.outcome.folds) == len(outcome.folds)]
        split = entry.shared.split, entry.shared.split_seed
        same = [one for one in same if (one.split, one.split_seed) == split]
        same = [one for one in same if one.outcome.metric == outcome.metric]
        return [one.control for one in same if one.outcome.signed_mean >= outcome.signed_mean]


def summarise(
    store: RunStore,
    root: str | Path | None = None,
    reference: str | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Summarize a store of runs; seeds are averaged within folds, and one experiment at a time is in memory.

    Args:
        store: The runs.
        root: The folder in which data sets are looked up if the store lacks the facts its runs are judged by. Default:
            None.
        reference: The pooling of the store that others are compared with. Default: None, Sum/Avg.
        report: Called with the number of finished experiments and their total.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments import Evaluator, Request
        >>> from sopool.experiments.summary import summarise
        >>> from sopool.training.runs.store import RunStore
        >>> with TemporaryDirectory() as folder:
        ...     runs = RunStore(folder)
        ...     found = Evaluator(make_agreement(60), Request(["sum"], epochs=1, steps=1, folds=2), runs).evaluate()
        ...     summary = summarise(runs)
        >>> [(entry.data, entry.pool) for entry in summary.entries], summary.runs
        ([('agreement', 'sum')], 6)
    """
    infos = store.list()
    requests = store.load_requests()
    experiments = over_seeds(find_experiments(infos, requests))
    asked = {protocol for request in requests for protocol in request.protocols}
    if not experiments:
        raise DataError("there is no complete run in this folder, so there is nothing to report.", store.folder)
    if reference not in (None, "sum-avg"):
        pools = dict.fromkeys(seeds[0].shared.model.pool_name for seeds in experiments)
        check_name("stored pooling", reference, pools)
    known: dict[str, DatasetFacts | None] = {}
    entries: list[Entry] = []
    whole: set[str] = set()
    for done, seeds in enumerate(experiments):
        report(done, len(experiments))
        shared = seeds[0].shared
        if shared.fingerprint not in known:
            known[shared.fingerprint] = facts_of(store, shared, root)
        entry, keys = _read(seeds, store, known[shared.fingerprint], asked)
        entries += [] if entry is None else [entry]
        whole |= keys
    report(len(experiments), len(experiments))
    if not entries:
        raise DataError("every complete run in this folder is damaged, so there is nothing to report.", store.folder)
    entries = sorted(_named(entries), key=_order)
    # The list of runs reads only the headers of files; other damage is known now that the runs were read.
    damaged = {info.key for info in infos if info.is_complete} - whole
    infos = [info._replace(kind="unreadable") if info.key in damaged else info for info in infos]
    complete = [info for info in infos if info.is_complete]
    return Summary(
        folder=store.folder,
        entries=entries,
        gains=_gains(entries, reference),
        notes=[*_incomplete(infos), *_missing(entries), *_stopped(entries)],
        runs=len(complete),
        written=max(info.when for info in complete),
        ranks=rank_all(entries),
        controls=read_controls(store.folder),
        reproductions=read_reproductions(store.folder),
    )


def _read(
    seeds: Sequence[Experiment], store: RunStore, facts: DatasetFacts | None, asked: Collection[str]
) -> tuple[Entry | None, set[str]]:
    """Return the entry of an experiment, None if all its runs are damaged, and the keys of those that are not."""
    runs = {one.shared.seed: found for one in seeds if (found := load_runs(one, store))}
    keys = {run.config.key for found in runs.values() for some in found.values() for run in some}
    return digest(runs, seeds[0], facts, asked) if runs else None, keys


def _order(entry: Entry) -> tuple[int, str, str, int, str, list[Setting], str]:
    known = [*PAPER]
    pools = [*POOLS]
    return (
        known.index(entry.data) if entry.data in known else len(known),
        entry.data,
        entry.network,
        pools.index(entry.pool) if entry.pool in pools else len(pools),
        entry.options,
        sorted(entry.settings or ()),
        entry.variant,
    )


def _named(entries: Sequence[Entry]) -> list[Entry]:
    """Add to each entry what distinguishes it from others with the same data set, network and pooling."""
    plain = {
        str(i): replace(entry.shared, model=replace(entry.shared.model, pool_options={}))
        for i, entry in enumerate(entries)
    }
    besides = tell_apart(plain, lambda config: (config.data, config.model.network, config.model.pool_name))
    named = []
    for i, entry in enumerate(entries):
        chosen_from = describe_settings(*sorted(entry.settings)) if entry.settings else None
        named.append(replace(entry, variant=join_words(entry.options, besides.get(str(i)), chosen_from)))
    return named


def _gains(entries: Sequence[Entry], wanted: str | None) -> list[Gain]:
    places = defaultdict(list)
    for entry in entries:
        places[entry.place].append(entry)
    found = []
    for entry in entries:
        rivals = [one for one in entries if one.is_system != entry.is_system and one.folds == entry.folds]
        other = reference_of(entry, [*places[entry.place], *rivals], wanted)
        if other is None or other is entry or (other.is_reference and entry.is_reference):
            continue
        for protocol in PROTOCOLS:
            if protocol in entry.outcomes and protocol in other.outcomes and entry.shared.folds > 1:
                found.append(_gain(entry, other, protocol))
    return found


def _gain(entry: Entry, other: Entry, protocol: str) -> Gain:
    """Compare two entries over the seeds that both have, or over all seeds of each if they share none."""
    ours, theirs = (
        {seed: judged[protocol] for seed, judged in one.seeds.items() if protocol in judged} for one in (entry, other)
    )
    if shared := [seed for seed in ours if seed in theirs]:
        ours, theirs = ({seed: one[seed] for seed in shared} for one in (ours, theirs))
    first, second = (average(list(one.values())).signed for one in (ours, theirs))
    seeds = " against ".join(dict.fromkeys(", ".join(map(str, one)) for one in (ours, theirs)))
    return Gain(entry, other, protocol, corrected_paired_test(first, second, len(first)), seeds)


def _incomplete(infos: Sequence[RunInfo]) -> list[str]:
    counts = Counter(info.kind for info in infos if not info.is_complete)
    return [f"{count:,} {kind} run{'s are' if count > 1 else ' is'} left out." for kind, count in counts.items()]


def _missing(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry.title}: {name}: {why}" for entry in entries for name, why in entry.missing.items()]


def _stopped(entries: Sequence[Entry]) -> list[str]:
    notes = []
    for entry in entries:
        each = ({stop for one in outcomes.values() for stop in one.stopped} for outcomes in entry.seeds.values())
        stops = sum(map(len, each))
        if stops:
            runs = "1 run was" if stops == 1 else f"{stops} runs were"
            notes.append(
                f"{entry.title}: {runs} stopped because the loss was no longer finite; the epochs before count."
            )
    return notes
