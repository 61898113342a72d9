"""The law of the bank: M models side by side give what M runs by themselves give."""

import itertools
import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.optim.swa_utils import AveragedModel

from sopool.nn import READOUTS, SegmentAggregation
from sopool.nn.gnn import VARIANTS
from sopool.ops import segment_sum
from sopool.ops.segment.size_classes import may_pad
from sopool.training.bank.bank import Bank, new_model
from sopool.training.bank.sampling import draw_batches
from sopool.training.run_splits import run_seed
from tests.helpers.reference import Reference
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

GRID = list(itertools.product(VARIANTS, READOUTS))
# Every GNN and every readout at least once; all pairs in make test-all.
SAMPLE = [(gnn, list(READOUTS)[i % len(READOUTS)]) for i, gnn in enumerate([*VARIANTS, "gin-0", "gin-0", "gcn"])]
PAIRS = GRID if os.environ.get("SOPOOL_TEST_ALL") else SAMPLE
FIRST_ORDER = ("sum", "mean", "max")


def ties(gnn, pool):
    """Whether nodes that agree up to rounding are sorted or heard one way or the other, and the gradient with them."""
    return pool == "sortpool" or VARIANTS[gnn].how == "max"


WITHOUT_TIES = [pair for pair in PAIRS if not ties(*pair)]


def members(gnn, pool, precision="float64", shape=(), **changes):
    """Four runs that differ in everything that runs of a bank may differ in."""
    model = (
        edge_label_options(gnn) | {"pool": pool, "join": "per-layer" if pool in FIRST_ORDER else "concat"} | dict(shape)
    )
    different = [
        {"fold": 0, "seed": 0, "lr": 0.01, "dropout": 0.5},
        {"fold": 1, "seed": 0, "lr": 0.003, "dropout": 0.0},
        {"fold": 2, "seed": 1, "lr": 0.01, "dropout": 0.2},
        {"fold": 0, "seed": 2, "lr": 0.02, "dropout": 0.5},
    ]
    return [run_config(model=model, precision=precision, **(changes | one)) for one in different]


def train(bank, epochs):
    """Losses after each epoch, and at the end parameters, running statistics and scores of all graphs."""
    losses = [bank.run_epoch() for _ in range(epochs)]
    scores = bank.scores([np.arange(len(bank.tables))] * len(bank.configs))
    return np.array(losses), bank.values.numpy(), bank.statistics.numpy(), np.stack(scores)


def test_no_graph_sees_the_rest_of_its_batch():
    """Not even in the last bits: graphs are not padded to the largest of a batch, which other models share."""
    bank = bank_of(tables_of(little_store()), [run_config(model={"pool": "sopool"})])
    found = []
    bank.model.readouts[0].register_forward_hook(lambda *_: found.append(may_pad()))
    train(bank, 1)
    assert found
    assert not any(found)


@pytest.mark.parametrize(("gnn", "pool"), WITHOUT_TIES)
@pytest.mark.parametrize("epochs", [pytest.param(20, marks=pytest.mark.slow), 6])
def test_a_bank_gives_what_separate_runs_give(gnn, pool, epochs):
    """30 steps in double precision (slow: 100).

    In single precision the rounding of a gradient that is nearly zero, which Adam divides by its own size, would make
    parameters differ; there the first losses are compared, below.
    """
    check_the_law(members(gnn, pool), epochs)


@pytest.mark.parametrize(("gnn", "pool"), PAIRS)
@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-9), ("float32", 1e-4)])
def test_so_does_its_first_step(gnn, pool, precision, close):
    tables = tables_of(little_store())
    configs = members(gnn, pool, precision, steps=1)
    together = bank_of(tables, configs).run_epoch()
    alone = [bank_of(tables, [config]).run_epoch()[0] for config in configs]
    np.testing.assert_allclose(together, alone, rtol=close)


@pytest.mark.parametrize("pool", ["sum", "sopool-bimap"])
def test_so_do_models_with_more_between_embedding_and_scores(pool):
    check_the_law(members("gin-0", pool, shape={"pooled_norm": True, "head_hidden": 4}), 6)


