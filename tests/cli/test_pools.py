import json
from functools import partial
from pathlib import Path

from sopool.models.presets import FROZEN, POOLS
from sopool.nn import POOLINGS, BilinearSecondOrderAggregation
from sopool.nn.registry import GRAPH_READOUTS, READOUTS
from tests.cli.conftest import TINY


def test_all_poolings_are_listed(call):
    shown = call("pools")
    assert shown.code == 0
    for name in POOLS:
        assert name in shown.out
    assert "for f = 160 features" in shown.out


def test_the_parameters_follow_from_the_width(call):
    listed = {one["name"]: one for one in json.loads(call("pools", "--channels", "10", "--json").out)}
    assert set(listed) == set(POOLS) - {"sum-avg", *FROZEN}
    assert list(listed) == [*READOUTS, *GRAPH_READOUTS]
    counts = {name: listed[name]["parameters"] for name in ("sum", "sopool-bimap", "sopool-m-attn", "diffpool")}
    assert counts == {"sum": 0, "sopool-bimap": 320, "sopool-m-attn": 80, "diffpool": 80}
    assert listed["sagpool"]["width"] == 20
    assert {name for name, one in listed.items() if one["hierarchical"]} == set(POOLINGS)
    assert all(one["paper"] and one["formula"] and one["cost"] and one["vector"] for one in listed.values())


def test_those_of_the_user_s_own_are_described_by_their_docstrings(call, monkeypatch):
    class Mine(BilinearSecondOrderAggregation):
        r""":math:`W^{\top} H`, of mine.

        And more.
        """

    class Wants(Mine):
        def __init__(self, channels, wanted, rank=3):
            super().__init__(channels, rank)

    monkeypatch.setitem(READOUTS, "mine", partial(Mine, rank=3))
    monkeypatch.setitem(READOUTS, "wants", Wants)
    *_, mine, wants = json.loads(call("pools", "--channels", "10", "--json").out)
    assert (mine["name"], mine["formula"]) == ("mine", r"W^{\top} H, of mine.")
    assert (mine["parameters"], mine["width"]) == (30, 9)
    assert mine["default"].startswith("rank = 3")
    assert (wants["name"], wants["formula"], wants["parameters"], wants["width"]) == ("wants", "-", None, None)
    assert "your own" in call("pools").out


def test_a_hierarchy_from_the_command_line(call):
    options = ["--pool", "sopool-m-attn,eigenpool", "--blocks", "2", "--head", "sum-readout", "--hidden", "4"]
    shown = call("evaluate", "MUTAG", *options, "--protocol", "fair,single-epoch", *TINY, "-o", "found.json")
    assert shown.code == 0, shown.err
    assert "MUTAG, gin-0, 2 blocks, sum-readout" in shown.out
    first, second = json.loads(Path("found.json").read_text())
    assert (first["pool"], first["blocks"], first["head"]) == ("sopool-m-attn", 2, "sum-readout")
    assert second["protocols"]["fair"]["repeats"] == 3
    again = call("evaluate", "MUTAG", *options, "--protocol", "fair,single-epoch", *TINY)
    assert "Nothing to train" in again.out
    listed = call("runs")
    assert "eigenpool" in listed.out
    assert listed.code == 0


def test_a_preset_sets_what_is_not_asked_for(call):
    short = ["--epochs", "1", "--folds", "2", "--workers", "1", "--device", "cpu", "--hidden", "8"]
    shown = call("evaluate", "MUTAG", "--preset", "sagpool", "--pool", "sagpool", "--blocks", "1", *short)
    assert shown.code == 0, shown.err
    assert "8/128/0.0005/0.5" in shown.out
    assert "MUTAG, gcn, 1 block, sum-readout" in " ".join(shown.out.split())


def test_options_of_poolings(call):
    options = ["--pool", "sopool-m-attn", "--blocks", "1", "--protocol", "single-epoch", *TINY, "--hidden", "4"]
    words = ["--pool-options", "heads=3,normalize=none", "--block-readout", "concat", "--json"]
    (found,) = json.loads(call("evaluate", "MUTAG", *options, *words).out)
    assert found["pool_options"] == {"heads": 3, "normalize": None}
    assert found["block_readout"] == "concat"
    for bad, says in (
        ("haeds=3", "Their options: sopool-m-attn has heads, normalize"),
        ("heads=0", "it must be at least 1"),
    ):
        shown = call("evaluate", "MUTAG", *options, "--pool-options", bad)
        assert shown.code == 2
        assert says in " ".join(shown.err.split())


def test_a_head_needs_blocks(call):
    shown = call("evaluate", "MUTAG", "--pool", "diffpool", "--head", "per-block", *TINY)
    assert shown.code == 2
    assert "set blocks to 1, 2 or 3" in " ".join(shown.err.split())
