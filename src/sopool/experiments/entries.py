"""Reduce an experiment, over all its seeds, to what a report shows; its size does not depend on the number of runs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sopool.data.division import split_title
from sopool.experiments.curves import Band, band
from sopool.experiments.grids import Settings
from sopool.experiments.judge import Judgement, RunsByLooks, judge
from sopool.experiments.stored import Experiment
from sopool.models.config import Setting
from sopool.models.presets import FIRST_ORDER
from sopool.training.protocols.outcome import Outcome, average
from sopool.training.runs.config import RunConfig
from sopool.training.runs.dataset_facts import DatasetFacts
from sopool.training.runs.record import Run


def join_words(*parts: str | None) -> str:
    """Join the non-empty parts by commas."""
    return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class Cost:
    """The cost of an experiment's runs."""

    runs: int
    """The number of runs."""
    model_epochs: int
    """The number of trained epochs of all runs."""
    seconds: float
    """The training time on the device; each run has its share of its bank's time."""
    devices: tuple[str, ...]
    """The devices that runs were trained on."""
    memory: int | None
    """The largest peak memory of a training process, in bytes; None if it was not recorded."""


class Predicted(NamedTuple):
    """The numbers of all test graphs."""

    true: np.ndarray
    """The true numbers ``[n, T]``; NaN where one is missing."""
    predicted: np.ndarray
    """The predictions ``[n, T]``, averaged over the runs of a fold."""


@dataclass(frozen=True)
class Entry:
    """One row of a report: one pooling with one network on one data set."""

    shared: RunConfig
    """The configuration that all runs share; its seed has no meaning."""
    rule: str
    """``sum`` or ``mean``: the pooling that Sum/Avg stands for on this data set."""
    settings: Settings | None
    """See :class:`~sopool.experiments.stored.Experiment`."""
    classes: tuple[str, ...]
    """The names of the classes; empty if there are none."""
    targets: tuple[str, ...]
    """The names of the targets; empty if graphs have one class."""
    outcomes: dict[str, Outcome]
    """The result under each protocol, by name; several seeds are averaged within folds."""
    seeds: dict[int, dict[str, Outcome]]
    """The results of each seed."""
    missing: dict[str, str]
    """The reason why a protocol has no result, by name."""
    curves: dict[str, dict[str, Band]]
    """The score over epochs of the runs that each protocol reports, for ``train`` and ``test`` or ``validation``."""
    confusion: dict[str, np.ndarray]
    """The test graphs of all folds by class, ``[true class, predicted class]``; the runs of a fold are averaged. Empty
    unless graphs have one class."""
    predicted: dict[str, Predicted]
    """The true and the predicted numbers under each protocol; empty unless numbers are predicted."""
    cost: Cost
    """The cost of all runs."""
    variant: str = ""
    """The pooling's options, and what distinguishes the entry from others of its data set, network and pooling."""

    @property
    def data(self) -> str:
        """The name of the data set, with its split unless that is random."""
        return split_title(self.shared.data, self.shared.split_name)

    @property
    def network(self) -> str:
        """The network before the pooling."""
        return self.shared.model.network

    @property
    def pool(self) -> str:
        """The name of the pooling."""
        return self.shared.model.pool_name

    @property
    def title(self) -> str:
        """Everything that distinguishes it from other entries, as text."""
        return join_words(self.data, self.network, self.pool, self.variant)

    @property
    def options(self) -> str:
        """The pooling's options as text, such as ``bias True``."""
        return ", ".join(f"{name} {value}" for name, value in self.shared.model.pool_options.items())

    @property
    def place(self) -> str:
        """An identifier that entries share if they differ only in their pooling."""
        return f"{self.shared.place().key} {sorted(self.settings or [])}"

    @property
    def is_system(self) -> bool:
        """Whether it is a system other than a network with a pooling; it is compared with any network."""
        return bool(self.shared.model.system)

    @property
    def folds(self) -> tuple[object, ...]:
        """An identifier that entries share if they have the same test folds and metric."""
        shared = self.shared
        return shared.fingerprint, shared.folds, shared.split, shared.split_seed, shared.task, shared.metric

    @property
    def is_reference(self) -> bool:
        """Whether it is what the paper calls Sum/Avg."""
        return self.pool == self.rule


def digest(
    seeds: Mapping[int, RunsByLooks], experiment: Experiment, facts: DatasetFacts | None, also: Collection[str] = ()
) -> Entry:
    """Return the entry of an experiment and its runs with each seed, under the usual protocols and those in ``also``.

    Without the ``facts`` of its data set it has no result under any protocol.
    """
    every = [run for runs in seeds.values() for some in runs.values() for run in some]
    judged = {seed: _judge(runs, facts, also) for seed, runs in seeds.items()}
    task = experiment.shared.task
    outcomes: dict[str, list[Outcome]] = {}
    shown: dict[str, list[Run]] = {}
    confusion: dict[str, list[np.ndarray]] = {}
    predicted: dict[str, list[Predicted]] = {}
    for one in judged.values():
        for name, outcome in one.outcomes.items():
            runs = _shown(one, name)
            outcomes.setdefault(name, []).append(outcome)
            shown.setdefault(name, []).extend(runs)
            assert facts is not None  # else there is no outcome
            if task == "classification":
                confusion.setdefault(name, []).append(_confusion(runs, outcome, facts))
            if task == "regression":
                truth, _ = facts.truth(experiment.shared)
                predicted.setdefault(name, []).append(_predicted(runs, outcome, truth))
    return Entry(
        shared=replace(experiment.shared, seed=0),
        rule="mean" if every[0].config.encoder.startswith(("DegreeEncoder", "ConstantEncoder")) else "sum",
        settings=experiment.settings,
        classes=() if facts is None else facts.classes,
        targets=()
        if facts is None or task == "classification"
        else tuple(map(str, facts.truth(experiment.shared)[1].names)),
        outcomes={name: average(some) for name, some in outcomes.items()},
        seeds={seed: one.outcomes for seed, one in judged.items()},
        missing=_missing(judged),
        curves={name: _curves(some) for name, some in shown.items()},
        confusion={name: np.mean(some, axis=0) for name, some in confusion.items()},
        predicted={
            name: Predicted(some[0].true, np.mean([one.predicted for one in some], axis=0))
            for name, some in predicted.items()
        },
        cost=_cost(every),
    )


