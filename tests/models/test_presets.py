"""Names to models and to how they are trained."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from sopool.data import load, make_agreement, stratified_folds
from sopool.errors import DataError, SettingError, UserError
from sopool.experiments.evaluation import Evaluator, Request
from sopool.models import make_model, presets
from sopool.models.config import FIRST_BLOCK_DEFAULTS
from sopool.models.presets import (
    FROZEN,
    HIERARCHICAL,
    POOLS,
    PRESETS,
    SECOND_ORDER,
    model_config,
    options_of,
    sort_size,
    unused_messages,
)
from sopool.nn import GRAPH_READOUTS, POOLINGS, READOUTS, BilinearSecondOrderAggregation
from sopool.nn.registry import default_options
from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore
from tests.helpers.training_graphs import rich_store

PAPER_TABLES = {
    *("sum", "mean", "max", "sum-avg", "sopool", "sopool-bimap", "sopool-attn", "sopool-m-attn", "covpool"),
    *("attnpool", "sortpool", "topkpool", "sagpool", "diffpool", "eigenpool"),
}


@pytest.fixture(scope="module")
def mutag():
    return load("MUTAG")


def runs(store, tmp_path, **changes):
    return Evaluator(store, Request(**changes), RunStore(tmp_path)).first_runs()


def test_all_poolings_of_the_paper_have_names():
    assert set(POOLS) == PAPER_TABLES | set(FROZEN) | {"sopool-pairs"}
    assert set(POOLINGS) == {"sopool-m-attn", "diffpool", "topkpool", "sagpool", "eigenpool"}
    assert not set(READOUTS) & set(GRAPH_READOUTS)


def test_pairs_reach_as_far_as_there_is_room(mutag, monkeypatch):
    """By default; what the user sets stays."""
    assert model_config(mutag, "gin-0", "sopool-pairs").pool_options == {}
    monkeypatch.setattr(presets, "MOST_PAIRS", 20_000)  # there are 7,442 at distance 1, then 10,856 and 11,512
    with pytest.warns(UserWarning, match="more than 20,000 pairs of nodes up to distance 6, so .* uses distances=2"):
        found = model_config(mutag, "gin-0", "sopool-pairs", options={"rank": 4})
    assert found.pool_options == {"distances": 2, "rank": 4}
    for options in ({"distances": 5}, {"walks": True}):
        assert model_config(mutag, "gin-0", "sopool-pairs", options=options).pool_options == options


RICH = rich_store()
EDGES = {"edge_labels": 3, "edge_categories": [3, 3], "edge_attributes": 2}
WITHOUT = {"edge_labels": {"edge_labels": None, "edge_label_names": ()}}
WITHOUT |= {"edge_categories": {"edge_categories": None, "edge_category_columns": ()}}
WITHOUT |= {"edge_attributes": {"edge_attributes": None}}


@pytest.mark.parametrize("pool", ["sum", "topkpool"])
def test_weights_and_attributes_of_graphs_are_used_by_every_network(pool):
    for blocks in (0, 1) if pool == "topkpool" else (0,):
        config = model_config(RICH, "gcn", pool, blocks=blocks)
        assert (config.edge_weights, config.graph_attributes, config.edge_labels) == (True, 2, 0)
        assert unused_messages(RICH, "gcn") == [
            "gcn does not use edge categories and edge attributes: use gine, or remove them."
        ]
        plain = replace(RICH, edge_weights=None, graph_attributes=None, graph_attribute_names=())
        config = model_config(plain, "gcn", pool, blocks=blocks)
        assert (config.edge_weights, config.graph_attributes) == (False, 0)
    assert unused_messages(load("MUTAG"), "gcn") == unused_messages(RICH, "gine") == []


@pytest.mark.parametrize("kept", EDGES)
def test_gine_takes_whatever_edges_have(kept):
    used = {name: getattr(model_config(RICH, "gine", "sum"), name) for name in EDGES}
    assert used == EDGES
    gone = [change for name, change in WITHOUT.items() if name != kept]
    store = replace(RICH, **(gone[0] | gone[1]))
    used = {name: getattr(model_config(store, "gine", "sum"), name) for name in EDGES}
    assert used == {"edge_labels": 0, "edge_categories": [], "edge_attributes": 0} | {kept: EDGES[kept]}
    with pytest.raises(DataError, match="have no labels, which the GNN gine needs"):
        model_config(replace(store, **WITHOUT[kept]), "gine", "sum")


@pytest.mark.parametrize("pool", POOLS)
def test_every_name_makes_a_model(mutag, pool):
    config = model_config(mutag, "gin-0", pool)
    assert make_model(config, 7, 2).config is config


@pytest.mark.parametrize(("name", "blocks"), [*((name, 0) for name in FROZEN), ("sopool-m-attn-random", 2)])
def test_random_controls_differ_in_being_frozen_only(mutag, name, blocks):
    """The paper's attentional pooling has a bias: its control has one, too."""
    for preset in ("default", "best", "paper"):
        control = model_config(mutag, "gin-0", name, preset, blocks)
        assert control == replace(model_config(mutag, "gin-0", FROZEN[name], preset, blocks), frozen=True)
        assert control.pool_name == name


