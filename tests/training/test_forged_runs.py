"""Runs with right digests and anything in them: left out with a warning, or an error in words; never odd figures."""

import hashlib
import json
import os
import shutil
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load

from sopool._files.sealed import json_digest, read_header
from sopool.errors import DataError
from sopool.experiments.reproduce.merge import read_reproductions
from sopool.experiments.summary import summarise
from sopool.experiments.systems.result import ControlResult, save_result
from sopool.experiments.systems.run import read_controls
from sopool.report.grids.controls import controls_grid
from sopool.report.grids.reproduction import reproduction_grid, reproduction_grids, reproduction_notes
from sopool.report.page.html import page
from sopool.training.protocols.outcome import Outcome
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Trainer
from tests.helpers.forging import changed_arrays, changed_facts, facts_of, forge, key_of
from tests.helpers.stores import facts, fill
from tests.helpers.training_graphs import little_store, run_config, tables_of


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store of an experiment of two folds under all protocols, with the result of a control."""
    folder = tmp_path_factory.mktemp("filled")
    fill(folder, pools=[("sum", 0.7)], hidden=(8,), folds=2, epochs=2)
    outcome = Outcome("fair", "", (0.5, 0.6), (), (), {"balanced_accuracy": (0.5, 0.6), "roc_auc": (None, 0.5)})
    result = ControlResult("TOY", facts().fingerprint, "size", outcome, 1.5, ({"C": 1.0}, {"C": 0.1}))
    save_result(result, folder / "controls" / f"{'0' * 16}.json")
    return folder


@pytest.fixture
def folder(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "runs")
    return tmp_path / "runs"


def run_of(folder, looks):
    (found, *_) = [info for info in RunStore(folder).list() if info.config.looks == looks]
    return folder / found.key


def use(folder, key):
    """Do with a run what commands do; whatever is reported must be possible."""
    store = RunStore(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (info,) = [info for info in store.list() if info.key == key]
        assert info.state
        if info.config is None or not info.is_complete or store.load(info.config) is None:
            return
        found = summarise(store)
        page(found)
    for entry in found.entries:
        assert entry.cost.seconds >= 0
        for outcome in entry.outcomes.values():
            shares = [outcome.scores.get(name, ()) for name in ("balanced_accuracy", "roc_auc")]
            told = [share for some in shares for share in some if share is not None]
            assert all(0 <= figure <= 1 for figure in (*outcome.folds, *told))
        for bands in entry.curves.values():
            assert all(np.nanmax(band.mean) <= 100 for band in bands.values())


def check_all(changes, write, look):
    """Write each of the changes and look; everything that goes wrong, together."""
    failures = []
    for what, changed in changes:
        write(changed)
        try:
            look()
        except Exception as error:
            failures.append(f"{what}: {error!r}")
    assert failures == []


def rewrite_digests(run):
    """Let the curves of a run carry the digests of its other files."""
    environment = hashlib.sha256((run / "environment.json").read_bytes()).hexdigest()
    predictions = read_header((run / "predictions.safetensors").read_bytes())["digest"]
    curves = (run / "curves.safetensors").read_bytes()
    about = facts_of(curves) | {"environment": environment, "predictions": predictions}
    (run / "curves.safetensors").write_bytes(forge(curves, facts=json.dumps(about)))


@pytest.mark.parametrize("looks", ["test", "chosen"])
def test_other_facts_of_curves(folder, looks):
    path = run_of(folder, looks) / "curves.safetensors"
    content = path.read_bytes()
    check_all(
        changed_facts(facts_of(content)),
        lambda changed: path.write_bytes(forge(content, facts=json.dumps(changed))),
        lambda: use(folder, path.parent.name),
    )


@pytest.mark.parametrize("looks", ["test", "validation", "chosen"])
def test_other_curves(folder, looks):
    path = run_of(folder, looks) / "curves.safetensors"
    content = path.read_bytes()
    check_all(
        changed_arrays(load(content)),
        lambda arrays: path.write_bytes(forge(content, arrays)),
        lambda: use(folder, path.parent.name),
    )


@pytest.mark.parametrize("looks", ["test", "chosen"])
def test_other_predictions(folder, looks):
    run = run_of(folder, looks)
    content = (run / "predictions.safetensors").read_bytes()

    def write(arrays):
        (run / "predictions.safetensors").write_bytes(forge(content, arrays))
        rewrite_digests(run)

    check_all(changed_arrays(load(content)), write, lambda: use(folder, run.name))


def test_another_environment(folder):
    run = run_of(folder, "test")
    plain = json.loads((run / "environment.json").read_text()) | {"fold": "x"}

    def write(changed):
        (run / "environment.json").write_text(json.dumps(changed))
        rewrite_digests(run)

    check_all(changed_facts(plain), write, lambda: use(folder, run.name))


def test_other_configurations(folder):
    run = run_of(folder, "test")
    plain = json.loads((run / "config.json").read_text())
    files = {path.name: path.read_bytes() for path in run.iterdir()}
    places = []

    def write(changed):
        for place in places:
            shutil.rmtree(place)
        key = key_of(changed)
        places[:] = [folder / key]
        places[0].mkdir(exist_ok=True)
        for name, content in files.items():
            other = forge(content, run=key) if name.endswith("safetensors") else content
            (places[0] / name).write_bytes(json.dumps(changed).encode() if name == "config.json" else other)
        rewrite_digests(places[0])

    shutil.rmtree(run)
    check_all(changed_facts(plain), write, lambda: use(folder, places[0].name))
    write(plain | {"looks": "deep", "model": json.loads('{"a":' * 900 + "1" + "}" * 900)})
    assert [info.kind for info in RunStore(folder).list() if info.key == places[0].name] == ["unreadable"]


def test_other_facts_of_the_data_set(folder):
    (path,) = (folder / "data").iterdir()
    content = path.read_bytes()

    def look():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if RunStore(folder).load_dataset(facts().fingerprint) is not None:
                summarise(RunStore(folder))

    def write(changed):
        path.write_bytes(forge(content, facts=json.dumps(changed)))

    check_all(changed_facts(facts_of(content)), write, look)
    check_all(changed_arrays(load(content)), lambda arrays: path.write_bytes(forge(content, arrays)), look)


def test_other_results_of_controls(folder):
    (path,) = (folder / "controls").iterdir()
    saved = json.loads(path.read_text())

    def write(result):
        path.write_text(json.dumps(saved | {"digest": json_digest(result), "result": result}))

    def look():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read_controls(folder)
            controls_grid(found)
        assert all(0 <= one.outcome.mean <= 1 for one in found)

    check_all(changed_facts(saved["result"]), write, look)
    check_all(changed_facts(saved), lambda changed: path.write_text(json.dumps(changed)), look)


def test_other_tables(tmp_path):
    with zipfile.ZipFile(Path(__file__).parents[1] / "fixtures" / "store.zip") as archive:
        (name,) = [name for name in archive.namelist() if name.startswith("reproduce")]
        saved = json.loads(archive.read(name))
    del saved["digest"]
    (tmp_path / "reproduce-table2-again.json").write_text(json.dumps(saved))  # so that there is something to merge

    def write(changed):
        text = json.dumps({"digest": json_digest(changed)} | changed)
        (tmp_path / "reproduce-table2-00000000.json").write_text(text)

    def look():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read_reproductions(tmp_path)
        for one in found:
            reproduction_grid(one)
            reproduction_grids(one)
            reproduction_notes(one)
            assert all(0 <= each.mean <= 1 for cell in one.cells for each in cell.measured.values())

    check_all(changed_facts(saved), write, look)


def test_accuracies_beyond_all_graphs_are_not_reported(folder):
    path = run_of(folder, "test") / "curves.safetensors"
    content = path.read_bytes()
    arrays = load(content)
    path.write_bytes(forge(content, arrays | {"test_accuracy": arrays["test_accuracy"] * 0 + 2.11}))
    (info,) = [info for info in RunStore(folder).list() if info.key == path.parent.name]
    with pytest.warns(UserWarning, match=r"test_accuracy\[0\] is 2.11, expected .* at most 1.*counts as missing"):
        assert RunStore(folder).load(info.config) is None


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(folder):
    run = run_of(folder, "test")
    for name in ("curves.safetensors", "config.json", "environment.json", "predictions.safetensors"):
        content = (run / name).read_bytes()
        (run / name).unlink()
        os.mkfifo(run / name)
        use(folder, run.name)
        (run / name).unlink()
        (run / name).write_bytes(content)


@pytest.fixture(scope="module")
def tables():
    return tables_of(little_store(graphs=40))


@pytest.mark.parametrize("looks", ["test", "chosen"])
def test_other_checkpoints(tables, tmp_path, looks):
    """The run starts over, or goes on: it ends as a whole one."""
    store = RunStore(tmp_path)
    config = run_config(looks=looks, epochs=2, steps=1)
    seen = []
    Trainer(tables, store, seen.append, lambda: bool(seen)).train([config])
    path = tmp_path / config.key / "checkpoint.safetensors"
    content = path.read_bytes()
    changes = [(what, forge(content, facts=json.dumps(facts))) for what, facts in changed_facts(facts_of(content))]
    changes += [(what, forge(content, arrays)) for what, arrays in changed_arrays(load(content))]
    failures = []
    for what, changed in changes[:: 1 if os.environ.get("SOPOOL_TEST_ALL") else 4]:
        path.write_bytes(changed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                store.list()
                Trainer(tables, store).train([config])
                assert store.load(config) is not None
        except Exception as error:
            failures.append(f"{what}: {error!r}")
        (path.parent / "curves.safetensors").unlink(missing_ok=True)
    assert failures == []


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    config = run_config(folds=10**6)
    with pytest.raises(DataError, match=r"config\.folds is 1000000, expected a whole number from 1 to 4096"):
        RunStore(tmp_path).claim(config).__enter__()
    assert RunStore(tmp_path).list() == [] or RunStore(tmp_path).list()[0].config is None


@pytest.mark.parametrize("changes", [{"folds": 10**12}, {"repeat": 10**12, "looks": "chosen"}])
def test_a_short_file_does_not_take_much_memory(folder, changes):
    """As many folds or repeats as a configuration names would be looked for."""
    run = run_of(folder, changes.get("looks", "test"))
    plain = json.loads((run / "config.json").read_text()) | changes
    run = run.rename(folder / key_of(plain))
    (run / "config.json").write_text(json.dumps(plain))
    (info,) = [info for info in RunStore(folder).list() if info.key == run.name]
    assert (info.kind, info.config) == ("unreadable", None)
