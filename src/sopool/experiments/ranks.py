"""Rank poolings across the data sets of a store."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sopool.experiments.entries import Entry, join_words
from sopool.experiments.statistics import Across, compare_across
from sopool.models.presets import FROZEN
from sopool.nn.aggr.normalize import DIVIDED
from sopool.objectives import METRICS
from sopool.training.protocols.outcome import describe_settings
from sopool.training.protocols.protocols import PROTOCOLS
from sopool.training.runs.info import tell_apart

REFERENCE = "sum-avg"
SECOND_ORDER = ("sopool", "covpool")
UNDIVIDED = {divided: plain for plain, divided in DIVIDED.items()}


class Ranks(NamedTuple):
    """A ranking under one protocol of poolings that differ in nothing else, on several data sets."""

    network: str
    """The network before the poolings."""
    variant: str
    """What distinguishes the training from that of other rankings of the same network."""
    across: Across
    """The ranking."""
    metric: str = "accuracy"
    """The metric that all results were chosen and are ranked by."""


def rank_all(entries: Sequence[Entry]) -> list[Ranks]:
    """Return all possible rankings: at least two poolings with results on the same two data sets."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[_everywhere(entry).place].append(entry)
    shared = {where: _everywhere(group[0]).shared.place() for where, group in groups.items()}
    besides = tell_apart(shared, lambda config: config.model.network)
    found = []
    for where, group in groups.items():
        settings = describe_settings(*sorted(group[0].settings)) if group[0].settings else ""
        variant = join_words(besides.get(where), settings)
        for protocol in PROTOCOLS:
            scores = _shared(_scores(group, protocol))
            if len(scores) > 1:
                metric = group[0].shared.metric
                # Errors in the units of several data sets have ranks, but no common median.
                declared = [] if METRICS[metric].in_unit else [name for name in scores if _is_declared(name)]
                across = compare_across(protocol, scores, [(name, REFERENCE) for name in declared])
                found.append(Ranks(group[0].network, variant, across, metric))
    return found


def _everywhere(entry: Entry) -> Entry:
    return replace(entry, shared=replace(entry.shared, data="", fingerprint=""))


def _scores(entries: Sequence[Entry], protocol: str) -> dict[str, dict[str, float]]:
    entries = [entry for entry in entries if protocol in entry.outcomes]
    labelled = {_name(entry) for entry in entries if entry.rule == "sum"}
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for entry in entries:
        names = [_name(entry), _name(_undivided(entry))]
        name = next((one for one in names if one in labelled), names[0])
        if entry.data in scores[name]:
            name = f"{name}, {entry.variant}"
        scores[name][entry.data] = entry.outcomes[protocol].signed_mean
    return scores


def _name(entry: Entry) -> str:
    return REFERENCE if entry.is_reference else join_words(entry.pool, entry.options)


def _undivided(entry: Entry) -> Entry:
    """Return the entry without the division by the size that presets add where Sum/Avg is the mean."""
    options = dict(entry.shared.model.pool_options)
    divided = options.get("normalize")
    if divided in UNDIVIDED:
        options["normalize"] = UNDIVIDED[divided]  # in the same place: names depend on the order
        if options["normalize"] is None:
            del options["normalize"]
    return replace(entry, shared=replace(entry.shared, model=replace(entry.shared.model, pool_options=options)))


def _shared(scores: Mapping[str, Mapping[str, float]]) -> dict[str, Mapping[str, float]]:
    """Return the poolings that have results on all the data sets that most poolings share, at least two."""
    counts: dict[frozenset[str], int] = defaultdict(int)
    for row in scores.values():
        counts[frozenset(row)] += 1
    most = max(counts, key=lambda some: (counts[some] * len(some), len(some)), default=frozenset())
    return {name: row for name, row in scores.items() if most <= set(row)} if len(most) > 1 else {}


def _is_declared(name: str) -> bool:
    """Return whether a pooling is tested against Sum/Avg: only second-order poolings are."""
    pool = name.split(",")[0]
    return pool.startswith(SECOND_ORDER) and pool not in FROZEN
