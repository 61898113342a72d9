"""Pairs of nodes in banks: against separate runs, against the plain loop, and the lists of a batch."""

from functools import partial

import numpy as np
import pytest
import torch

from sopool.data import Graph, make_distant, make_rings, pack
from sopool.data.analysis.distance_cache import all_pairs_of
from sopool.data.analysis.distances import all_pair_lists
from sopool.data.extras import pairs as extra
from sopool.errors import SettingError
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.models import ModelConfig, extras_for
from sopool.training.bank.bank import new_model
from sopool.training.bank.batching import Capacity
from sopool.training.run_splits import run_seed
from tests.helpers.marks import needs_triton
from tests.helpers.reference import Reference
from tests.helpers.training_graphs import bank_of, little_store, run_config, tables_of
from tests.training.test_bank import check_the_law, members

FORMS = {
    "default": {},
    "rest, decayed": {"rest": True, "normalize": None, "layers": None, "decay": 0.5},
    "slow, alone": {"lr_scale": 0.1, "with_sum": False, "layers": 1, "normalize": "size"},
    "walks": {"walks": True, "normalize": None, "decay": 0.1, "lr_scale": 0.5},
}
OTHERS = {
    "normed": {"batch_norm": True, "normalize": "sqrt"},
    "by pairs, no mapping": {"rank": None, "layers": 1, "normalize": "pairs"},
}
every_form = pytest.mark.parametrize("form", FORMS)


def shape_of(form):
    return {"pool_options": {"rank": 3, "distances": 2} | (FORMS | OTHERS)[form]}


def tables_with_pairs(store, form):
    config = ModelConfig(pool="sopool-pairs", **shape_of(form))
    return tables_of(store).with_extras(store, extras_for(config), cached=False)


@pytest.mark.parametrize("form", [*FORMS, *OTHERS])
def test_a_bank_gives_what_separate_runs_give(form):
    store = little_store(directed=form == "walks")
    check_the_law(members("gin-0", "sopool-pairs", shape=shape_of(form)), 3, tables_with_pairs(store, form))


@every_form
@pytest.mark.parametrize("directed", [False, True])
def test_a_run_is_the_plain_loop(form, directed):
    store = little_store(directed=directed)
    tables = tables_with_pairs(store, form)
    config = run_config(model={"pool": "sopool-pairs", **shape_of(form)}, steps=4)
    bank = bank_of(tables, [config])
    model = new_model(config, tables.features.width, tables.goal[0].width)
    plain = Reference(store, tables.features, model, config, bank.splits[0].train, run_seed(config))
    for epoch in range(2):
        assert bank.run_epoch()[0] == pytest.approx(plain.run_epoch(epoch), rel=1e-9)
    values = torch.cat([p.detach().flatten() for p in plain.model.parameters()])
    torch.testing.assert_close(bank.values[0], values, rtol=1e-8, atol=1e-9)


def test_only_the_weights_of_pairs_decay():
    """By the learning rate times the decay at each step, if no gradient moves them."""
    tables = tables_with_pairs(little_store(), "default")
    options = shape_of("default")["pool_options"] | {"decay": 0.5}
    bank = bank_of(
        tables, [run_config(model={"pool": "sopool-pairs", "pool_options": options}, lr=lr) for lr in (0.1, 0.2)]
    )
    decays = bank.model.decays()
    names = [name for name, _ in bank.model.named_parameters()]
    for name, decay in zip(names, decays, strict=True):
        if name == "readouts.0.weight":
            assert decay.eq(0.5).all()
        elif name == "heads.0.weight":
            width = bank.model.readouts[0].pair_width
            assert width == 3 * 3 * 3
            assert decay[..., :width].eq(0.5).all()
            assert not decay[..., width:].any()
        else:
            assert not decay.any()
    options["decay"] = 0.0
    assert bank_of(tables, [run_config(model={"pool": "sopool-pairs", "pool_options": options})]).decays is None


