import json
from pathlib import Path

import pytest

from sopool.experiments.systems import CONTROLS


def test_all_of_them_in_a_table(call):
    shown = call("controls", "MUTAG", "--folds", "3")
    assert shown.code == 0, shown.err
    for words in ("Controls under fair, accuracy in percent: MUTAG, 3 folds", "66.5 +- 0.3", "normalized", *CONTROLS):
        assert words in shown.out
    assert len(list(Path("runs/controls").iterdir())) == len(CONTROLS)
    assert [line.partition(":")[0] for line in shown.err.splitlines()] == [*CONTROLS, "Repeat with"]  # progress


def test_some_of_them_as_json(call):
    options = ["--controls", "histogram,majority", "--folds", "3", "--runs", "kept", "--json"]
    first = call("controls", "MUTAG", *options)
    found = json.loads(first.out)
    assert [one["control"] for one in found] == ["histogram", "majority"]
    assert found[0]["outcome"]["mean"] > found[1]["outcome"]["mean"]
    assert [len(one["settings"]) for one in found] == [3, 3]
    assert call("controls", "MUTAG", *options).out == first.out  # times, too: nothing was run again


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["MUTAG", "--controls", "wll"], "no control 'wll'. Did you mean 'wl'?"),
        (["MUTAG", "--folds", "100"], "fewer graphs"),
    ],
)
def test_mistakes(call, options, says):
    shown = call("controls", *options)
    assert shown.code == 2
    assert says in " ".join(shown.err.split())


def test_a_random_control_beside_the_pooling_it_is_of(call):
    pools = ["--pool", "sopool-attn,sopool-attn-random", "--hidden", "4", "--protocol", "single-epoch"]
    tiny = ["--epochs", "2", "--steps", "2", "--folds", "2", "--workers", "1", "--device", "cpu"]
    shown = call("evaluate", "MUTAG", *pools, *tiny)
    assert shown.code == 0, shown.err
    assert "Gain over sopool-attn," in shown.out
    listed = call("runs")
    assert listed.out.count("sopool-attn-random") == 1