@pytest.mark.parametrize("pool", [*SECOND_ORDER, *FROZEN])
def test_second_order_is_divided_by_the_size_where_nodes_tell_nothing(mutag, pool):
    """As Sum/Avg is the mean there; not in the paper's setting, not where nodes have labels, not against one's will."""
    plain = replace(mutag, node_labels=None, node_label_names=None)
    assert model_config(plain, "gin-0", pool).pool_options["normalize"] == "size"
    assert model_config(plain, "gin-0", pool, options={"normalize": None}).pool_options["normalize"] is None
    assert "normalize" not in model_config(plain, "gin-0", pool, "paper").pool_options
    assert "normalize" not in model_config(mutag, "gin-0", pool).pool_options
    assert model_config(plain, "gin-0", "sum-avg").pool == "mean"


def test_the_mapping_learns_slowly_and_parameters_are_averaged_by_default_but_not_in_the_paper(mutag, tmp_path):
    asked = {"pools": ["sopool-bimap", "sum"], "protocols": ["single-epoch"]}
    ours = {run.model.pool: run for run in runs(mutag, tmp_path, **asked)}
    assert ours["sopool-bimap"].model.pool_options == {"lr_scale": 0.1}
    assert ours["sum"].model.pool_options == {}
    assert {run.average for run in ours.values()} == {0.99}
    theirs = runs(mutag, tmp_path, **asked, preset="paper")
    assert all((run.model.pool_options, run.average) == ({}, 0.0) for run in theirs)
    fast = model_config(mutag, "gin-0", "sopool-bimap", options={"lr_scale": 1.0})
    assert fast.pool_options == {"lr_scale": 1.0}


def test_dropout_is_where_it_is_best_for_a_pooling(mutag):
    """Before the linear map, but on the scores of first-order pools; in the paper always there."""
    assert model_config(mutag, "gin-0", "sopool-bimap").dropout_on == "embedding"
    assert model_config(mutag, "gin-0", "sum-avg").dropout_on == "logits"
    assert model_config(mutag, "gin-0", "sopool-bimap", "paper").dropout_on == "logits"
    for pool, preset in (("sum", "default"), ("sopool-bimap", "paper")):  # never on predicted numbers
        assert model_config(mutag, "gin-0", pool, preset, task="regression").dropout_on == "embedding"


def test_sagpool_s_weight_decay_finds_no_slow_mapping(mutag):
    made = model_config(mutag, "gcn", "sopool-bimap", "sagpool")
    assert (made.pool_options, made.dropout_on) == ({}, "embedding")
    assert model_config(mutag, "gcn", "sum", "sagpool").dropout_on == "embedding"


def test_best_takes_the_root_of_a_smaller_matrix_and_trains_sums_alike(mutag, tmp_path):
    """So that ``--preset best --pool sopool-bimap,sum-avg`` compares poolings, not ways to train."""
    plain = replace(mutag, node_labels=None, node_label_names=None)
    options = model_config(mutag, "gin-0", "sopool-bimap", "best").pool_options
    assert options == {"rank": 16, "normalize": "matrix-sqrt", "lr_scale": 0.1}
    assert model_config(plain, "gin-0", "sopool-bimap", "best").pool_options == options | {
        "normalize": "size+matrix-sqrt"
    }
    asked = {"pools": ["sopool-bimap", "sum-avg"], "protocols": ["single-epoch"], "preset": "best"}
    assert {(run.average, run.dropout) for run in runs(mutag, tmp_path, **asked)} == {(0.99, 0.0)}


