"""Cross-validate poolings and other systems on one data set, under one or several protocols."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from sopool.data.division import RANDOM, Division, with_split
from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs, check_values
from sopool.errors import DataError, SettingError, check_kind, check_name
from sopool.experiments.executors.local import Train, encoder_for, train_all
from sopool.experiments.judge import Judgement, judge
from sopool.experiments.results import EvaluationResults
from sopool.experiments.systems import SYSTEMS, FixedSystem, TrainedSystem
from sopool.experiments.systems.path import learn_all
from sopool.models.config import BlockReadout, Head, ModelConfig, Setting
from sopool.models.presets import (
    HIERARCHICAL,
    POOLS,
    PRESETS,
    Preset,
    UnusedWarning,
    fit_options,
    model_config,
    setting_for,
    share_options,
    unused_messages,
)
from sopool.models.systems.registry import FINAL_RUNS
from sopool.nn.registry import own_readouts
from sopool.objectives import METRICS, Task, objective_for, truth_of
from sopool.objectives.base import LossName
from sopool.objectives.choose import check_truth
from sopool.training.protocols.protocols import PROTOCOLS, Outcome, choose_settings
from sopool.training.run_splits import Splitter
from sopool.training.runs.config import Looks, RunConfig
from sopool.training.runs.dataset_facts import DatasetFacts
from sopool.training.runs.record import Run
from sopool.training.runs.requests import RequestedPool, StoredRequest
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Report

VERSIONS = ("sopool", "python", "torch", "torch-geometric", "numpy", "numba")


@dataclass(frozen=True)
class Request:
    """A request for the cross-validation of one or several poolings or other systems.

    Examples:
        >>> from sopool.experiments import Request, make_grid
        >>> grid = make_grid(hidden=[16, 32], batch_sizes=[32], rates=[0.01], dropouts=[0.0, 0.5])
        >>> request = Request(["sopool-bimap", "sum"], settings=grid, epochs=100)
        >>> len(request.settings), request.protocols
        (4, ('fair',))
    """

    pools: Sequence[str]
    """The names of the poolings, such as ``["sopool-bimap", "sum"]``; ``sopool pools`` lists them. A name may also be a
    pooling after message-passing layers of its own, such as ``"gcn+sum"``, or a system such as ``"wl"``, which
    ``sopool systems`` lists."""
    protocols: Sequence[str] = ("fair",)
    """The names of the evaluation protocols: ``"fair"``, ``"single-epoch"``, ``"last-epoch"``,
    ``"per-fold-max"``."""
    gnn: str = "gin-0"
    """The message-passing layers, such as ``"gin-0"`` or ``"gcn"``; ``"gine"`` also uses edge labels."""
    settings: Sequence[Setting] = ()
    """The hyperparameter settings to choose from; if empty, the one of the preset, without dropout in a regression."""
    epochs: int = 350
    """The number of epochs of each run."""
    folds: int = 10
    """The number of folds of the cross-validation, unless the graphs carry given folds."""
    seed: int = 0
    """The random seed of everything but the folds."""
    steps: int | None = 50
    """Batches per epoch; None: one pass over the training graphs."""
    preset: Preset = "default"
    """The model, and the settings of the optimizer that ``settings`` does not vary."""
    blocks: int = 0
    """The number of blocks of a hierarchical model, 1 to 3; 0 for flat models."""
    head: Head | None = None
    """The classifier of a hierarchical model; None: the one of the preset."""
    block_readout: BlockReadout = "max-mean"
    """How the nodes of a block are summarized for its classifier."""
    pool_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the poolings by name, such as ``{"rank": 16}``; each applies to the poolings that have it."""
    task: Task | None = None
    """What is predicted: ``"classification"``, ``"multi-label"`` or ``"regression"``; None: found from the values."""
    metric: str | None = None
    """The metric that chooses epochs and settings and that is compared, such as ``"roc_auc"``; None: the usual one of
    the task."""
    loss: LossName | None = None
    """The loss of a regression: ``"squared"``, ``"absolute"`` or ``"huber"``; None: ``"squared"``."""
    fold_seed: int = 0
    """The random seed of the folds."""

    def __post_init__(self) -> None:
        for name in ("pools", "protocols"):
            if isinstance(one := getattr(self, name), str):  # otherwise each letter would be a name
                object.__setattr__(self, name, (one,))

    def for_task(self, task: Task) -> "Request":
        """Return the request for a task, with the setting of the preset if none is given."""
        return replace(self, settings=tuple(self.settings) or (setting_for(self.preset, task),))

    def check(self) -> None:
        """Raise ``SettingError`` if a value is impossible."""
        for protocol in self.protocols:
            check_name("protocol", protocol, PROTOCOLS)
        if self.metric is not None:
            check_name("metric", self.metric, METRICS)
        numbers = {"epochs": self.epochs} | ({} if self.steps is None else {"steps": self.steps})
        if not self.blocks and self.head is not None:
            raise SettingError(
                f"the head {self.head!r} is for hierarchical models only: set blocks to 1, 2 or 3, or leave head out."
            )
        for setting in self.settings:
            numbers |= {"hidden": setting.hidden, "batch_size": setting.batch_size}
            if not setting.lr > 0:
                raise SettingError(f"the learning rate must be positive, but {setting.lr} was given.")
            if not 0 <= setting.dropout < 1:
                raise SettingError(f"the dropout rate must be at least 0 and below 1, but {setting.dropout} was given.")
        for name, number in numbers.items():
            if number < 1:
                raise SettingError(f"{name} must be at least 1, but {number} was given.")


