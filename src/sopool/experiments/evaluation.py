"""Cross-validation of poolings on one data set, under one or several protocols."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError, check_kind, check_name
from sopool.experiments.executors.local import Train, encoder_for, train_all
from sopool.experiments.judge import judge
from sopool.experiments.results import EvaluationResults
from sopool.models.config import Head, ModelConfig, Setting
from sopool.models.presets import PRESETS, Preset, fit_options, model_config, share_options
from sopool.nn.pool.base import VectorFrom
from sopool.training.protocols.protocols import PROTOCOLS, Outcome, choose_settings
from sopool.training.run_splits import evaluation_folds
from sopool.training.runs.config import Looks, RunConfig
from sopool.training.runs.dataset_facts import DatasetFacts
from sopool.training.runs.record import Run
from sopool.training.runs.requests import RequestedPool, StoredRequest
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Report

FINAL_RUNS = 3
VERSIONS = ("sopool", "python", "torch", "torch-geometric", "numpy", "numba")


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    pools: Sequence[str]
    protocols: Sequence[str] = ("fair",)
    gnn: str = "gin-0"
    settings: Sequence[Setting] = ()
    """To choose from; none: the preset's."""
    epochs: int = 350
    folds: int = 10
    seed: int = 0
    steps: int | None = 50
    """Batches in an epoch; None: as many as a pass over the training graphs has."""
    preset: Preset = "default"
    """The model, and how the optimiser is set beside the ``settings``."""
    blocks: int = 0
    """0 for flat models."""
    head: Head | None = None
    """Of a hierarchy; None: the preset's."""
    block_readout: VectorFrom = "max-mean"
    """What a block's classifier sees of its nodes."""
    pool_options: Mapping[str, Any] = field(default_factory=dict)
    """Of the poolings' classes, each for those of ``pools`` that have it."""

    def __post_init__(self) -> None:
        for name in ("pools", "protocols"):
            if isinstance(one := getattr(self, name), str):  # else each letter would be a name
                object.__setattr__(self, name, (one,))
        if not self.settings:
            object.__setattr__(self, "settings", (PRESETS[self.preset].setting,))

    def check(self) -> None:
        """Raise a ``SettingError`` for anything that cannot be."""
        for protocol in self.protocols:
            check_name("protocol", protocol, PROTOCOLS)
        numbers = {"epochs": self.epochs} | ({} if self.steps is None else {"steps": self.steps})
        if not self.blocks and self.head is not None:
            raise SettingError(f"the head {self.head} is that of a hierarchy: say how many --blocks it has, 1 to 3.")
        for setting in self.settings:
            numbers |= {"hidden": setting.hidden, "batch-size": setting.batch_size}
            if not setting.lr > 0:
                raise SettingError(f"a learning rate of {setting.lr} is not possible: it must be positive.")
            if not 0 <= setting.dropout < 1:
                raise SettingError(
                    f"a dropout of {setting.dropout} is not possible: it must be at least 0 and below 1."
                )
        for name, number in numbers.items():
            if number < 1:
                raise SettingError(f"{name} {number} is not possible: it must be at least 1.")


@dataclass(frozen=True)
class Evaluation:
    """What one pooling reached."""

    dataset: str
    request: Request
    pool: str
    outcomes: dict[str, Outcome]
    missing: dict[str, str]
    """Why a protocol that was asked for has no outcome."""
    runs: dict[Looks, list[Run]] = field(repr=False)
    fingerprint: str = ""
    model: ModelConfig = field(default_factory=ModelConfig)

    @property
    def network(self) -> str:
        """What stands before the pooling, in words."""
        return self.model.network

    @property
    def model_epochs(self) -> int:
        """Epochs trained, over all runs."""
        return sum(int(np.isfinite(run.curves["step_loss"]).sum()) for runs in self.runs.values() for run in runs)

    @property
    def seconds(self) -> float:
        """Time spent training, a run's share of its bank; workers side by side count each for itself."""
        return float(sum(np.nansum(run.curves["seconds"]) for runs in self.runs.values() for run in runs))

    def to_json(self) -> dict[str, Any]:
        """For the command line's ``--json``: accuracies as fractions."""
        environments = [run.environment for runs in self.runs.values() for run in runs]
        return {
            "dataset": self.dataset,
            "gnn": self.request.gnn,
            "pool": self.pool,
            "pool_options": self.model.pool_options,
            "blocks": self.model.blocks,
            "head": self.model.head if self.model.blocks else None,
            "block_readout": self.model.block_readout if self.model.blocks else None,
            "preset": self.request.preset,
            "epochs": self.request.epochs,
            "seed": self.request.seed,
            "protocols": {name: outcome.to_json() for name, outcome in self.outcomes.items()},
            "missing": self.missing,
            "model_epochs": self.model_epochs,
            "seconds": round(self.seconds, 3),
            "device": sorted({str(one.get("device", "unknown")) for one in environments}),
            "versions": {name: environments[0].get(name) for name in VERSIONS} if environments else {},
            "fingerprint": self.fingerprint,
        }