def test_only_the_pooling_to_nodes_has_a_random_control_in_hierarchies(mutag):
    with pytest.raises(SettingError, match="no hierarchical pooling 'sopool-bimap-random'"):
        model_config(mutag, "gin-0", "sopool-bimap-random", blocks=2)


@pytest.mark.parametrize("sizes", [[5], [30, 12, 50], list(range(100)), [20] * 7])
def test_sortpool_keeps_what_60_per_cent_do_not_exceed(sizes):
    """DGCNN: of the sorted sizes the one at ceil(0.6 n), at least 10."""
    k = sort_size(torch.tensor(sizes))
    assert k == max(10, sorted(sizes)[math.ceil(0.6 * len(sizes)) - 1])
    assert sum(size <= k for size in sizes) >= 0.6 * len(sizes)


def test_sortpool_s_k_is_that_of_the_training_graphs(mutag, tmp_path):
    found = runs(mutag, tmp_path, pools=["sortpool"], protocols=["single-epoch"])
    folds = stratified_folds(mutag.labels)
    for config in found:
        train = torch.from_numpy(folds[config.fold][0])
        assert config.model.pool_options == {"k": sort_size(mutag.sizes[train])}
        assert RunConfig.from_json(config.to_json()) == config
    assert {config.model.pool_options["k"] for config in found} <= {18, 19, 20}
    asked = runs(mutag, tmp_path, pools=["sortpool"], protocols=["single-epoch"], pool_options={"k": 12})
    assert {config.model.pool_options["k"] for config in asked} == {12}


def test_sagpool_s_own_training(mutag, tmp_path):
    recipe = PRESETS["sagpool"]
    request = {"pools": ["sagpool"], "protocols": ["single-epoch"], "preset": "sagpool", "blocks": 3}
    (config, *_) = runs(mutag, tmp_path, **request, gnn=recipe.gnn, settings=[recipe.setting], steps=recipe.steps)
    assert (config.lr, config.weight_decay, config.batch_size, config.patience) == (5e-4, 1e-4, 128, 50)
    assert (config.halve_every, config.steps, config.dropout) == (0, 2, 0.5)  # 169 graphs in batches of 128
    model = config.model
    assert (model.gnn, model.hidden, model.blocks, model.head) == ("gcn", 128, 3, "sum-readout")
    built = make_model(model, 7, 2)
    widths = [(head.weight.shape[1], head.weight.shape[0]) for head in built.heads]
    assert widths == [(256, 128), (128, 64), (64, 2)]


def test_the_paper_s_hierarchy(mutag, tmp_path):
    (config, *_) = runs(mutag, tmp_path, pools=["sopool-m-attn"], protocols=["single-epoch"], preset="paper", blocks=2)
    assert (config.lr, config.halve_every, config.weight_decay, config.patience) == (0.01, 50, 0.0, None)
    assert (config.model.head, config.model.dropout_on) == ("per-block", "logits")
    assert [head.weight.shape[0] for head in make_model(config.model, 7, 3).heads] == [3, 3]


def test_names_of_runs_stay_when_settings_are_added():
    """A store of runs made before there were blocks is still good."""
    from tests.helpers.runs import CONFIG

    assert CONFIG.key == "4955c9fdf7189e4b"
    assert RunConfig.from_json(CONFIG.to_json()) == CONFIG


