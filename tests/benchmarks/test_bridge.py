"""The bridge from linear models to networks: both see the same features and the same held-out graphs."""

import json
from argparse import Namespace
from dataclasses import replace

import numpy as np
import torch

from benchmarks import bridge
from sopool.experiments.executors.local import TableFacts, tables_for
from sopool.ops.segment.segments import Segments
from sopool.training.run_splits import Splitter
from tests.helpers.training_graphs import little_store

STORE = bridge.with_degrees(little_store(graphs=60))


def arguments(folder, **changes):
    shared = {"epochs": 2, "device": "cpu", "scratch": folder, "figures": folder / "found.jsonl"}
    return Namespace(**(shared | {"data": ["little"], "fold_seeds": [3], "steps": ["svm"], "root": None} | changes))


def test_labels_have_degrees():
    plain = little_store(graphs=60)
    names = np.array(STORE.node_label_names)[STORE.node_labels.long().numpy()]
    for graph in range(len(plain)):
        first, last = plain.node_ptr[graph : graph + 2].tolist()
        degrees = torch.bincount(plain[graph].edge_index[0].long(), minlength=last - first).tolist()
        labels = plain.node_labels[first:last].tolist()
        assert names[first:last].tolist() == [f"{a} with {b}" for a, b in zip(labels, degrees, strict=True)]


def test_machines_and_networks_see_the_same_pairs(tmp_path):
    """The counts of the machine are what the readout of the step 'head' gives, with columns in another order."""
    step = bridge.STEPS["head"]
    (config, *_) = bridge.configs_of(STORE, step, 3, arguments(tmp_path))
    tables = tables_for(STORE, TableFacts.of(config), "cpu")
    batch = tables.batch(torch.arange(len(STORE)).unsqueeze(0)).to(torch.float64)
    readout = bridge.Bank(tables, [config], [Splitter.of_store(STORE, config)(config)]).model.readouts[0]
    assert readout.normalize == "norm"
    assert (readout.rank, readout.decay) == (None, 1.0)
    matrices = readout.matrices(batch.x, batch.neighbors.extras["pairs"], Segments(batch.ptr))
    columns = torch.zeros(len(STORE.node_label_names), dtype=torch.long)
    columns[STORE.node_labels.long()] = batch.x.argmax(1)
    assert batch.x.sum() == STORE.num_nodes
    known = matrices[:, :, columns][:, :, :, columns].flatten(1)
    np.testing.assert_array_equal(bridge.pair_counts(STORE).toarray(), known.numpy())
    np.testing.assert_array_equal(bridge.label_counts(STORE).sum(1), STORE.sizes.numpy())
    assert bridge.distance_counts(STORE).sum() == matrices[:, 1:].sum()


def test_the_parts_differ_in_one_thing_at_a_time(tmp_path):
    def model_of(name):
        return bridge.configs_of(STORE, bridge.STEPS[name], 3, arguments(tmp_path))[0].model

    for name, changed in (
        ("learned", {"frozen": True}),
        ("layer", {"pool_options": model_of("layer").pool_options | {"layers": 1}}),
    ):
        other = {"learned": "random", "layer": "learned"}[name]
        assert replace(model_of(name), **changed) == model_of(other)
    assert replace(model_of("four"), layers=1) == model_of("layer")


def test_results_are_appended_once_and_no_test_fold_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(bridge, "load", lambda *_: little_store(graphs=60))
    monkeypatch.setattr(bridge, "BATCHES", 2)
    args = arguments(tmp_path, steps=["svm", "random"])
    monkeypatch.setitem(bridge.STEPS, "random", replace(bridge.STEPS["random"], settings=(0.0, 1.0)))
    lines = list(bridge.plan(args))
    assert lines[0] == "little, svm: 5 results of 10 support vector machines"
    assert lines[1].startswith("little, random: 2 results of 10 networks, ")
    first = []
    for one in bridge.compute(args):
        first.append(one)
        args.figures.write_text("".join(json.dumps(one) + "\n" for one in first))
    assert len(first) == 7
    assert all(len(one["folds"]) == 10 for one in first)
    assert list(bridge.compute(args)) == []
    looks = {config.looks for config in bridge.configs_of(STORE, bridge.STEPS["random"], 3, args)}
    assert looks == {"validation"}
    table = bridge.grid(bridge.figures(args.figures), "little")
    assert [row[0].text for row in table.rows] == ["SVM on pair counts", "a random W"]
    assert table.rows[1][4].text == "-"  # the step before is missing


def test_settings_are_chosen_by_the_other_folds():
    """Fold 0 alone likes the second setting, so it has the first, which is the best for the others."""
    found = [{"folds": [0.0, 0.9, 0.9]}, {"folds": [1.0, 0.5, 0.5]}]
    assert bridge.chosen_folds(found).tolist() == [0.0, 0.5, 0.5]
