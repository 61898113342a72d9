"""The comparison of costs runs on the graphs that come with the package; its figures are not looked at."""

import json

import pytest
import torch

from benchmarks import pairs_cost
from sopool.data import load
from tests.helpers.training_graphs import little_store


@pytest.mark.parametrize("graphs", [0, 24])
def test_all_forms_run_on_one_batch(graphs):
    batch = pairs_cost.make_batch(little_store(), graphs, channels=3, distances=2)
    for form in pairs_cost.make_forms(batch, 2).values():
        assert form.run().shape[0] == graphs
        form.step()


def test_searched_and_listed_pairs_give_the_same():
    batch = pairs_cost.make_batch(little_store(), 24, channels=3, distances=2)
    forms = pairs_cost.make_forms(batch, 2)
    with torch.no_grad():
        listed = forms["pairs"].inputs[1]
        searched = forms["pairs, searched"].inputs[1]
    assert listed is searched
    torch.testing.assert_close(forms["pairs"].run(), forms["pairs, searched"].run())


def test_it_writes_what_it_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pairs_cost, "load", lambda name, root: load("MUTAG")[:8])
    options = ["--datasets", "MUTAG", "--threads", "1", "--rounds", "1", "--distances", "2"]
    pairs_cost.main([*options, "--json", str(tmp_path / "ms.json")])
    (times,) = json.loads((tmp_path / "ms.json").read_text())["ms"].values()
    assert set(times) == {"bimap", "pairs", "pairs and rest", "pairs, searched", "walks"}
    assert "pairs and rest" in capsys.readouterr().out
    pairs_cost.main([*options, "--one", "MUTAG", "pairs"])
    assert float(capsys.readouterr().out) >= 0