class SettingChoice(NamedTuple):
    """The choice of a setting under ``fair``."""

    deciding: tuple[RunConfig, ...]
    """The runs whose scores on held-out graphs choose the setting of each fold; none if there is only one setting."""
    finals: int
    """The number of final runs."""
    final: Callable[[], list[RunConfig]]
    """Returns the final runs; those that choose the settings must be complete."""


@dataclass(frozen=True)
class Evaluation:
    """The results of one pooling, or another system, under all requested protocols.

    Examples:
        >>> from sopool.experiments import Evaluation, Request
        >>> from sopool.models.config import Setting
        >>> from sopool.training.protocols.protocols import Outcome
        >>> outcome = Outcome("fair", "", (0.75, 0.25), ((3,), (8,)), (Setting(),) * 2)
        >>> evaluation = Evaluation("toy", Request(["sum"]), "sum", {"fair": outcome}, missing={}, runs={})
        >>> evaluation.outcomes["fair"].mean
        0.5
    """

    dataset: str
    """The name of the data set."""
    request: Request
    """The request that this answers."""
    pool: str
    """The name of the pooling."""
    outcomes: dict[str, Outcome]
    """The result under each protocol, by name."""
    missing: dict[str, str]
    """The reason why a requested protocol has no result, by name."""
    runs: dict[Looks, list[Run]] = field(repr=False)
    """The runs, by the graphs that they are scored on."""
    fingerprint: str = ""
    """A hash of the graphs, labels and classes."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The configuration of the model."""
    task: Task = "classification"
    """What is predicted."""
    split: str = RANDOM
    """What the graphs were divided by, such as ``"random"`` or ``"scaffold"``."""

    @property
    def network(self) -> str:
        """The network before the pooling, as text."""
        return self.model.network

    @property
    def model_epochs(self) -> int:
        """The number of trained epochs of all runs."""
        return sum(int(np.isfinite(run.curves["step_loss"]).sum()) for runs in self.runs.values() for run in runs)

    @property
    def seconds(self) -> float:
        """The training time of all runs in seconds; parallel workers count separately."""
        return float(sum(np.nansum(run.curves["seconds"]) for runs in self.runs.values() for run in runs))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; shares such as accuracies are fractions."""
        environments = [run.environment for runs in self.runs.values() for run in runs]
        path = next((run.config.path for runs in self.runs.values() for run in runs), ())
        return {
            "dataset": self.dataset,
            "task": self.task,
            "gnn": None if self.model.system else self.model.gnn,
            "pool": self.pool,
            "pool_options": self.model.pool_options,
            "blocks": self.model.blocks,
            "head": self.model.head if self.model.blocks else None,
            "block_readout": self.model.block_readout if self.model.blocks else None,
            "preset": self.request.preset,
            "epochs": len(path) or self.request.epochs,
            **({"strengths": list(path)} if path else {}),
            "seed": self.request.seed,
            "split": self.split,
            "fold_seed": self.request.fold_seed,
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
    """Return all combinations of the given values, without repetitions.

    Args:
        hidden: Widths of the hidden layers.
        batch_sizes: Numbers of graphs in a batch.
        rates: Learning rates.
        dropouts: Dropout rates.

    Examples:
        >>> from sopool.experiments import make_grid
        >>> grid = make_grid(hidden=[16, 32], batch_sizes=[32], rates=[0.01], dropouts=[0.0, 0.5])
        >>> len(grid), grid[0]
        (4, Setting(hidden=16, batch_size=32, lr=0.01, dropout=0.0))
    """
    return list(dict.fromkeys(Setting(*values) for values in product(hidden, batch_sizes, rates, dropouts)))


class Evaluator:
    """Plan the runs of a request, train them and compute the results.

    Args:
        store: The graphs, with labels or targets.
        request: The poolings, protocols and hyperparameters to evaluate.
        runs: The store of runs. Runs that it already has are not trained again.
        splits: A splitter of scikit-learn, pairs (train, test) of graph numbers, or the fold of each graph ``[G]``.
            Default: None, the split that the graphs carry, see :func:`~sopool.data.with_split`, else random folds.
        groups: The group of each graph ``[G]``. Graphs of a group are never divided between training, held-out and test
            graphs. Default: None, as the graphs carry it.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments import Evaluator, Request
        >>> from sopool.training.runs.store import RunStore
        >>> request = Request(["sopool-bimap", "sum"], epochs=1, steps=1, folds=2)
        >>> with TemporaryDirectory() as folder:
        ...     found = Evaluator(make_agreement(60), request, RunStore(folder)).evaluate()
        >>> [(one.pool, len(one.outcomes["fair"].folds)) for one in found]
        [('sopool-bimap', 2), ('sum', 2)]
    """

    def __init__(
        self, store: PackedGraphs, request: Request, runs: RunStore, splits: Any = None, groups: Any = None
    ) -> None:
        check_kind(store, PackedGraphs, "store must be a PackedGraphs, as sopool.data.load(...) and pack(...) return")
        check_kind(runs, RunStore, "runs must be a sopool.training.runs.store.RunStore(folder)")
        request.check()
        if splits is not None or groups is not None:
            store = with_split(store, splits, groups)
        check_values(store)
        self.division = Division.of(store)
        request = replace(request, folds=self.division.count(request.folds))
        self.objective = objective_for(store, request.task, request.metric, request.loss)
        self.truth = truth_of(store, self.objective.task).cpu().numpy()
        check_truth(self.objective, self.truth)
        self.store = store
        self.request = request = request.for_task(self.objective.task)
        self.runs = runs
        self.fingerprint, self.encoders = _names(store)
        self.systems = {pool: system for pool in request.pools if isinstance(system := SYSTEMS.get(pool), FixedSystem)}
        """The fixed systems of the request."""
        self.trained = {
            pool: system for pool in request.pools if isinstance(system := SYSTEMS.get(pool), TrainedSystem)
        }
        """The trained systems of the request."""
        others = self.systems | self.trained
        self._fitted = dict[tuple[str, int], ModelConfig]()
        self.refused = {pool: why for pool, system in others.items() if (why := system.refuses(store))}
        """The reasons why some systems cannot be evaluated on these graphs."""
        networks = {pool: network_of(pool, request.gnn) for pool in request.pools if pool not in others}
        shared = share_options([pool for _, pool in networks.values()], request.blocks, request.pool_options)
        self.options = {name: shared[pool] for name, (_, pool) in networks.items()}
        given = (request.preset, request.blocks, request.head, request.block_readout)
        self.models = {pool: system.model for pool, system in others.items()} | {
            name: model_config(store, gnn, pool, *given, shared[pool], self.objective.task)
            for name, (gnn, pool) in networks.items()
        }
        for message in dict.fromkeys(one for gnn, _ in networks.values() for one in unused_messages(store, gnn)):
            warnings.warn(message, UnusedWarning, stacklevel=2)
        splitter = Splitter.of(self.objective, self.truth, self.division)
        self._folds = splitter.check(request.folds, "fair" in request.protocols, request.fold_seed)
        self.continued = self._continue_stored()
        """The poolings that have earlier defaults than the current ones, because the store has such runs."""

    def evaluate(
        self,
        device: str = "cpu",
        workers: int | None = None,
        report: Report = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
        train: Train = train_all,
    ) -> EvaluationResults | None:
        """Train the missing runs and compute the results; return None if ``stop`` ended the training early.

        Args:
            device: ``"cpu"`` (default) or ``"cuda"``.
            workers: The number of processes on a CPU. Default: None, one for each core if there is enough work.
            report: Called with the progress of training.
            stop: Called after each epoch; if it returns True, training ends.
            train: The function that trains runs. Default: on this machine.
        """
        if not train_together([self], device, workers, report, stop, train):
            return None
        return EvaluationResults(self.judge(pool) for pool in self.request.pools)

    @property
    def total_epochs(self) -> int:
        """The number of epochs of all runs together, including final runs whose settings are not chosen yet.

        A fixed system has an epoch for each strength of its learner.
        """
        final = sum(
            self._finals(pool) * self._config(pool, "chosen", 0, self._settings(pool)[0]).epochs for pool in self._fair
        )
        return sum(run.epochs for run in self.first_runs()) + self.request.folds * final

    @property
    def total_runs(self) -> int:
        """The number of all runs, including final runs whose settings are not chosen yet."""
        return len(self.first_runs()) + self.request.folds * sum(map(self._finals, self._fair))

    @property
    def _fair(self) -> list[str]:
        """The names of what is evaluated under ``fair``."""
        pools = dict.fromkeys(self.request.pools) if "fair" in self.request.protocols else {}
        return [pool for pool in pools if pool not in self.refused]

    def _settings(self, pool: str) -> Sequence[Setting]:
        if pool in self.trained:
            return self.trained[pool].settings
        system = self.systems.get(pool)
        return self.request.settings if system is None else [Setting.of_system(one) for one in system.settings]

    def _finals(self, pool: str) -> int:
        """Return the number of final runs of each fold."""
        system = self.systems.get(pool)
        return FINAL_RUNS if system is None else system.final_runs

    def first_runs(self) -> list[RunConfig]:
        """Return the runs of all settings and folds, for the test-fold protocols and for the choice of settings."""
        return list(self._first_runs)

    @cached_property
    def _first_runs(self) -> list[RunConfig]:
        pools = self.request.pools
        return _once([run for pool in pools for looks in self._first_looks(pool) for run in self._grid(pool, looks)])

    def _first_looks(self, pool: str) -> list[Looks]:
        if pool in self.refused:
            return []
        wanted: list[Looks] = []
        if any(PROTOCOLS[protocol].looks == ("test",) for protocol in self.request.protocols):
            wanted.append("test")
        if "fair" in self.request.protocols and len(self._settings(pool)) > 1:
            wanted.append("validation")
        return wanted

    def final_runs(self) -> list[RunConfig]:
        """Return the runs that ``fair`` reports; the runs that choose the settings must be complete."""
        return _once([run for choice in self.choices() for run in choice.final()])

    def choices(self) -> "list[SettingChoice]":
        """Return how ``fair`` finds the runs that it reports, for each pooling or system."""
        return [
            SettingChoice(
                tuple(self._grid(pool, "validation") if len(self._settings(pool)) > 1 else ()),
                self._finals(pool) * self.request.folds,
                partial(self._final, pool),
            )
            for pool in self._fair
        ]

    def stored_request(self) -> StoredRequest:
        """Return the request as the store keeps it, with the keys of all runs."""
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
            task=request.task,
            metric=request.metric,
            loss=request.loss,
            split=self.division.key if self.division.arrays else None,
            split_seed=request.fold_seed or None,
        )

    def _continue_stored(self) -> list[str]:
        """Use the earlier defaults of poolings if the store has runs of the request with them, to find these again."""
        now = self.models
        first = {pool: model.with_first_defaults() for pool, model in now.items()}
        changed = [pool for pool, model in first.items() if model.canonical() != now[pool].canonical()]
        self.models = first
        if any(self._is_stored(self._requested(pool)) for pool in changed):
            return changed
        self.models = now
        return []

    def _is_stored(self, requested: RequestedPool) -> bool:
        keys = (*requested.test, *requested.validation, *requested.chosen)
        return any((self.runs.folder / key).is_dir() for key in keys)

    def _requested(self, pool: str) -> RequestedPool:
        keys = {looks: tuple(run.key for run in self._grid(pool, looks)) for looks in self._first_looks(pool)}
        if pool in self._fair:
            keys["chosen"] = tuple(
                replace(run, repeat=repeat).key
                for repeat in range(1, self._finals(pool) + 1)
                for run in self._grid(pool, "chosen")
            )
        return RequestedPool(pool, **keys)

    def _grid(self, pool: str, looks: Looks) -> list[RunConfig]:
        folds = range(self.request.folds)
        return [self._config(pool, looks, fold, setting) for setting in self._settings(pool) for fold in folds]

    def _final(self, pool: str) -> list[RunConfig]:
        settings = self._settings(pool)
        if len(settings) > 1:
            chosen = choose_settings(self._load(self._grid(pool, "validation")))
        else:
            chosen = dict.fromkeys(range(self.request.folds), settings[0])
        return [
            replace(self._config(pool, "chosen", fold, setting), repeat=repeat)
            for repeat in range(1, self._finals(pool) + 1)
            for fold, setting in chosen.items()
        ]

    def _model(self, pool: str, fold: int) -> ModelConfig:
        """Return the pooling's model for a fold: some options depend on the fold's training graphs."""
        train = torch.from_numpy(self._folds[fold][0]).to(self.store.device)
        if pool in self.trained:
            if (pool, fold) not in self._fitted:
                self._fitted[pool, fold] = self.trained[pool].model_for(self.store[train])
            return self._fitted[pool, fold]

        def sizes() -> Tensor:
            return self.store.sizes[train]

        return fit_options(self.models[pool], sizes, self.request.pool_options)

    def _config(self, pool: str, looks: Looks, fold: int, setting: Setting) -> RunConfig:
        recipe = PRESETS[self.request.preset]
        config = RunConfig(
            data=self.store.name,
            fingerprint=self.fingerprint,
            encoder="" if pool in self.systems else self.encoders[looks],
            model=self.models[pool],
            fold=fold,
            folds=self.request.folds,
            split=self.division.key,
            split_seed=self.request.fold_seed,
            seed=self.request.seed,
            looks=looks,
            **self.objective.settings,
        )
        if pool in self.systems:
            path = self.systems[pool].path
            return replace(config, path=path, epochs=len(path)).with_setting(setting)
        if pool in self.trained:
            own = self.trained[pool].training(len(self._folds[fold][0]), setting.batch_size)
            own["epochs"] = min(own["epochs"], self.request.epochs)
            return replace(config, model=self._model(pool, fold), **own).with_setting(setting)
        config = replace(
            config,
            model=self._model(pool, fold),
            epochs=self.request.epochs,
            steps=self.request.steps or -(-len(self._folds[fold][0]) // setting.batch_size),
            halve_every=recipe.halve_every,
            weight_decay=recipe.weight_decay,
            average=recipe.average,
            patience=recipe.patience,
        )
        return config.with_setting(setting)

    def judge(self, pool: str) -> Evaluation:
        """Return the results of the trained runs of one pooling, under each protocol."""
        runs = {looks: self._load(self._grid(pool, looks)) for looks in self._first_looks(pool)}
        if pool in self._fair:
            runs["chosen"] = self._load(self._final(pool))
        if pool in self.refused:
            found = Judgement(missing=dict.fromkeys(self.request.protocols, self.refused[pool]))
        else:
            found = judge(runs, self.truth, self.request.protocols, self.objective)
        about = (self.fingerprint, self.models[pool], self.objective.task, self.division.name)
        return Evaluation(self.store.name, self.request, pool, found.outcomes, found.missing, runs, *about)

    def _load(self, configs: Sequence[RunConfig]) -> list[Run]:
        found = [(config, self.runs.load(config)) for config in configs]
        missing = [config.key for config, run in found if run is None]
        if missing:
            raise DataError(
                f"{len(missing)} runs are missing in the store or were removed meanwhile: {', '.join(missing[:5])}. "
                "Evaluate again to train them."
            )
        return [run for _, run in found if run is not None]


def train_together(
    evaluators: Sequence[Evaluator],
    device: str = "cpu",
    workers: int | None = None,
    report: Report = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    train: Train = train_all,
) -> bool:
    """Train the runs of evaluations on one data set and store together; return False if ``stop`` ended them early."""
    first = evaluators[0]
    first.runs.save_dataset(DatasetFacts.of(first.store, first.fingerprint))
    for evaluator in evaluators:
        first.runs.save_request(evaluator.stored_request())
    for phase in (Evaluator.first_runs, Evaluator.final_runs):
        configs = _once([run for evaluator in evaluators for run in phase(evaluator)])
        paths = [config for config in configs if config.path]
        networks = [config for config in configs if not config.path]
        if paths and not learn_all(first.store, first.runs, paths, workers, report, stop):
            return False
        if not train(first.store, first.runs, networks, device, workers, report, stop):
            return False
    return True


def network_of(name: str, gnn: str) -> tuple[str, str]:
    """Return message-passing layers and pooling of a network: those of ``gcn+sum``, or ``gnn`` and a pooling.

    Raises ``SettingError`` for the name of neither a pooling nor a system.
    """
    layers, plus, pool = name.rpartition("+")
    known = (*POOLS, *own_readouts(), *HIERARCHICAL)
    if plus:
        check_name("pooling", pool, known)
    elif pool not in known:
        check_name("pooling or system", pool, list(dict.fromkeys((*known, *SYSTEMS))))
    return (layers if plus else gnn), pool


_named: WeakKeyDictionary[PackedGraphs, tuple[str, dict[Looks, str]]] = WeakKeyDictionary()


def _names(store: PackedGraphs) -> tuple[str, dict[Looks, str]]:
    """Return the fingerprint and the encoders of a data set, which are computed only once."""
    if store not in _named:
        looks: tuple[Looks, ...] = ("test", "validation", "chosen")
        _named[store] = content_key(store), {look: encoder_for(store, look).recipe for look in looks}
    return _named[store]


def _once(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """Remove duplicates: two names may stand for the same model, as ``sum-avg`` and ``sum`` do."""
    return list({config.key: config for config in configs}.values())
