"""Training and predicting on a CUDA device: banks, runs that go on, ensembles. Parts of `check_cuda.py`."""

import itertools
import tempfile
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import torch

from sopool import GraphClassifier
from sopool.data import load
from sopool.estimator.ensemble import TOGETHER, Ensemble
from sopool.models import ModelConfig, extras_for
from sopool.models.config import RANDOM
from sopool.models.presets import FROZEN
from sopool.nn import READOUTS
from sopool.nn.gnn import VARIANTS
from sopool.training.bank.bank import Bank
from sopool.training.bank.batching import GraphTables
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Trainer
from tests.helpers.cuda_cases import check, error
from tests.helpers.training_graphs import (
    GOALS,
    bank_of,
    edge_label_options,
    goal_store,
    little_store,
    rich_model,
    rich_store,
    rich_tables,
    run_config,
    tables_of,
)

PAIRS = [(gnn, pool) for gnn, pool in zip(itertools.cycle(VARIANTS), [*READOUTS, *FROZEN], strict=False)]


def check_bank(gnn: str, pool: str) -> None:
    """The law of the bank on the GPU for a network and a pooling."""
    join = "per-layer" if pool in ("sum", "mean", "max") else "concat"
    model = edge_label_options(gnn) | {"pool": pool.removesuffix(RANDOM), "join": join, "frozen": pool.endswith(RANDOM)}
    changes = {"average": 0.9 if pool.endswith("bimap") else 0.0}
    tables = tables_of(little_store())
    if pool == "sortpool":
        check_first_loss(f"bank {gnn} {pool}", tables, model=model)
        return
    check_law(f"bank {gnn} {pool}", tables, "max" in (pool, VARIANTS[gnn].how), model=model, **changes)


def check_first_loss(label: str, tables: GraphTables, **shared: Any) -> None:
    """The loss of the first step, on the GPU and on the CPU, together and alone.

    Nodes in like places tie up to rounding. Sorting puts one or the other first, and the gradient goes with it.
    """
    configs = [run_config(fold=fold, seed=fold, steps=1, **shared) for fold in range(3)]
    together, alone, there = (
        torch.from_numpy(bank_of(tables.to(device), runs).run_epoch())
        for device, runs in (("cuda", configs), ("cuda", configs[1:2]), ("cpu", configs))
    )
    check(f"{label}, first loss, of 3 against a run by itself", error(alone, together[1:2]), 1e-9)
    check(f"{label}, first loss, against the CPU", error(together, there), 1e-6)


def check_columns() -> None:
    """The law of the bank on the GPU for several columns of categories, and attributes of nodes and graphs."""
    store = replace(rich_store(), edge_attributes=None, edge_weights=None)
    model = rich_model(store)
    check_law("bank, columns", rich_tables(store, run_config(model=model).model), False, model=model)


def check_objective(goal: str) -> None:
    """The law of the bank on the GPU for an objective, with weighted graphs, and that no step waits for the device."""
    tables = tables_of(goal_store(goal), **GOALS[goal])
    tables = replace(tables, weights=torch.rand(len(tables), dtype=torch.float64))
    check_law(f"bank, {goal}", tables, False, **GOALS[goal])
    objective, truth = tables.to("cuda").goal
    truth = truth.unsqueeze(0)
    loss = objective.make_loss([objective], truth.device, torch.float32)
    scores = torch.zeros(*truth.shape[:2], objective.width, device=truth.device, requires_grad=True)
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.autograd.grad(loss(scores, truth).sum(), scores)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    print(f"the loss of {goal} does not wait for the device")


