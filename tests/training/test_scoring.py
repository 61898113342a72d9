"""Scoring some graphs at a time."""

import numpy as np
import pytest

from sopool.training.bank import scoring
from tests.helpers.training_graphs import bank_of, little_store, run_config, tables_of

TABLES = tables_of(little_store(graphs=30))
CONFIGS = [run_config(fold=fold) for fold in range(2)]


@pytest.mark.parametrize("nodes", [1, 20, 10_000])
def test_how_many_at_a_time_changes_nothing(monkeypatch, nodes):
    graphs = [np.arange(30), np.array([7, 3, 3])]
    expected = bank_of(TABLES, CONFIGS).scores(graphs)
    monkeypatch.setattr(scoring, "nodes_together", lambda *_: nodes)
    for found, known in zip(bank_of(TABLES, CONFIGS).scores(graphs), expected, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-12)


@pytest.mark.parametrize(("models", "width"), [(1, 132), (30, 132), (30, 496), (256, 10**9)])
def test_on_a_gpu_vectors_of_all_models_take_half_a_gigabyte(models, width):
    nodes = scoring.nodes_together("cuda", models, width)
    assert nodes >= 1
    assert models * width * nodes * 4 <= 1 << 29 or nodes == 1
    assert models * width * (nodes + 1) * 4 > 1 << 29


def test_a_node_is_as_wide_as_all_layers_side_by_side():
    bank = bank_of(TABLES, CONFIGS)
    hidden = bank.configs[0].model.hidden
    layers = bank.configs[0].model.layers
    assert bank.width == bank.tables.features.width + layers * hidden
