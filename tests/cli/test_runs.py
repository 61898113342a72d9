import json
import re
from dataclasses import replace

import pytest

from sopool.models.config import ModelConfig
from sopool.training.runs.store import RunStore
from tests.helpers.run_saver import checkpoint_facts
from tests.helpers.runs import CONFIG, looking_run

LABELS = [0, 1] * 5
RIGHT = (4, 7, 6)
ENVIRONMENTS = ({"torch": "2.7", "peak_memory": 700_000_000}, {"torch": "2.6", "peak_memory": None})


@pytest.fixture
def store(tmp_path):
    """Six finished runs of three experiments, and one that was interrupted."""
    store = RunStore(tmp_path / "runs")
    base = replace(CONFIG, folds=2, epochs=3)
    for fold in (0, 1):
        for config in (base, replace(base, seed=7), replace(base, model=ModelConfig(pool="sum"), looks="test")):
            run = looking_run(replace(config, fold=fold), RIGHT, LABELS)
            curves = run.curves | {"seconds": run.curves["test_loss"]}
            store.save(replace(run, curves=curves, environment=ENVIRONMENTS[fold]))
    store.save_checkpoint(replace(base, seed=8), {}, checkpoint_facts(2))
    return store


def keys(store, **wanted):
    return [
        info.key for info in store.list() if all(getattr(info.config, name) == value for name, value in wanted.items())
    ]


def test_those_that_belong_together_are_one_line(store, call):
    shown = call("runs")
    assert shown.code == 0
    lines = [line for line in shown.out.splitlines() if "TOY" in line]
    assert len(lines) == 4
    assert sum("2 finished" in line for line in lines) == 3
    assert sum("1 interrupted" in line for line in lines) == 1
    assert sum("seed 7" in line for line in lines) == 1
    assert call("runs", "list").out == shown.out
    assert call("runs", "--runs", "runs", "list").out == shown.out
    assert call("runs", "list", "--runs", "runs").out == shown.out


def test_each_run(store, call):
    shown = call("runs", "--all").out
    assert all(info.key in shown for info in store.list())
    assert "interrupted, epoch 2 of 3" in shown
    assert "fold 2, repeat 0" in " ".join(shown.split())


def test_json(store, call):
    found = json.loads(call("runs", "--json").out)
    assert [one["key"] for one in found] == [info.key for info in store.list()]
    assert found[-1]["state"] == "interrupted, epoch 2 of 3"
    assert found[0]["config"]["model"]["pool"]


def test_no_runs(call, tmp_path):
    shown = call("runs")
    assert (shown.code, shown.out) == (0, "There are no runs in runs.\n")
    assert json.loads(call("runs", "--json").out) == []
    assert list(tmp_path.iterdir()) == []


def test_an_unreadable_run_is_shown_as_such(store, call):
    (key, *_) = keys(store)
    (store.folder / key / "config.json").write_text("{}")
    assert "1 unreadable" in call("runs").out
    assert key in call("runs", "--all").out


def test_compare(store, call):
    one = keys(store, fold=0, seed=0)[0]
    other = keys(store, fold=1, seed=7)[0]
    shown = call("runs", "compare", one, other[:9]).out
    for words in ("fold", "seed", "7", "70.0 in epoch 2", "60.0", "torch", "2.6", "2.7"):
        assert words in shown
    assert "the same" in call("runs", "compare", one, one).out
    cells = [re.split(" {2,}", line.strip()) for line in shown.splitlines()]
    lines = {name: values for name, *values in cells}
    assert lines["fold"] == ["1", "2"]  # as the list of all runs has them
    assert lines["peak_memory"] == ["700.0 MB", "-"]


def test_clean(store, call):
    assert call("runs", "clean").out == "1 interrupted run was deleted from runs.\n"
    assert len(store.list()) == 6
    assert call("runs", "clean").out == "0 interrupted runs were deleted from runs.\n"


def test_remove(store, call):
    first, second, *rest = keys(store)
    assert call("runs", "remove", first, second, first).out == "2 runs were deleted from runs.\n"
    assert keys(store) == rest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare", "a"], "Missing argument"),
        (["compare", "zz", "zz"], "no run has a key that begins with 'zz'"),
        (["remove", "zz"], "no run has a key that begins with 'zz'"),
        (["remove"], "Missing argument"),
        (["tidy"], "No such command"),
    ],
)
def test_mistakes(store, call, arguments, says):
    shown = call("runs", *arguments)
    assert shown.code == 2
    assert says in " ".join(shown.err.split())
    assert len(store.list()) == 7