def check_law(label: str, tables: GraphTables, tied: bool, **shared: Any) -> None:
    """Captured, step by step, on the CPU, and a run by itself; 100 steps, float64.

    Where values tie up to rounding, a gradient goes one way or the other, and the CPU is not compared.
    """
    configs = [run_config(fold=fold, seed=fold, lr=0.01 / (fold + 1), **shared) for fold in range(3)]

    def trained(device: str, runs: list, captures: bool = True) -> torch.Tensor:
        """Parameters and their running means."""
        bank = bank_of(tables.to(device), runs)
        assert bank.captures == captures
        for _ in range(20):
            bank.run_epoch()
        return torch.cat([bank.values, *bank.shown], dim=1)

    together = trained("cuda", configs)
    alone = trained("cuda", configs[1:2])
    with mock.patch.object(Bank, "captures", False):
        step_by_step = trained("cuda", configs, captures=False)
    check(f"{label}, captured against step by step", error(together, step_by_step.cpu()), 1e-9)
    check(f"{label}, of 3 against a run by itself", error(alone, together[1:2].cpu()), 1e-9)
    if not tied:
        check(f"{label}, against the CPU", error(together, trained("cpu", configs, captures=False)), 1e-6)


def check_captured_pairs() -> None:
    """The law of the bank on the GPU for pairs of nodes, in directed graphs as well."""
    for directed in (False, True):
        store = little_store(directed=directed)
        for options in ({}, {"rest": True, "normalize": "pairs"}, {"walks": True, "normalize": "size"}):
            model = {"pool": "sopool-pairs", "pool_options": {"rank": 3, "distances": 2} | options}
            tables = tables_of(store).with_extras(store, extras_for(ModelConfig(**model)), cached=False)
            check_law(
                f"bank, pairs, {'' if directed else 'un'}directed, {' '.join(options)}", tables, False, model=model
            )


def check_optimizers() -> None:
    """The law of the bank on the GPU for optimizers other than Adam, with clipped gradients."""
    tables = tables_of(little_store())
    for name, momentum in (("sgd", 0.9), ("rmsprop", 0.0), ("adagrad", 0.0)):
        check_law(f"bank, {name}", tables, False, optimizer=name, momentum=momentum, clip=0.3)


def check_going_on(average: float) -> None:
    """Runs that were stopped half-way, some before and some after their best epoch, end as if nothing had happened."""
    tables = tables_of(little_store()).to("cuda")
    configs = [run_config(looks="chosen", repeat=1, fold=fold, epochs=12, average=average) for fold in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        straight = RunStore(f"{folder}/straight")
        broken = RunStore(f"{folder}/broken")
        Trainer(tables, straight).train(configs)
        for asked in (2, 5):
            count = itertools.count(1)
            Trainer(tables, broken, stop=lambda count=count, asked=asked: next(count) >= asked).train(configs)
        Trainer(tables, broken).train(configs)
        pairs = [(straight.load(config), broken.load(config)) for config in configs]
    for one, other in pairs:
        for name in one.predictions:
            assert np.array_equal(one.predictions[name], other.predictions[name]), name
    print("runs that were stopped go on as if nothing had happened")


def check_predictions() -> None:
    """Of models trained on the CPU, moved to the GPU: the same scores, in one piece and in many."""
    mutag = load("MUTAG")
    for gnn, pool in (
        ("gin-0", "sopool-bimap"),
        ("gine", "sopool-attn"),
        ("graphsage", "eigenpool"),
        ("gcn", "sopool-pairs"),
    ):
        model = GraphClassifier(gnn=gnn, pool=pool, n_models=2, epochs=1, device="cpu", random_state=0).fit(mutag)
        want, here = (ensemble.scores(mutag, ensemble.encode(mutag)) for ensemble in both(model.ensemble_))
        check(f"scores of {gnn} with {pool}, against the CPU", error(here, want.double()), 1e-4)
        with mock.patch.dict(TOGETHER, cuda=500):
            _, pieces = (ensemble.scores(mutag, ensemble.encode(mutag)) for ensemble in both(model.ensemble_))
        check(f"scores of {gnn} with {pool}, in many pieces", error(pieces, here.cpu().double()), 1e-6)


def both(ensemble: Ensemble) -> tuple[Ensemble, Ensemble]:
    """Here and there."""
    return ensemble, ensemble.to("cuda")