def make_grid(
    hidden: Sequence[int], batch_sizes: Sequence[int], rates: Sequence[float], dropouts: Sequence[float]
) -> list[Setting]:
    """All combinations, repeats left out."""
    return list(dict.fromkeys(Setting(*values) for values in product(hidden, batch_sizes, rates, dropouts)))


class Evaluator:
    """Plans the runs of a request, has them trained, and reads the results off."""

    def __init__(self, store: PackedGraphs, request: Request, runs: RunStore) -> None:
        check_kind(store, PackedGraphs, "the graphs of an evaluation are what sopool.data.load(...) or pack(...) gives")
        check_kind(runs, RunStore, "the store of its runs is a sopool.training.runs.store.RunStore(folder)")
        request.check()
        if store.labels is None:
            raise DataError(f"{store.name} has no labels: there is nothing to evaluate.")
        self.store = store
        self.request = request
        self.runs = runs
        self.fingerprint, self.encoders = _names(store)
        self.options = share_options(request.pools, request.blocks, request.pool_options)
        given = (request.preset, request.blocks, request.head, request.block_readout)
        self.models = {pool: model_config(store, request.gnn, pool, *given, own) for pool, own in self.options.items()}
        self._folds = evaluation_folds(store, request.folds, held_out="fair" in request.protocols)

    def evaluate(
        self,
        device: str = "cpu",
        workers: int | None = None,
        report: Report = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
        train: Train = train_all,
    ) -> EvaluationResults | None:
        """Train what is missing and judge; None if ``stop`` said so before the end."""
        if not train_together([self], device, workers, report, stop, train):
            return None
        return EvaluationResults(self.judge(pool) for pool in self.request.pools)

    @property
    def total_epochs(self) -> int:
        """Model-epochs of all runs, those that are still to be chosen included."""
        final = self.request.folds * FINAL_RUNS * len(self.request.pools) if "fair" in self.request.protocols else 0
        return (len(self.first_runs()) + final) * self.request.epochs

    def first_runs(self) -> list[RunConfig]:
        """All settings on all folds: on the test folds, and to choose a setting on held-out graphs."""
        return list(self._first_runs)

    @cached_property
    def _first_runs(self) -> list[RunConfig]:
        wanted = self._first_looks
        return _once([run for pool in self.request.pools for looks in wanted for run in self._grid(pool, looks)])

    @property
    def _first_looks(self) -> list[Looks]:
        wanted: list[Looks] = []
        if {"per-fold-max", "single-epoch"} & set(self.request.protocols):
            wanted.append("test")
        if "fair" in self.request.protocols and len(self.request.settings) > 1:
            wanted.append("validation")
        return wanted

    def final_runs(self) -> list[RunConfig]:
        """The runs that ``fair`` reports, once the settings are chosen."""
        if "fair" not in self.request.protocols:
            return []
        return _once([run for pool in self.request.pools for run in self._final(pool)])

    def stored_request(self) -> StoredRequest:
        """Return what is asked for as the store keeps it, with the keys of all runs."""
        request = self.request
        return StoredRequest(
            dataset=self.store.name,
            fingerprint=self.fingerprint,
            pools=tuple(self._requested(pool) for pool in dict.fromkeys(request.pools)),
            protocols=tuple(request.protocols),
            gnn=request.gnn,
            settings=tuple(request.settings),
            epochs=request.epochs,
            folds=request.folds,
            seed=request.seed,
            steps=request.steps,
            preset=request.preset,
            blocks=request.blocks,
            head=request.head,
            block_readout=request.block_readout,
            pool_options=dict(request.pool_options),
        )

    def _requested(self, pool: str) -> RequestedPool:
        keys = {looks: tuple(run.key for run in self._grid(pool, looks)) for looks in self._first_looks}
        if "fair" in self.request.protocols:
            keys["chosen"] = tuple(
                replace(run, repeat=repeat).key
                for repeat in range(1, FINAL_RUNS + 1)
                for run in self._grid(pool, "chosen")
            )
        return RequestedPool(pool, **keys)

    def _grid(self, pool: str, looks: Looks) -> list[RunConfig]:
        folds = range(self.request.folds)
        return [self._config(pool, looks, fold, setting) for setting in self.request.settings for fold in folds]

    def _final(self, pool: str) -> list[RunConfig]:
        if len(self.request.settings) > 1:
            chosen = choose_settings(self._load(self._grid(pool, "validation")))
        else:
            chosen = dict.fromkeys(range(self.request.folds), self.request.settings[0])
        return [
            replace(self._config(pool, "chosen", fold, setting), repeat=repeat)
            for repeat in range(1, FINAL_RUNS + 1)
            for fold, setting in chosen.items()
        ]

    def _model(self, pool: str, fold: int) -> ModelConfig:
        """Return the pooling's model for a fold: some options follow from the sizes of its training graphs."""

        def sizes() -> Tensor:
            return self.store.sizes[torch.from_numpy(self._folds[fold][0]).to(self.store.device)]

        return fit_options(self.models[pool], sizes, self.request.pool_options)

    def _config(self, pool: str, looks: Looks, fold: int, setting: Setting) -> RunConfig:
        recipe = PRESETS[self.request.preset]
        config = RunConfig(
            data=self.store.name,
            fingerprint=self.fingerprint,
            encoder=self.encoders[looks],
            model=self._model(pool, fold),
            fold=fold,
            folds=self.request.folds,
            seed=self.request.seed,
            looks=looks,
            epochs=self.request.epochs,
            steps=self.request.steps or -(-len(self._folds[fold][0]) // setting.batch_size),
            halve_every=recipe.halve_every,
            weight_decay=recipe.weight_decay,
            average=recipe.average,
            patience=recipe.patience,
        )
        return config.with_setting(setting)

    def judge(self, pool: str) -> Evaluation:
        """What the trained runs of one pooling say, under each protocol that they can be judged by."""
        runs = {looks: self._load(self._grid(pool, looks)) for looks in self._first_looks}
        if "fair" in self.request.protocols:
            runs["chosen"] = self._load(self._final(pool))
        labels = self.store.labels.cpu().numpy() if self.store.labels is not None else np.zeros(0)
        found = judge(runs, labels, self.request.protocols)
        about = (self.fingerprint, self.models[pool])
        return Evaluation(self.store.name, self.request, pool, found.outcomes, found.missing, runs, *about)

    def _load(self, configs: Sequence[RunConfig]) -> list[Run]:
        found = [(config, self.runs.load(config)) for config in configs]
        missing = [config.key for config, run in found if run is None]
        if missing:
            raise DataError(f"runs are missing in the store, or were removed meanwhile: {', '.join(missing[:5])}.")
        return [run for _, run in found if run is not None]


def train_together(
    evaluators: Sequence[Evaluator],
    device: str = "cpu",
    workers: int | None = None,
    report: Report = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    train: Train = train_all,
) -> bool:
    """Train what evaluations of one data set and store need, side by side; False if ``stop`` said so before the end."""
    first = evaluators[0]
    first.runs.save_dataset(DatasetFacts.of(first.store, first.fingerprint))
    for evaluator in evaluators:
        first.runs.save_request(evaluator.stored_request())
    for phase in (Evaluator.first_runs, Evaluator.final_runs):
        configs = _once([run for evaluator in evaluators for run in phase(evaluator)])
        if not train(first.store, first.runs, configs, device, workers, report, stop):
            return False
    return True


_named: WeakKeyDictionary[PackedGraphs, tuple[str, dict[Looks, str]]] = WeakKeyDictionary()


def _names(store: PackedGraphs) -> tuple[str, dict[Looks, str]]:
    """The fingerprint of a data set and its encoders: found once, however many evaluations there are of it."""
    if store not in _named:
        looks: tuple[Looks, ...] = ("test", "validation", "chosen")
        _named[store] = content_key(store), {look: repr(encoder_for(store, look)) for look in looks}
    return _named[store]


def _once(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """Two names may stand for one model, as ``sum-avg`` and ``sum`` do: it is trained once."""
    return list({config.key: config for config in configs}.values())