def test_the_pairs_of_a_batch_are_those_of_its_graphs():
    """Also in tables for runs, which take the lists from the cache."""
    store = little_store()
    config = run_config(model={"pool": "sopool-pairs", **shape_of("default")})
    tables = tables_for(store, TableFacts.of(config), "cpu")
    graphs = torch.tensor([[3, 5, 0], [3, 7, 1]])
    found = tables.batch(graphs).neighbors.extras["pairs"]
    first = 0
    ends, distance = found.coordinates()
    for graph in graphs.flatten().tolist():
        one = tables.batch(torch.tensor([[graph]])).neighbors.extras["pairs"]
        own, steps = one.coordinates()
        here = (ends[0] >= first) & (ends[0] < first + one.num_nodes)
        assert torch.equal(ends[:, here] - first, own)
        assert torch.equal(distance[here], steps)
        first += one.num_nodes
    assert first == found.num_nodes


@needs_triton
@pytest.mark.parametrize("directed", [False, True])
def test_with_room_to_spare_the_pairs_are_the_same(directed):
    """Spare nodes have none, and spare entries are in no list."""
    tables = tables_with_pairs(little_store(directed=directed), "default")
    graphs = torch.tensor([[3, 5, 0], [3, 7, 1]])
    need = tables.capacity(graphs.numpy())
    want = tables.batch(graphs).neighbors.extras["pairs"]
    assert need.pairs == len(want.nodes) > 0
    room = Capacity(need.nodes + 5, need.listed + 3, need.pairs + 9)
    got = tables.batch(graphs, capacity=room).neighbors.extras["pairs"]
    assert got.num_nodes == room.nodes
    for mine, other in ((got.ptr, want.ptr), (got.transposed[0], want.transposed[0])):
        assert torch.equal(mine[: len(other)], other)
        assert mine[len(other) :].eq(need.pairs).all()
    for mine, other in ((got.nodes, want.nodes), (got.transposed[1], want.transposed[1])):
        assert torch.equal(mine[: need.pairs], other)


def test_more_pairs_than_allowed_are_refused_in_words(monkeypatch):
    """With the largest distance that is allowed."""
    path = [(i, i + 1) for i in range(9)]
    store = pack([Graph(10, path + [(b, a) for a, b in path], label=g) for g in range(2)], "paths")
    tables = tables_of(store)
    monkeypatch.setattr(extra, "all_pair_lists", partial(all_pair_lists, most_pairs=70))
    monkeypatch.setattr(extra, "all_pairs_of", partial(all_pairs_of, most_pairs=70))
    needed = extras_for(ModelConfig(pool="sopool-pairs"))
    for cached in (False, True):
        with pytest.raises(SettingError, match=r"more than 70 pairs of nodes up to distance 6: use .* distances=2"):
            tables.with_extras(store, needed, cached)


def test_graphs_without_pairs_are_refused():
    bank = bank_of(tables_of(little_store()), [run_config(model={"pool": "sopool-pairs"})])
    with pytest.raises(ValueError, match="needs the pairs of nodes up to distance 6, but the graphs have no pairs"):
        bank.run_epoch()


def trained(store, pool, options):
    """The accuracy on all graphs of networks of a single layer, trained on most of them."""
    model = {"pool": pool, "pool_options": options, "layers": 1, "hidden": 8}
    config = run_config(model=model, precision="float32", epochs=8, steps=20, dropout=0.0, folds=5)
    facts = TableFacts.of(config)
    bank = bank_of(tables_for(store, facts, "cpu"), [config])
    for _ in range(config.epochs):
        bank.run_epoch()
    (scores,) = bank.scores([np.arange(len(store))])
    return (scores.argmax(1) == store.labels.numpy()).mean()


@pytest.mark.parametrize(
    "make", [lambda: make_distant(80, distance=4), lambda: make_rings(80)], ids=["distant", "rings"]
)
def test_pairs_tell_apart_what_layers_do_not_see(make):
    store = make()
    assert trained(store, "sopool-pairs", {}) > 0.95
    for pool in ("sum", "sopool-bimap"):
        assert trained(store, pool, {}) < 0.6