def test_so_do_models_with_a_slow_mapping_and_running_means():
    shape = {"pool_options": {"lr_scale": 0.1, "normalize": "size+matrix-sqrt"}}
    check_the_law(members("gin-0", "sopool-bimap", shape=shape, average=0.9), 6)


class Scaled(SegmentAggregation):
    """Of a user's own, with a single number to learn."""

    def __init__(self, channels):
        super().__init__(channels)
        self.factor = torch.nn.Parameter(torch.tensor(2.0))

    def pool(self, x, ptr):
        total = segment_sum(x, ptr)
        return (total.view(self.factor.numel(), -1) * self.factor.view(-1, 1)).view_as(total)


def test_so_do_readouts_with_a_single_number_to_learn(monkeypatch):
    monkeypatch.setitem(READOUTS, "scaled", Scaled)
    check_the_law(members("gin-0", "scaled"), 3)


class Columns(Scaled):
    """With a list of columns, which is no number to learn, and a parameter that it makes no use of."""

    def __init__(self, channels):
        super().__init__(channels)
        self.register_buffer("columns", torch.arange(channels).flip(0))
        self.unused = torch.nn.Parameter(torch.ones(2))

    def pool(self, x, ptr):
        return super().pool(x[:, self.columns.view(-1, x.shape[1])[0]], ptr)


def test_so_do_readouts_with_buffers_of_whole_numbers(monkeypatch):
    monkeypatch.setitem(READOUTS, "columns", Columns)
    check_the_law(members("gin-0", "columns", average=0.9), 3)


