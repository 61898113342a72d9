"""What a captured step is made of, apart from the capture itself: room to spare, and steps by their number."""

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.models import extras_for
from sopool.nn import GRAPH_READOUTS, READOUTS
from sopool.nn.gnn import VARIANTS
from sopool.ops import backends
from sopool.training.bank import capture as capture_module
from sopool.training.bank import scoring as scoring_module
from sopool.training.bank.bank import Bank
from sopool.training.bank.batching import Capacity, GraphTables
from sopool.training.bank.capture import Steps, find_capacity, round_up
from tests.helpers.marks import needs_triton
from tests.helpers.training_graphs import (
    GOALS,
    bank_of,
    edge_label_options,
    goal_store,
    little_store,
    run_config,
    tables_of,
)

LITTLE = {"pool": "sopool-bimap", "layers": 1, "hidden": 2}
counts = st.integers(0, 10**7)
# Every GNN, and every readout whose steps are captured.
POOLS = [pool for pool in (*READOUTS, *GRAPH_READOUTS) if pool != "eigenpool"]
PAIRS = [(list(VARIANTS)[i % len(VARIANTS)], pool) for i, pool in enumerate(POOLS)]
DAILY = ("sopool-attn", "max")  # the others, which take the interpreter seconds each, in make test-all
SOME = [pair if pair[1] in DAILY else pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS]
SHORT = {"rank": 2, "distances": 2}
FORMS = {"rest": {"rest": True, "normalize": "pairs"}, "walks": {"walks": True, "normalize": "size"}}


@needs_triton
@pytest.mark.parametrize(("gnn", "pool"), SOME)
def test_a_step_with_room_to_spare_is_the_same_step(gnn, pool):
    """Nothing of the rows and list members that are too many reaches parameters, statistics or losses."""
    options = {"pool_options": SHORT} if pool == "sopool-pairs" else {}
    check_room_to_spare(edge_label_options(gnn) | {"pool": pool} | options, directed=gnn == "mean-mlp")


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_step_of_pairs_with_room_to_spare_is_the_same_step(form, directed):
    check_room_to_spare({"pool": "sopool-pairs", "pool_options": SHORT | FORMS[form]}, directed)


def check_room_to_spare(model, directed):
    store = little_store(directed=directed)
    runs = [
        run_config(model=model | {"layers": 1, "hidden": 2}, fold=fold, seed=fold, batch_size=3) for fold in range(2)
    ]
    tables = tables_of(store).with_extras(store, extras_for(runs[0].model), cached=False)
    exact = bank_of(tables, runs)
    with_capacity = bank_of(tables, runs)
    losses = []
    with backends.backend("triton"), np.errstate(all="ignore"):
        for bank, more in ((exact, 0), (with_capacity, 40)):
            bank.model.train()
            draws = bank._draw(0)
            capacity = tables.capacity(draws.graphs[0])
            losses.append(bank._step(bank._steps(draws).at(0), Capacity(*(count + more for count in capacity))))
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-12, atol=1e-12)
    for got, want in zip(vars(with_capacity.state).values(), vars(exact.state).values(), strict=True):
        assert got.isfinite().all()
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-12)


class Kept:
    """In place of a CUDA graph: what was captured, done again by ``replay``."""

    def __init__(self, work):
        self.replay = work


@pytest.fixture
def captures(monkeypatch):
    """Banks capture, by way of something that stands for a CUDA graph; without spare room, which needs the kernels."""
    exact = GraphTables.batch

    def capture_as(graph):
        monkeypatch.setattr(Bank, "captures", True)
        monkeypatch.setattr(
            GraphTables, "batch", lambda tables, graphs, rest=None, capacity=None: exact(tables, graphs, rest)
        )
        for module in (capture_module, scoring_module):
            monkeypatch.setattr(module, "run_aside", lambda work: work())
            monkeypatch.setattr(module, "capture", lambda work, beside=None: graph(work))

    return capture_as


