"""Runs of fixed systems: a fold at one setting, whose curves are over the strengths of the learner."""

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import torch

from sopool._runtime.environment import environment, peak_memory
from sopool._runtime.threads import cores
from sopool.data.graphs import PackedGraphs
from sopool.experiments.executors.rounds import in_rounds
from sopool.experiments.systems.registry import FixedSystem, representation_seed
from sopool.experiments.systems.views import View, outputs_of
from sopool.models.systems import SYSTEMS, System
from sopool.objectives import Objective, truth_of
from sopool.training.recorder import Recorder
from sopool.training.run_splits import Split, Splitter
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Report, TrainingProgress

NO_WEIGHTS = (torch.zeros(0), torch.zeros(0))


def split_of(splitter: Splitter, config: RunConfig) -> Split:
    """Return the split of a run of a fixed system. All final runs hold out the graphs that its setting was chosen on.

    Nothing else is chosen on them, and the final model learns from them, too.
    """
    return splitter(replace(config, repeat=0))


def learn_fold(view: View, config: RunConfig, split: Split, objective: Objective, truth: np.ndarray) -> Run:
    """Return the run of one fold at one setting.

    The model is fitted to the training graphs at each strength. With ``looks="chosen"`` it is then fitted to the whole
    training fold, held-out graphs included, at the strength that was best for these, and tested.

    Args:
        view: The graphs in the representation of the setting, and the learner.
        config: The run, whose ``path`` has the strengths.
        split: Its graphs.
        objective: What is predicted.
        truth: The true values of every graph: class numbers ``[G]``, or targets ``[G, T]``.
    """
    recorder = Recorder(config, split, objective, truth)
    start = time.perf_counter()
    outputs = outputs_of(view, objective, split.train, truth[split.train], recorder.graphs, view.choices)
    seconds = (time.perf_counter() - start) / len(outputs)
    for place, scores in enumerate(outputs):
        seen = slice(len(split.train))
        loss = recorder.objective.loss(scores[seen], truth[split.train])
        if recorder.stopped is None:
            recorder.record(place, loss, scores, NO_WEIGHTS, seconds=seconds)
    predictions = {}
    if recorder.chosen_epoch is not None:
        predictions["validation_graphs"] = split.validation
        predictions["validation_logits"] = outputs[recorder.chosen_epoch][len(split.train) :]
    if recorder.chosen_epoch is not None and config.looks == "chosen":
        start = time.perf_counter()
        whole = np.sort(np.concatenate([split.train, split.validation]))
        choice = [view.choices[recorder.chosen_epoch]]
        (found,) = outputs_of(view, objective, whole, truth[whole], split.test, choice)
        predictions |= {"test_graphs": split.test, "test_logits": found}
        recorder.curves["seconds"][recorder.chosen_epoch] += time.perf_counter() - start
    facts = environment("cpu") | {"peak_memory": peak_memory("cpu")}
    return recorder.finish(predictions, facts)


def system_of(config: RunConfig) -> FixedSystem:
    """Return the fixed system of a run."""
    system: System = SYSTEMS[config.model.system]
    assert isinstance(system, FixedSystem)
    return system


def learn_all(
    store: PackedGraphs,
    runs: RunStore,
    configs: Sequence[RunConfig],
    workers: int | None = None,
    report: Report = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Compute all runs of fixed systems that are not in the store yet; return False if ``stop`` ended this early.

    One representation is in memory at a time. The folds are divided among threads, which share it.

    Args:
        store: The graphs, with labels or targets.
        runs: The store of runs.
        configs: The runs.
        workers: The number of threads. Default: None, one for each core.
        report: Called after each run.
        stop: Called after each run; if it returns True, no further run is stored.
    """
    store = store.to("cpu")
    return in_rounds(
        runs, configs, lambda pending: _in_groups(store, runs, pending, workers, report, stop), report, stop
    )


def _in_groups(
    store: PackedGraphs,
    runs: RunStore,
    pending: Sequence[RunConfig],
    workers: int | None,
    report: Report,
    stop: Callable[[], bool],
) -> list[RunConfig]:
    """Compute the runs of one representation after the other; return those that other processes compute."""
    left: list[RunConfig] = []
    for configs in by_representation(pending):
        with ExitStack() as claims:
            mine = [config for config in configs if claims.enter_context(runs.claim(config))]
            mine = [config for config in mine if runs.load(config) is None]
            left += [config for config in configs if config not in mine]
            for run in learn_together(store, mine, workers or cores(), stop) if mine else ():
                runs.save(run)
                report(_progress(run))
        if stop():
            break
    return left


def by_representation(configs: Sequence[RunConfig]) -> list[list[RunConfig]]:
    """Group runs that need the same representation of the graphs."""
    groups: dict[Hashable, list[RunConfig]] = defaultdict(list)
    for config in configs:
        given = system_of(config).representation(config.model.system_options)
        groups[config.model.system, tuple(given.items()), config.seed, config.repeat].append(config)
    return list(groups.values())


def learn_together(
    store: PackedGraphs, configs: Sequence[RunConfig], workers: int, stop: Callable[[], bool] = lambda: False
) -> Iterator[Run]:
    """Yield runs that have the same representation as they are finished."""
    from threadpoolctl import threadpool_limits  # imported here to start the command line faster

    first = configs[0]
    objective = first.objective(store)
    truth = truth_of(store, objective.task).cpu().numpy()
    splitter = Splitter.of_store(store, first)
    start = time.perf_counter()
    seed = representation_seed(first.seed, first.repeat)
    system = system_of(first)
    graphs = system.represented(store, first.model.system_options, seed)
    views = [system.view(graphs, config.model.system_options, seed) for config in configs]
    for view in views:
        view.prepare()  # before threads would do it twice
    share = (time.perf_counter() - start) / len(configs)
    with threadpool_limits(1), ThreadPoolExecutor(workers) as pool:  # more threads of BLAS compete with these
        tasks: list[Future[Run]] = [
            pool.submit(learn_fold, view, config, split_of(splitter, config), objective, truth)
            for view, config in zip(views, configs, strict=True)
        ]
        try:
            for task in as_completed(tasks):
                run = task.result()
                run.curves["seconds"][0] += share  # NaN if there is no result
                yield run
                if stop():
                    break
        finally:
            for task in tasks:
                task.cancel()


def _progress(run: Run) -> TrainingProgress:
    config = run.config
    part = "test" if config.looks == "test" else "validation"
    place = -1 if run.chosen_epoch is None else run.chosen_epoch
    score = float(run.curves[f"{part}_{config.metric}"][place])
    return TrainingProgress(1, config.epochs, score if np.isfinite(score) else None, finished=1)