def _judge(runs: RunsByLooks, facts: DatasetFacts | None, also: Collection[str]) -> Judgement:
    if facts is None:
        why = "the true values of its graphs are not known: neither the store nor the catalog has the data set."
        return Judgement(missing={"every protocol": why})
    for run in (run for some in runs.values() for run in some):
        classes = {array.shape[-1] for name, array in run.predictions.items() if name.endswith("_logits")}
        if run.config.task == "classification" and classes - {len(facts.classes)}:
            why = f"run {run.config.key} predicts {max(classes)} classes, but the data set has {len(facts.classes)}."
            return Judgement(missing={"every protocol": why})
    truth, objective = facts.truth(next(run.config for some in runs.values() for run in some))
    return judge(runs, truth, objective=objective, also=also)


def _missing(judged: Mapping[int, Judgement]) -> dict[str, str]:
    """Return the reasons for missing results, with the seeds that lack them if only some do."""
    lacking: dict[str, dict[int, str]] = {}
    for seed, one in judged.items():
        for name, why in one.missing.items():
            lacking.setdefault(name, {})[seed] = why
    found = {}
    for name, whys in lacking.items():
        first = next(iter(whys.values())).removeprefix(f"{name}: ")  # the name is shown separately
        some = f"with seed {', '.join(map(str, whys))}: " if len(whys) < len(judged) else ""
        found[name] = some + first
    return found


def reference_of(entry: Entry, entries: Sequence[Entry], wanted: str | None) -> Entry | None:
    """Return what an entry is compared with: the ``wanted`` pooling, else Sum/Avg, else a first-order pooling.

    Of several, the one with dropout in the same place as the entry is preferred.
    """
    entries = sorted(entries, key=lambda other: other.shared.model.dropout_on != entry.shared.model.dropout_on)
    if wanted is not None and wanted != "sum-avg":
        return next((other for other in entries if other.pool == wanted), None)
    found = [other for other in entries if other.is_reference]
    found += [other for pool in FIRST_ORDER for other in entries if other.pool == pool]
    return found[0] if found else None


def _shown(judged: Judgement, protocol: str) -> list[Run]:
    """Return the runs behind a result in the order of the folds: the final ones, or those of the best setting."""
    runs = judged.reported[protocol]
    setting = judged.outcomes[protocol].setting
    mine = [run for run in runs if not isinstance(setting, Setting) or run.config.setting == setting]
    return sorted(mine, key=lambda run: (run.config.fold, run.config.repeat))


def _curves(runs: Sequence[Run]) -> dict[str, Band]:
    looked_at = "test" if runs[0].config.looks == "test" else "validation"
    return {part: band(runs, f"{part}_{runs[0].config.metric}") for part in ("train", looked_at)}


def _confusion(runs: Sequence[Run], outcome: Outcome, facts: DatasetFacts) -> np.ndarray:
    """Return the confusion matrix, which includes classes that no graph has, since they may be predicted."""
    table = np.zeros((len(facts.classes), len(facts.classes)))
    for graphs, scores in _outputs(runs, outcome):
        assert facts.labels is not None  # else there is no outcome
        finite = np.isfinite(scores).all(1)
        np.add.at(table, (facts.labels[graphs][finite], scores[finite].argmax(1)), 1 / outcome.repeats)
    return table


def _predicted(runs: Sequence[Run], outcome: Outcome, truth: np.ndarray) -> Predicted:
    total = np.zeros(truth.shape)
    for graphs, outputs in _outputs(runs, outcome):
        total[graphs] += outputs / outcome.repeats
    return Predicted(truth, total)


def _outputs(runs: Sequence[Run], outcome: Outcome) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the test graphs and the outputs at the reported epoch of each run that has a result."""
    for run, epoch in zip(runs, _epochs(outcome), strict=True):
        if epoch:
            outputs = run.predictions["test_logits"]
            yield run.predictions["test_graphs"], outputs[epoch - 1] if outputs.ndim == 3 else outputs


def _epochs(outcome: Outcome) -> list[int]:
    """Return the epoch, from 1, of each run behind a result, in the order of folds and repeats."""
    if isinstance(outcome.epochs, int):
        return [outcome.epochs] * len(outcome.folds)
    return [int(epoch) for epoch in np.ravel(np.array(outcome.epochs))]


def _cost(runs: Sequence[Run]) -> Cost:
    peaks = [run.environment["peak_memory"] for run in runs if run.environment.get("peak_memory") is not None]
    return Cost(
        runs=len(runs),
        model_epochs=sum(int(np.isfinite(run.curves["step_loss"]).sum()) for run in runs),
        seconds=float(sum(np.nansum(run.curves["seconds"]) for run in runs)),
        devices=tuple(sorted({str(run.environment.get("device", "unknown")) for run in runs})),
        memory=max(peaks, default=None),
    )