def test_an_edited_readout_of_the_user_s_own_has_other_runs(mutag, tmp_path, monkeypatch):
    asked = {"pools": ["mine", "sum"], "protocols": ["single-epoch"], "folds": 2}
    keys = []
    for rank in (2, 3):
        monkeypatch.setitem(READOUTS, "mine", partial(BilinearSecondOrderAggregation, rank=rank))
        configs = runs(mutag, tmp_path, **asked)
        assert [RunConfig.from_json(config.to_json()) for config in configs] == configs
        assert len({config.place().key for config in configs[::2]}) == 1
        keys.append([config.key for config in configs])
    assert [same[2:] for same in keys] == [keys[0][2:]] * 2
    assert not set(keys[0][:2]) & set(keys[1][:2])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pools": ["sum"], "blocks": 2}, "no hierarchical pooling 'sum'"),
        ({"pools": ["topkpool"], "head": "per-block"}, "blocks"),
        ({"pools": ["topkpool"], "blocks": 4}, "blocks=4: a hierarchical model has 1 to 3 blocks"),
        ({"pools": ["diffpool"], "blocks": 2, "gnn": "graphsage"}, "maximum over neighbors"),
        ({"pools": ["topkpool"], "blocks": 1, "gnn": "gine"}, "smaller graphs of a hierarchy have none"),
        ({"pools": ["sum"], "gnn": "gine"}, "the edges of agreement have no labels"),
        ({"pools": ["sagpol"]}, "Did you mean 'sagpool'"),
        ({"pools": ["sopool-bimap"], "pool_options": {"rank": 0}}, "sopool-bimap cannot be made with rank=0"),
        ({"pools": ["sopool-bimap"], "pool_options": {"rank": "big"}}, "rank=big: rank must be a whole number"),
        ({"pools": ["sopool-bimap"], "pool_options": {"rank": 1.5}}, "rank=1.5: rank must be a whole number"),
        ({"pools": ["sopool-bimap"], "pool_options": {"rank": True}}, "rank=True: rank must be a whole number"),
        ({"pools": ["sopool-bimap"], "pool_options": {"triangle": "maybe"}}, "triangle must be true or false"),
        ({"pools": ["sopool-bimap"], "pool_options": {"moments": 3}}, r"moments=3: choose \(2,\)"),
        ({"pools": ["covpool"], "pool_options": {"rank": "all"}}, "rank must be a whole number or none"),
        ({"pools": ["topkpool"], "blocks": 1, "pool_options": {"ratio": "half"}}, "ratio must be a number"),
        (
            {"pools": ["sopool-attn-random", "sum-avg"], "pool_options": {"bias": True, "ratio": 1}},
            "option ratio=1. Their options: sopool-attn-random has bias, normalize; sum-avg has none",
        ),
        ({"pools": ["topkpool"], "blocks": 1, "block_readout": "concat"}, "cannot be concatenated"),
    ],
)
def test_what_cannot_be(tmp_path, changes, says):
    with pytest.raises(UserError, match=says):
        runs(make_agreement(20), tmp_path, **changes)


def test_options_reach_the_poolings_that_have_them(tmp_path):
    options = {"rank": 4, "normalize": "size"}
    pools = ["sopool-bimap", "sum-avg", "sopool-attn"]
    found = runs(make_agreement(20), tmp_path, pools=pools, protocols=["single-epoch"], pool_options=options, folds=2)
    given = {config.model.pool: config.model.pool_options for config in found}
    assert given["sopool-bimap"] == {"lr_scale": 0.1} | options
    assert given["sopool-attn"] == {"normalize": "size"}
    assert given["sum"] == {}


def test_every_pooling_has_the_options_of_its_class():
    for blocks, names in ((0, POOLS), (1, HIERARCHICAL)):
        assert all("channels" not in options_of(pool, blocks) for pool in names)
    assert options_of("covpool") == options_of("sopool-bimap")[:-1]
    assert options_of("sum-avg") == options_of("sum") == []
    assert options_of("eigenpool", 1) == ["vectors", "size"]


def test_a_maximum_over_neighbours_is_fine_where_edges_have_no_weights(tmp_path):
    store = make_agreement(20)
    for changes in ({"pools": ["diffpool"], "blocks": 1}, {"pools": ["topkpool"], "blocks": 3}):
        runs(store, tmp_path, gnn="graphsage", protocols=["single-epoch"], folds=2, **changes)


@pytest.mark.parametrize("pool", ["sopool-m-attn", "sopool-m-attn-random"])
@pytest.mark.parametrize("preset", ["paper", "sagpool"])
def test_presets_of_published_results_keep_the_first_defaults_of_blocks(preset, pool, mutag):
    """So that the keys of their stored runs, which leave out the first defaults, stay the same."""
    config = model_config(mutag, "gcn", pool, preset, blocks=2)
    assert config.effective_options == FIRST_BLOCK_DEFAULTS["sopool-m-attn"]
    assert not {"pool_options", "pool_defaults"} & {name for name, value in config.canonical().items() if value}
    given = model_config(mutag, "gcn", pool, preset, blocks=2, options={"normalize": "norm"})
    assert given.effective_options["normalize"] == "norm"


def test_blocks_have_the_defaults_of_the_registry(mutag):
    config = model_config(mutag, "gcn", "sopool-m-attn", blocks=2)
    assert config.effective_options == default_options("sopool-m-attn", blocks=True)
