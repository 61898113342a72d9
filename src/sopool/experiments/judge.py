"""Judge finished runs: what each protocol says of them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sopool.errors import UserError
from sopool.models.config import Setting
from sopool.training.protocols.outcome import Outcome
from sopool.training.protocols.protocols import PROTOCOLS, Protocol, choose_settings
from sopool.training.runs.config import Looks
from sopool.training.runs.record import Run

RunsByLooks = Mapping[Looks, Sequence[Run]]
"""The runs of one pooling with one seed, by what they look at."""


@dataclass(frozen=True)
class Judgement:
    """What the protocols say."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    reported: dict[str, list[Run]] = field(default_factory=dict)
    """The runs that each protocol had to choose from; of ``fair``, those at the settings it chose."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why a protocol that was asked for, or that some runs are made for, has no outcome."""


def judge(runs: RunsByLooks, labels: np.ndarray, wanted: Collection[str] | None = None) -> Judgement:
    """Return what the protocols say of runs, those that are ``wanted`` or else all that some of the runs are made for.

    Settings that lack a fold are left out. ``labels``: the true class of each graph of the data set.
    """
    judged = Judgement()
    for name in PROTOCOLS if wanted is None else wanted:
        protocol = PROTOCOLS[name]
        if not runs.get(protocol.looks[-1]):
            if wanted is not None or any(runs.get(looks) for looks in protocol.looks):
                judged.missing[name] = "the final runs are not there yet."
            continue
        try:
            reported = _reported(runs, protocol)
            judged.outcomes[name] = protocol.outcome(reported, labels)
            judged.reported[name] = reported
        except UserError as error:
            judged.missing[name] = str(error)
    return judged


def whole_settings(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of those settings that have every fold."""
    folds: dict[Setting, set[int]] = defaultdict(set)
    for run in runs:
        folds[run.config.setting].add(run.config.fold)
    return [run for run in runs if len(folds[run.config.setting]) == run.config.folds]


def _reported(runs: RunsByLooks, protocol: Protocol) -> list[Run]:
    """Return what a protocol takes: all settings, or the one chosen for each fold on held-out graphs, if any was."""
    last = runs[protocol.looks[-1]]
    if len(protocol.looks) == 1:
        return whole_settings(last) or list(last)
    grid = whole_settings(runs.get(protocol.looks[0], []))
    if not grid:
        return list(last)
    chosen = choose_settings(grid)
    return [run for run in last if run.config.setting == chosen[run.config.fold]]
