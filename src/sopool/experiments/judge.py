"""Compute the results of finished runs under each protocol."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sopool.errors import UserError
from sopool.models.config import Setting
from sopool.objectives import Objective
from sopool.training.protocols.outcome import Outcome
from sopool.training.protocols.protocols import PROTOCOLS, Protocol, choose_settings
from sopool.training.runs.config import Looks
from sopool.training.runs.record import Run

RunsByLooks = Mapping[Looks, Sequence[Run]]
"""The runs of one pooling with one seed, by the graphs that they are scored on."""


@dataclass(frozen=True)
class Judgement:
    """The results of runs under several protocols."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """The result under each protocol, by name."""
    reported: dict[str, list[Run]] = field(default_factory=dict)
    """The runs that each protocol could choose from; for ``fair``, those at the settings it chose."""
    missing: dict[str, str] = field(default_factory=dict)
    """The reason why a protocol that was requested, or that some runs are meant for, has no result."""


def judge(
    runs: RunsByLooks,
    truth: np.ndarray,
    wanted: Collection[str] | None = None,
    objective: Objective | None = None,
    also: Collection[str] = (),
) -> Judgement:
    """Return the results of runs under the protocols ``wanted``, or under all that some of the runs are meant for.

    Settings that lack a fold are left out.

    Args:
        runs: The runs of one pooling, by :attr:`~sopool.training.runs.config.RunConfig.looks`.
        truth: The true values of every graph of the data set: class numbers ``[G]``, or targets ``[G, T]``.
        wanted: The names of protocols. Default: None, all that some of the runs are meant for.
        objective: What is predicted. Default: None, one class per graph.
        also: Protocols such as ``"last-epoch"`` that count only if they are requested by name, without ``wanted``.

    Examples:
        >>> import numpy as np
        >>> from sopool.experiments.judge import judge
        >>> judge({}, np.array([0, 1]), wanted=["fair"]).missing
        {'fair': 'the final runs are not there yet.'}
    """
    judged = Judgement()
    usual = [name for name, protocol in PROTOCOLS.items() if not protocol.on_request or name in also]
    for name in usual if wanted is None else wanted:
        protocol = PROTOCOLS[name]
        if not runs.get(protocol.looks[-1]):
            if wanted is not None or any(runs.get(looks) for looks in protocol.looks):
                judged.missing[name] = "the final runs are not there yet."
            continue
        try:
            reported = _reported(runs, protocol)
            judged.outcomes[name] = protocol.outcome(reported, truth, objective)
            judged.reported[name] = reported
        except UserError as error:
            judged.missing[name] = str(error)
    return judged


def whole_settings(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of the settings that have every fold."""
    folds: dict[Setting, set[int]] = defaultdict(set)
    for run in runs:
        folds[run.config.setting].add(run.config.fold)
    return [run for run in runs if len(folds[run.config.setting]) == run.config.folds]


def _reported(runs: RunsByLooks, protocol: Protocol) -> list[Run]:
    """Return the runs that a protocol takes: those of all settings, or of the setting chosen for each fold."""
    last = runs[protocol.looks[-1]]
    if len(protocol.looks) == 1:
        return whole_settings(last) or list(last)
    grid = whole_settings(runs.get(protocol.looks[0], []))
    if not grid:
        return list(last)
    chosen = choose_settings(grid)
    return [run for run in last if run.config.setting == chosen[run.config.fold]]
