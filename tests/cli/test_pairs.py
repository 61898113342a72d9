"""Pairs of nodes in commands: compared, fitted, predicted with and explained."""

import json
from functools import partial

import pytest

from sopool.data import make_distant, save_graphs
from sopool.data.analysis.distance_cache import all_pairs_of
from sopool.data.extras import pairs as extra

TINY = ["--hidden", "4", "--epochs", "1"]


@pytest.fixture
def source(tmp_path):
    save_graphs(make_distant(24, distance=3), tmp_path / "distant.graphs")
    return "distant.graphs"


def test_they_are_compared_and_a_second_time_nothing_is_trained(call, source):
    options = "rank=2,distances=4,normalize=norm,layers=none,lr_scale=0.1,decay=0.01"
    command = ["evaluate", source, "--pool", "sum,sopool-pairs", "--pool-options", options, "--steps", "2"]
    command += ["--folds", "2", *TINY, "--protocol", "per-fold-max"]
    shown = call(*command)
    assert shown.code == 0, shown.err
    assert "Gain over sum" in shown.out
    assert "sopool-pairs rank=2, distances=4, normalize=norm, layers=None, lr_scale=0.1, decay=0.01" in " ".join(
        shown.out.split()
    )
    again = call(*command)
    assert "Nothing to train: all 4 runs are stored" in again.err + again.out


def test_they_are_fitted_and_explained(call, source, tmp_path):
    shown = call("fit", source, "--pool", "sopool-pairs", "--models", "1", "--folds", "0", *TINY, "-o", "m.sopool")
    assert shown.code == 0, shown.err
    assert call("predict", "m.sopool", source, "-o", "found.csv").code == 0
    assert len((tmp_path / "found.csv").read_text().splitlines()) == 25
    shown = call("explain", "m.sopool", source, "--graph", "0", "--format", "json", "-o", "-")
    told = json.loads(shown.out)["node_pairs"]
    assert [len(pairs) for pairs in told] == [12, 12]
    assert set(told[0][0]) == {"first", "second", "distance", "value"}


def test_blocks_cannot_be_pooled_by_pairs(call, source):
    shown = call("evaluate", source, "--pool", "sopool-pairs", "--blocks", "1", *TINY)
    assert shown.code == 2
    assert "sopool-pairs is a readout and returns no smaller graphs" in shown.err


def test_too_many_are_refused_with_the_distance_that_is_possible(call, source, monkeypatch):
    monkeypatch.setattr(extra, "all_pairs_of", partial(all_pairs_of, most_pairs=600))
    shown = call("evaluate", source, "--pool", "sopool-pairs", *TINY, "--folds", "2", "--workers", "1")
    assert shown.code == 2
    assert "more than 600 pairs of nodes up to distance 6: use the option distances=1" in " ".join(shown.err.split())