@pytest.mark.parametrize("goal", GOALS)
def test_so_do_all_objectives_and_weighted_graphs(goal):
    """Each run of a regression standardizes its targets by its own training graphs."""
    tables = tables_of(goal_store(goal), **GOALS[goal])
    weights = torch.rand(len(tables), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    check_the_law(members("gin-0", "sopool-bimap", **GOALS[goal]), 3, replace(tables, weights=weights))


@pytest.mark.parametrize(
    ("gnn", "pool", "blocks"), [("gine", "sopool-bimap", 0), ("gcn", "sum", 0), ("gin-0", "diffpool", 1)]
)
def test_so_do_models_that_use_everything(gnn, pool, blocks):
    store = rich_store()
    shape = rich_model(store, gnn, pool, blocks=blocks)
    configs = members(gnn, pool, shape=shape, looks="validation")
    check_the_law(configs, 3, rich_tables(store, configs[0].model, unknown=True))


def check_the_law(configs, epochs, tables=None):
    tables = tables or tables_of(little_store())
    together = train(bank_of(tables, configs), epochs)
    for m, config in enumerate(configs):
        alone = train(bank_of(tables, [config]), epochs)
        for mine, all_of_them in zip(alone, together, strict=True):
            axis = 1 if all_of_them.shape[0] == epochs and all_of_them.ndim == 2 else 0
            np.testing.assert_allclose(mine.take(0, axis), all_of_them.take(m, axis), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("gnn", "pool"), PAIRS)
def test_a_run_is_the_plain_loop(gnn, pool):
    """Against the reference, which shares no layer, readout or optimiser with the package.

    Nodes in like places (both of a graph of two) tie up to rounding, and the gradient of a maximum goes to one or the
    other: then only the first loss is compared.
    """
    tied = pool == "max" or ties(gnn, pool)
    store = little_store(directed=gnn == "mean-mlp")
    tables = tables_of(store)
    on = "logits" if gnn in ("gin-0", "gcn") else "embedding"
    join = "per-layer" if pool in FIRST_ORDER else "concat"
    model = edge_label_options(gnn) | {"pool": pool, "dropout_on": on, "join": join}
    config = run_config(model=model, steps=1 if tied else 5)
    bank = bank_of(tables, [config])
    seed = run_seed(config)
    model = new_model(config, tables.features.width, tables.goal[0].width)
    plain = Reference(store, tables.features, model, config, bank.splits[0].train, seed)
    for epoch in range(1 if tied else 3):
        assert bank.run_epoch()[0] == pytest.approx(plain.run_epoch(epoch), rel=1e-9)
    if tied:
        return
    values = torch.cat([p.detach().flatten() for p in plain.model.parameters()])
    torch.testing.assert_close(bank.values[0], values, rtol=1e-8, atol=1e-9)
    statistics = torch.cat(
        [torch.cat([norm.running_mean, norm.running_var]) for norms in plain.norms for norm in norms]
    )
    known = torch.ones(config.model.edge_labels).double()
    torch.testing.assert_close(bank.statistics[0], torch.cat([known, statistics]), rtol=1e-9, atol=1e-9)


def test_weight_decay_is_torch_s():
    store = little_store()
    tables = tables_of(store)
    config = run_config(weight_decay=0.1)
    bank = bank_of(tables, [config])
    model = new_model(config, tables.features.width, tables.goal[0].width)
    plain = Reference(store, tables.features, model, config, bank.splits[0].train, run_seed(config))
    for epoch in range(3):
        assert bank.run_epoch()[0] == pytest.approx(plain.run_epoch(epoch), rel=1e-9)
    values = torch.cat([p.detach().flatten() for p in plain.model.parameters()])
    torch.testing.assert_close(bank.values[0], values, rtol=1e-8, atol=1e-9)


def test_models_are_scored_with_the_running_mean_of_their_parameters():
    """Training is not touched, and the means are those that torch keeps."""
    tables = tables_of(little_store())
    stays = 0.8
    number = 0
    plain, bank = (bank_of(tables, [run_config(average=given, seed=seed) for seed in (0, 1)]) for given in (0.0, stays))
    means = AveragedModel(plain.model, avg_fn=lambda mean, new, _: mean.lerp(new, fresh), use_buffers=True)
    means.update_parameters(plain.model)
    step = plain._step

    def watched(*given):
        nonlocal number, fresh
        losses = step(*given)
        number += 1
        fresh = max(1 - stays, 10 / (number + 9))
        means.update_parameters(plain.model)
        return losses

    fresh = 1.0
    plain._step = watched
    for _ in range(3):
        np.testing.assert_array_equal(bank.run_epoch(), plain.run_epoch())
    assert torch.equal(bank.values, plain.values)
    values, statistics = bank.shown
    for mean, tensors in ((values, means.module.parameters()), (statistics, means.module.buffers())):
        torch.testing.assert_close(mean, torch.cat([tensor.detach().flatten(1) for tensor in tensors], 1))
    graphs = [split.train for split in bank.splits]
    shown = bank.scores(graphs)
    live = plain.scores(graphs)
    assert torch.equal(bank.values, plain.values)
    plain.values.copy_(values)
    plain.statistics.copy_(statistics)
    for mine, want, without in zip(shown, plain.scores(graphs), live, strict=True):
        np.testing.assert_allclose(mine, want)
        assert np.abs(mine - without).max() > 1e-3


def test_class_weights_are_torch_s():
    store = little_store()
    tables = tables_of(store)
    weights = (0.5, 3.0)
    plain, weighted = (run_config(steps=1, dropout=0.0, class_weights=given) for given in (None, weights))
    bank = bank_of(tables, [weighted])
    model = new_model(weighted, tables.features.width, tables.goal[0].width).double()
    graphs = torch.from_numpy(draw_batches(bank.seeds, 0, [bank.splits[0].train], 1, bank.batch_size).graphs[0])
    batch = tables.batch(graphs, bank.inputs)
    scores = model(batch.x.double(), batch.neighbors, batch.ptr)
    loss = torch.nn.CrossEntropyLoss(torch.tensor(weights).double(), reduction="none")
    expected = loss(scores, tables.truth[graphs[0]]).mean().item()
    assert bank.run_epoch()[0] == pytest.approx(expected, rel=1e-9)
    assert bank_of(tables, [plain]).run_epoch()[0] != pytest.approx(expected, rel=1e-3)


def test_equal_class_weights_change_no_bit():
    tables = tables_of(little_store())
    plain, ones = (train(bank_of(tables, [run_config(class_weights=given)]), 3) for given in (None, (1.0, 1.0)))
    for mine, other in zip(plain, ones, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_class_weights_are_part_of_a_run_only_where_there_are_some():
    plain = run_config()
    weighted = run_config(class_weights=(1.0, 2.0))
    assert "class_weights" not in plain.canonical()
    assert plain.key != weighted.key
    for config in (plain, weighted):
        assert type(config).from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize("pool", [pool for pool in READOUTS if not ties("gin-0", pool)])
def test_others_in_the_bank_change_nothing(pool):
    tables = tables_of(little_store(graphs=60, seed=1))
    configs = members("gin-0", pool, batch_size=12)
    small = train(bank_of(tables, configs[:2]), 3)
    large = train(bank_of(tables, configs[::-1]), 3)
    np.testing.assert_allclose(small[0], large[0][:, ::-1][:, :2], rtol=1e-9, atol=1e-9)
    for before, after in zip(small[1:], large[1:], strict=True):
        np.testing.assert_allclose(before, after[::-1][:2], rtol=1e-9, atol=1e-9)


def test_a_model_that_leaves_changes_nothing():
    tables = tables_of(little_store())
    configs = members("gin-eps", "sopool-attn", average=0.9)
    whole = bank_of(tables, configs)
    left = bank_of(tables, configs)
    train(whole, 2)
    train(left, 2)
    rest = left.keep([1, 3])
    ours = train(rest, 2)
    theirs = train(whole, 2)
    np.testing.assert_allclose(ours[1], theirs[1][[1, 3]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("looks", ["test", "validation"])
def test_only_edge_labels_seen_in_training_count_where_graphs_are_held_out(looks):
    """And they stay known when a model is taken up again."""
    store = little_store(graphs=40)
    tables = tables_of(store)
    rare = int(tables.edge_labels_used(torch.arange(40)).nonzero()[-1])
    config = run_config(model=edge_label_options("gine"), looks=looks)
    bank = bank_of(tables, [config])
    kept = [g for g in bank.splits[0].train if not tables.edge_labels_used(torch.tensor([g]))[rare]][:6]
    bank = Bank(tables, [config], [bank.splits[0]._replace(train=np.array(kept))])
    seen = torch.stack([tables.edge_labels_used(torch.tensor([g])) for g in kept]).any(0)
    assert not seen[rare]
    expected = seen.double() if looks == "validation" else torch.ones(len(seen)).double()
    bank.run_epoch()
    for one in (bank, bank.keep([0])):
        assert torch.equal(one.model.gnn.known[0], expected)


def test_only_values_seen_in_training_count_where_graphs_are_held_out():
    store = little_store(graphs=40)
    tables = tables_of(store, unknown=True)
    config = run_config(looks="validation", folds=4)
    bank = bank_of(tables, [config])
    seen = tables.columns_used(torch.from_numpy(bank.splits[0].train))
    unknown = int(tables.features.fallback[0])
    expected = torch.where(seen, torch.arange(len(seen)), tables.features.fallback)
    assert torch.equal(bank.inputs.substitutes[0], expected)
    rare = bank.inputs.substitutes.clone()
    rare[0, 0] = unknown
    changed = tables.batch(torch.tensor([[0, 1]]), bank.inputs._replace(substitutes=rare)).x
    plain = tables.batch(torch.tensor([[0, 1]]), bank.inputs).x
    assert torch.equal(changed[:, unknown], plain[:, 0] + plain[:, unknown])
    assert changed[:, 0].eq(0).all()


def changed_in(values, rows):
    """The numbers with others in some rows."""
    return torch.where(rows.unsqueeze(1), values * 1e4 + 7, values)


@pytest.mark.parametrize("looks", ["test", "validation", "chosen"])
def test_standardization_never_sees_a_test_graph(looks):
    """Nor a held-out one: whatever numbers they have, the trained models are the same, bit for bit."""
    store = rich_store()
    config = run_config(looks=looks, precision="float32", model=rich_model(store))
    bank = bank_of(rich_tables(store, config.model, unknown=True), [config])
    split = bank.splits[0]
    strange = ~torch.isin(torch.arange(len(store)), torch.from_numpy(split.train))
    changed = {
        "node_attributes": changed_in(store.node_attributes, strange.repeat_interleave(store.sizes)),
        "edge_attributes": changed_in(store.edge_attributes, strange.repeat_interleave(store.edge_ptr.diff())),
        "graph_attributes": changed_in(store.graph_attributes, strange),
    }
    others = bank_of(rich_tables(replace(store, **changed), config.model, unknown=True), [config])
    every = [split.train]
    for _ in range(2):
        assert np.array_equal(bank.run_epoch(), others.run_epoch())
        assert torch.equal(bank.values, others.values)
        assert torch.equal(bank.statistics, others.statistics)
        assert np.array_equal(bank.scores(every), others.scores(every))
    assert not np.array_equal(bank.scores([split.test]), others.scores([split.test]))


def test_each_model_has_the_moments_of_its_own_training_graphs():
    store = little_store()
    attributes = store.node_attributes.clone()
    attributes[:, 1] = (attributes[:, 1] > 0).float()
    store = replace(store, node_attributes=torch.cat([attributes, torch.full_like(attributes[:, :1], 7)], 1))
    bank = bank_of(tables_of(store), [run_config(fold=fold) for fold in range(3)])
    graphs = torch.arange(len(store)).repeat_interleave(store.sizes)
    shift, scale = bank.inputs.nodes
    for row, split in enumerate(bank.splits):
        values = store.node_attributes[torch.isin(graphs, torch.from_numpy(split.train))].double()
        expected = [values[:, 0].mean(), 0, 7], [values[:, 0].std(correction=0), 1, 1]
        torch.testing.assert_close(shift[row], torch.tensor(expected[0]).double())
        torch.testing.assert_close(scale[row], torch.tensor(expected[1]).double())
        x = bank.tables.batch(torch.from_numpy(split.train).unsqueeze(0), bank.inputs.rows([row])).x.double()
        own = x[:, bank.tables.features.number_columns]
        torch.testing.assert_close(own[:, 0].mean(), torch.tensor(0.0).double(), atol=1e-6, rtol=0)
        assert not own[:, 2].any()
    assert len(set(shift[:, 0].tolist())) == 3
    for one in (bank.keep([2]), bank_of(bank.tables, bank.configs[2:])):
        assert torch.equal(one.inputs.nodes.shift, shift[2:])


def test_batch_is_no_larger_than_the_training_fold():
    bank = bank_of(tables_of(little_store()), [run_config(batch_size=500)])
    assert bank.batch_size == len(bank.splits[0].train)
    assert np.isfinite(bank.run_epoch()).all()


def test_models_differ_by_their_seeds_only():
    tables = tables_of(little_store())
    state = torch.get_rng_state()
    a, b = (bank_of(tables, [run_config(seed=seed)]).values for seed in (0, 1))
    again = bank_of(tables, [run_config(seed=0)]).values
    assert torch.equal(a, again)
    assert not torch.equal(a, b)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("goal", [goal for goal in GOALS if "class" not in goal])
@pytest.mark.parametrize("looks", ["test", "validation"])
def test_only_the_true_values_of_training_graphs_are_used(goal, looks):
    """Losses, parameters and outputs stay as they are to the last bit if all other true values change."""
    store = goal_store(goal)
    found = []
    for changed in (False, True):
        config = run_config(looks=looks, **GOALS[goal])
        split = bank_of(tables_of(store, **GOALS[goal]), [config]).splits[0]
        targets = store.targets.clone()
        others = np.setdiff1d(np.arange(len(store)), split.train)
        targets[others] = 1 - targets[others] if "labels" in goal else -1e6 * targets[others].flip(0)
        other = replace(store, targets=targets) if changed else store
        found.append(train(bank_of(tables_of(other, **GOALS[goal]), [config]), 3))
    for one, same in zip(*found, strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("goal", [goal for goal in GOALS if "number" in goal])
def test_a_run_does_not_depend_on_the_unit_of_a_target(goal):
    """Losses are equal, and outputs are converted like the targets."""
    store = goal_store(goal)
    factor = torch.tensor([1e3, 0.5, 2.0]).double()[: store.targets.shape[1]]
    other = replace(store, targets=store.targets * factor + 7)
    losses, outputs = zip(
        *(
            (one[0], one[-1])
            for one in (
                train(bank_of(tables_of(some, **GOALS[goal]), [run_config(**GOALS[goal])]), 3)
                for some in (store, other)
            )
        ),
        strict=True,
    )
    np.testing.assert_allclose(*losses, rtol=1e-6)
    np.testing.assert_allclose(outputs[1], outputs[0] * factor.numpy() + 7, rtol=1e-6)
