"""Evaluations on graphs that carry everything, in this process and as workers get them."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch.utils._pytree import tree_leaves

from sopool.data import AttributeEncoder, DegreeEncoder, NodeLabelEncoder, RandomWalkEncoder
from sopool.data.formats.worker_file import graphs_file
from sopool.experiments import Evaluator, Request
from sopool.experiments.executors.local import TableFacts, encoder_for, tables_for
from sopool.models.config import Setting
from sopool.models.presets import UnusedWarning
from sopool.training.runs.store import RunStore
from tests.helpers.training_graphs import little_store, rich_store

STORE = rich_store(graphs=40)
SMALL = {"epochs": 2, "steps": 2, "folds": 2, "settings": [Setting(4, 8, 0.01, 0.0)]}
PROTOCOLS = ("fair", "single-epoch")


def evaluator(folder, gnn="gine", store=STORE, **changes):
    return Evaluator(store, Request(["sum"], PROTOCOLS, gnn=gnn, **(SMALL | changes)), RunStore(folder))


@pytest.mark.parametrize("gnn", ["gine", "gcn"])
def test_everything_is_evaluated(gnn, tmp_path):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        first = evaluator(tmp_path, gnn)
        (found,) = first.evaluate()
    said = [str(one.message) for one in seen if one.category is UnusedWarning]
    assert said == (
        [] if gnn == "gine" else ["gcn does not use edge categories and edge attributes: use gine, or remove them."]
    )
    assert set(found.outcomes) == set(PROTOCOLS)
    config = first.first_runs()[0].model
    assert config.edge_weights
    assert (config.edge_attributes, config.graph_attributes) == (2 if gnn == "gine" else 0, 2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.safetensors")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedWarning)
        (again,) = evaluator(tmp_path, gnn).evaluate()
    assert again.outcomes == found.outcomes
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.safetensors")}


def test_workers_get_the_same_tables(tmp_path):
    facts = TableFacts.of(evaluator(tmp_path).first_runs()[0])
    expected = tables_for(STORE, facts, "cpu")
    with graphs_file(STORE) as file:
        found = tables_for(file.load(), facts, "cpu")
    some = tables_for(STORE, facts, "cpu", only=[3, 4])
    everything = torch.arange(len(STORE)).unsqueeze(0)
    inputs = expected.inputs_of([everything[0]], unknown=False)
    pairs = [(found.batch(everything, inputs), expected.batch(everything, inputs))]
    pairs.append((some.batch(torch.tensor([[0, 1]]), inputs), expected.batch(torch.tensor([[3, 4]]), inputs)))
    for mine, other in pairs:
        assert torch.equal(mine.x, other.x)
        assert torch.equal(mine.graph_x, other.graph_x)
        for one, same in zip(tree_leaves(mine.neighbors.values), tree_leaves(other.neighbors.values), strict=True):
            assert torch.equal(one, same)
        codes, same_codes = (each.neighbors.labels.combinations[each.neighbors.labels.codes] for each in (mine, other))
        own = mine.neighbors.labels.codes >= 0
        assert torch.equal(codes[own], same_codes[own])


def test_runs_with_numbers_have_new_keys_and_others_keep_theirs(tmp_path):
    labelled = replace(little_store(), node_attributes=None)
    numbered = little_store()
    for store, standardized in ((labelled, False), (numbered, True)):
        for run in evaluator(tmp_path, "gin-0", store).first_runs():
            named = repr(encoder_for(store, run.looks))
            assert (run.encoder == named) is not standardized
            assert run.encoder.startswith(named)
    plain = (NodeLabelEncoder(), DegreeEncoder(), AttributeEncoder(standardize=False))
    assert [encoder.fit(numbered).recipe == repr(encoder) for encoder in plain] == [True] * 3
    assert RandomWalkEncoder(2).recipe != repr(RandomWalkEncoder(2))