@pytest.mark.parametrize("goal", GOALS)
def test_replayed_epochs_are_those_step_by_step(captures, goal):
    """But for the capture itself: steps in order, the state taken back after the first run, scores, running means."""
    tables = tables_of(goal_store(goal), **GOALS[goal])
    shared = {"model": LITTLE, "batch_size": 3, "steps": 3, "average": 0.9}
    runs = [run_config(fold=fold, **shared | GOALS[goal]) for fold in range(2)]
    graphs = [np.arange(len(tables))] * 2
    found = []
    for replayed in (False, True):
        if replayed:
            captures(Kept)
        bank = bank_of(tables, runs)
        found.append([[bank.run_epoch(), *bank.scores(graphs)] for _ in range(3)])
    for epochs in zip(*found, strict=True):
        for plain, again in zip(*epochs, strict=True):
            np.testing.assert_allclose(again, plain, rtol=1e-9, atol=1e-12)


def test_a_bank_that_captures_goes_with_its_last_reference(captures):
    """Its memory is that of the device: it must not wait for the garbage collector."""
    captures(lambda work: Kept(lambda: None))
    tables = tables_of(little_store())
    graphs = [np.arange(len(tables))]
    gc.disable()
    try:
        bank = bank_of(tables, [run_config(model=LITTLE, batch_size=3, steps=2)])
        for _ in range(2):
            bank.run_epoch()
            bank.scores(graphs)
        left = weakref.ref(bank)
        del bank
        assert left() is None
    finally:
        gc.enable()


@needs_triton
@pytest.mark.parametrize(
    ("gnn", "pool", "frozen"),
    [
        ("gine-eps", "sopool-bimap", False),
        pytest.param("gin-0", "sopool-bimap", False, marks=pytest.mark.slow),
        *(
            pytest.param("gin-0", pool, True, marks=pytest.mark.slow)
            for pool in ("sopool-bimap", "sopool-attn", "sopool-m-attn")
        ),
    ],
)
def test_a_step_by_kernels_is_the_one_without(gnn, pool, frozen):
    tables = tables_of(little_store(directed=gnn == "gine-eps"))
    model = edge_label_options(gnn) | {"layers": 1, "hidden": 2, "pool": pool, "frozen": frozen}
    runs = [run_config(model=model, batch_size=3, seed=seed) for seed in range(2)]
    plain = bank_of(tables, runs)
    by_kernels = bank_of(tables, runs)
    for bank, name in ((plain, "torch"), (by_kernels, "triton")):
        bank.model.train()
        with backends.backend(name), np.errstate(all="ignore"):
            bank._step(bank._steps(bank._draw(0)).at(0))
    torch.testing.assert_close(by_kernels.values, plain.values, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(by_kernels.statistics, plain.statistics, rtol=1e-9, atol=1e-12)


@given(counts, counts)
def test_room_is_rounded_up_a_little(nodes, listed):
    capacity = Capacity(nodes, listed)
    rounded = round_up(capacity)
    assert round_up(rounded) == rounded
    for count, new in zip(capacity, rounded, strict=True):
        assert new >= max(count, 1)
        assert new - count <= max(64, count / 16)
        assert new % 64 == 0


@given(counts, counts)
def test_more_never_gets_less_room(a, b):
    small, large = (round_up(Capacity(count, 0)).nodes for count in sorted((a, b)))
    assert small <= large


@given(st.integers(10, 20))
def test_a_few_shapes_serve_all(power):
    counts = np.linspace(2**power, 2 ** (power + 1), 200).astype(int).tolist()
    assert len({round_up(Capacity(count, count)) for count in counts}) <= 17


@given(counts, counts)
def test_room_made_for_a_batch_is_found_for_it_and_somewhat_smaller_ones(nodes, listed):
    needed = Capacity(nodes, listed)
    capacities = {round_up(needed): None, Capacity(10**9, 10**9): None}
    assert find_capacity(needed, capacities) == round_up(needed)
    smaller = Capacity(int(nodes * 0.9), int(listed * 0.9))
    assert find_capacity(smaller, capacities) == round_up(needed)
    larger = Capacity(round_up(needed).nodes + 1, listed)
    assert find_capacity(larger, capacities) is None


def test_a_step_by_its_number_here_and_on_the_device():
    graphs = torch.arange(24).view(4, 2, 3)
    keys = torch.arange(8).view(4, 2)
    steps = Steps(graphs, keys, torch.rand(4, 2, 1), torch.rand(4, 2, 1), torch.arange(4.0), torch.rand(4))
    for number in range(4):
        for here, there, whole in zip(steps.at(number), steps.at(torch.tensor([number])), steps, strict=True):
            assert torch.equal(here, whole[number])
            assert torch.equal(here, there)
            assert here.shape == there.shape
