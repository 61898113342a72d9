import os
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sopool.errors import DataError
from sopool.models.config import ModelConfig
from sopool.training.runs.config import RunConfig
from sopool.training.runs.info import differences
from sopool.training.runs.record import Run
from sopool.training.runs.schema import curve_arrays
from sopool.training.runs.store import RunStore
from tests.helpers.run_saver import FILES, a_config, a_run, checkpoint_facts, interrupt, is_of_one_piece, kinds, names

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
dtypes = st.sampled_from([np.float32, np.float64, np.int64, np.bool_])
arrays = dtypes.flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, min_side=0, max_side=4)))
named_arrays = st.dictionaries(st.text(min_size=1, max_size=8), arrays, max_size=4)
json_values = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
environments = st.dictionaries(st.text(max_size=5), json_values, max_size=4)
small = st.none() | st.booleans() | st.integers(-(2**16), 2**16) | st.floats(-1, 1) | st.text(max_size=5)
options = st.dictionaries(st.text(max_size=5), small | st.lists(small, max_size=3), max_size=4)
facts = st.fixed_dictionaries(
    {"epoch": st.integers(0, 400), "chosen_epoch": st.none() | st.integers(0, 400), "layout": st.text(max_size=5)}
)
configs = st.builds(
    RunConfig,
    data=st.text(max_size=5),
    fingerprint=st.text("0123456789abcdef", min_size=1, max_size=16),
    encoder=st.sampled_from(["labels", "degrees"]),
    model=st.builds(ModelConfig, pool_options=options, hidden=st.integers(1, 64)),
    fold=st.integers(0, 9),
    looks=st.sampled_from(["test", "validation", "chosen"]),
    epochs=st.integers(1, 4),
    lr=st.floats(1e-5, 1),
)


@st.composite
def runs(draw):
    """Runs as a trainer leaves them, of any numbers."""
    config = draw(configs)
    stopped = draw(st.none() | st.integers(0, config.epochs - 1))
    done = config.epochs if stopped is None else stopped
    curves = {}
    for name, rule in curve_arrays(config).items():
        width = draw(st.sampled_from([32, 64]))
        high = 1 if name.endswith("accuracy") else 1000
        values = st.floats(rule.low or 0, high, width=width)
        curves[name] = draw(npst.arrays(f"float{width}", config.epochs, elements=values))
        curves[name][done:] = np.nan
    graphs = draw(st.integers(1, 4))
    classes = draw(st.integers(2, 3))
    scores = st.floats(-1000, 1000, width=32)
    predictions = {}
    if config.looks == "test":
        logits = draw(npst.arrays(np.float32, (config.epochs, graphs, classes), elements=scores))
        logits[done:] = np.nan
        predictions = {"test_graphs": np.arange(graphs), "test_logits": logits}
    for part in ("validation", "test")[: {"test": 0, "validation": 1, "chosen": 2}[config.looks] if done else 0]:
        predictions[f"{part}_graphs"] = np.arange(graphs)
        predictions[f"{part}_logits"] = draw(npst.arrays(np.float32, (graphs, classes), elements=scores))
    chosen = draw(st.integers(0, done - 1)) if done and config.looks != "test" else None
    return Run(config, curves, predictions, chosen, stopped, draw(environments))


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], strict=True)


@SHARED_FOLDER
@given(runs())
def test_round_trip(tmp_path, run):
    store = RunStore(tmp_path / "runs")
    store.save(run)
    again = store.load(run.config)
    assert_same(again.curves, run.curves)
    assert_same(again.predictions, run.predictions)
    assert replace(again, curves={}, predictions={}) == replace(run, curves={}, predictions={})
    assert names(store, run.config) == FILES
    (info,) = [info for info in store.list() if info.key == run.config.key]
    assert (info.kind, info.config) == ("finished" if run.stopped is None else "stopped", run.config)


@SHARED_FOLDER
@given(named_arrays, facts)
def test_checkpoint_round_trip(tmp_path, arrays, facts):
    store = RunStore(tmp_path / "runs")
    store.save_checkpoint(a_config(), arrays, facts)
    found, found_facts = store.load_checkpoint(a_config())
    assert_same({name: tensor.numpy() for name, tensor in found.items()}, arrays)
    assert found_facts == facts


def test_checkpoint_of_tensors_as_models_have_them(store):
    """Views of one buffer, transposed, on a tape, half precision, and one tensor under two names."""
    buffer = torch.arange(12.0).view(3, 4)
    weight = torch.nn.Parameter(buffer.clone())
    given = {"a": buffer[0], "b": buffer[:, 1], "c": buffer.T, "d": weight, "e": weight, "f": buffer.bfloat16()}
    store.save_checkpoint(a_config(), given, checkpoint_facts(1))
    found, _ = store.load_checkpoint(a_config())
    assert {name: tensor.dtype for name, tensor in found.items()} == {k: v.dtype for k, v in given.items()}
    assert all(torch.equal(found[name], given[name]) for name in given)
    found["a"] += 1  # what comes back may be written to
    assert store.load(a_config()) is None


def test_the_checkpoint_goes_when_the_run_is_saved(store):
    interrupt(store, a_config())
    store.save(a_run())
    assert store.load_checkpoint(a_config()) is None
    assert names(store, a_config()) == FILES


def test_the_last_save_stays(store):
    for mark in (1, 2):
        store.save(a_run(mark))
    assert is_of_one_piece(store.load(a_config()))
    assert store.load(a_config()).chosen_epoch == 2


def test_list(store):
    before = datetime.now(timezone.utc)
    store.save(a_run(config=a_config(1)))
    store.save(a_run(config=a_config(2), stopped=7))
    interrupt(store, a_config(3))
    with store.claim(a_config(4)) as mine, store.claim(a_config(5)):
        assert mine
        interrupt(store, a_config(5))
        infos = {info.config.seed: info for info in store.list()}
    states = {seed: info.state for seed, info in infos.items()}
    interrupted = "interrupted, epoch 20 of 350"
    assert states == {1: "finished", 2: "stopped", 3: interrupted, 4: "running", 5: "running"}
    assert [infos[seed].epoch for seed in (1, 3, 4, 5)] == [None, 20, 0, 20]
    assert infos[1].size == sum(path.stat().st_size for path in (store.folder / a_config(1).key).iterdir())
    assert all(abs((info.when - before).total_seconds()) < 60 for info in infos.values())
    assert {info.state for info in store.list() if info.config.seed > 3} == {interrupted, "interrupted, epoch 0 of 350"}


def test_the_list_is_in_the_order_of_time(store):
    for seed in range(4):
        store.save(a_run(config=a_config(seed)))
        for path in [store.folder / a_config(seed).key, *(store.folder / a_config(seed).key).iterdir()]:
            os.utime(path, (1e9 - seed, 1e9 - seed))
    assert [info.config.seed for info in store.list()] == [3, 2, 1, 0]


def test_other_things_in_the_folder(store):
    store.save(a_run())
    (store.folder / "notes.txt").write_text("mine")
    (store.folder / ("0" * 16)).write_text("not a folder")
    assert [info.key for info in store.list()] == [a_config().key]
    assert store.clean() == []
    assert (store.folder / "notes.txt").exists()


def test_one_claim_at_a_time(store):
    with store.claim(a_config()) as first, store.claim(a_config()) as second, store.claim(a_config(1)) as other:
        assert (first, second, other) == (True, False, True)
        with RunStore(store.folder).claim(a_config()) as third:
            assert not third
    with store.claim(a_config()) as again:
        assert again
        store.save(a_run())
    assert names(store, a_config()) == FILES


def test_an_error_under_a_claim_stays_what_it_is_and_frees_it(store):
    with pytest.raises(OSError, match="of the caller"), store.claim(a_config()):
        raise OSError("of the caller")
    with store.claim(a_config()) as mine:
        assert mine


def test_clean(store):
    for seed in (1, 2):
        store.save(a_run(config=a_config(seed)))
        interrupt(store, a_config(seed))
        (store.folder / a_config(seed).key / f".curves.safetensors.{'0' * 16}").write_text("half")
        (store.folder / a_config(seed).key / "write.lock").touch()
    interrupt(store, a_config(3))
    interrupt(store, a_config(4))
    (store.folder / a_config(5).key).mkdir()
    (store.folder / ".removed.x" / "y").mkdir(parents=True)
    with store.claim(a_config(2)), store.claim(a_config(4)):
        kept = names(store, a_config(2))
        assert set(store.clean()) == {a_config(3).key, a_config(5).key}
        assert names(store, a_config(1)) == FILES
        assert names(store, a_config(2)) == kept
    assert {info.config.seed for info in store.list()} == {1, 2, 4}
    assert store.clean() == [a_config(4).key]
    left = {path.name for path in store.folder.iterdir()}
    assert left - {".lock"} == {a_config(1).key, a_config(2).key}


def test_clean_spares_what_is_being_written(store, monkeypatch):
    """Also by a process that has not claimed the run."""
    replace_file = Path.replace

    def clean_first(path, target):
        assert RunStore(store.folder).clean() == []
        assert kinds(store) == {a_config().key: "running"}
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", clean_first)
    store.save(a_run())
    assert is_of_one_piece(store.load(a_config()))


def test_remove(store):
    for seed in range(4):
        store.save(a_run(config=a_config(seed)))
    store.remove([a_config(0).key, a_config(0).key[:12], a_config(1).key])
    with store.claim(a_config(2)), pytest.raises(DataError, match=f"were not removed.*{a_config(2).key}"):
        store.remove([a_config(2).key, a_config(3).key])
    assert [info.config.seed for info in store.list()] == [2]
    with pytest.raises(DataError, match="no run has a key"):
        store.remove([a_config(2).key, a_config(3).key])
    assert [info.config.seed for info in store.list()] == [2]


@SHARED_FOLDER
@given(st.lists(st.text("0123456789abcdef", min_size=16, max_size=16), unique=True, max_size=6), st.data())
def test_find(tmp_path_factory, keys, data):
    store = RunStore(tmp_path_factory.mktemp("runs"))
    for key in keys:
        (store.folder / key).mkdir()
    prefix = data.draw(st.text("0123456789abcdef", max_size=3))
    if keys:
        whole = data.draw(st.sampled_from(keys))
        assert store.find(whole) == whole
        prefix = data.draw(st.just(prefix) | st.integers(1, 15).map(lambda length: whole[:length]))
    matches = [key for key in keys if key.startswith(prefix)] if prefix else []
    if len(matches) == 1:
        assert store.find(prefix) == matches[0]
    else:
        says = f"no run .* begins with {prefix!r}" if not matches else f"{len(matches)} runs .*: give more of the key"
        with pytest.raises(DataError, match=says):
            store.find(prefix)


def test_compare(store):
    a = a_config()
    b = replace(a, lr=0.1, model=replace(a.model, hidden=64, pool_options={"rank": 8}))
    for config in (a, b):
        store.save(a_run(config=config))
    expected = {"lr": (0.01, 0.1), "model.hidden": (32, 64), "model.pool_options.rank": ("not set", 8)}
    assert store.compare(a.key[:9], b.key) == expected


@given(configs, configs)
def test_differences(a, b):
    assert (differences(a, b) == {}) == (a.key == b.key)
    assert {name: pair[::-1] for name, pair in differences(a, b).items()} == differences(b, a)
