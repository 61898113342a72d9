import importlib
import json
import os
from pathlib import Path

import pytest

import sopool
from sopool import GraphClassifier
from sopool.errors import DataError
from sopool.estimator import fitting
from tests.cli.conftest import QUICK, TINY

fit_module = importlib.import_module("sopool.cli.fit")


def test_fit_chooses_among_several_and_can_leave_the_estimate_out(call, tmp_path):
    shown = call("fit", "MUTAG", "-o", "m.sopool", *QUICK, "--folds", "0", "--pool", "sum,sopool-attn")
    assert shown.code == 0
    assert "cross-validation" not in shown.out
    assert "There is no estimate of its accuracy" in " ".join(shown.out.split())
    assert GraphClassifier.load(tmp_path / "m.sopool").pool in ("sum", "sopool-attn")
    assert "Selected: pool s" in " ".join(shown.out.split())


PAIR = {"nodes": 2, "edges": [[0, 1]]}
SEARCHED = {
    "gnn": ["gcn", "gin-0"],
    "hidden": [4, 5],
    "layers": [1, 2],
    "dropout": [0.0, 0.2],
    "batch_size": [16, 32],
    "lr": [0.01, 0.02],
}


def test_lists_of_all_settings_are_searched(call, tmp_path):
    """All combinations: here two settings at once, and each of the others on its own."""
    (tmp_path / "g.jsonl").write_text("".join(json.dumps({**PAIR, "label": i % 2}) + "\n" for i in range(12)))
    for together in (("gnn", "layers"), ("hidden",), ("dropout",), ("batch_size", "lr")):
        given = [f"--{name.replace('_', '-')}={','.join(map(str, SEARCHED[name]))}" for name in together]
        tiny = ["--epochs", "1", "--models", "1", "--folds", "0", "--device", "cpu", "--pool", "sum"]
        shown = call("fit", "g.jsonl", "-o", "m.sopool", *tiny, *given)
        assert shown.code == 0, shown.err
        networks = 3 * 2 ** len(together) + 1  # three inner folds, then all graphs
        assert f"{networks}/{networks} networks" in shown.err
        model = GraphClassifier.load(tmp_path / "m.sopool")
        settings = model.get_params()
        assert all(settings[name] in SEARCHED[name] for name in together)
        said = ", ".join(f"{name.replace('_', ' ')} {settings[name]}" for name in sorted(together))
        assert f"Selected: {said}." in " ".join(shown.out.split())
    assert (model.layers, model.dropout, model.config_.hidden) == (4, 0.5, 32)


def test_a_single_value_needs_no_search(call, tmp_path):
    given = ["--lr", "0.05", "--layers", "2", "--dropout", "0.1", "--batch-size", "16", "--gnn", "gcn"]
    shown = call("fit", "MUTAG", "-o", "m.sopool", *QUICK, "--folds", "0", *given)
    assert "Selected" not in shown.out
    model = GraphClassifier.load(tmp_path / "m.sopool")
    assert (model.lr, model.layers, model.dropout, model.batch_size, model.gnn) == (0.05, 2, 0.1, 16, "gcn")


@pytest.mark.parametrize("flag", ["--calibrate", "--no-calibrate"])
def test_probabilities_are_calibrated_where_that_lowers_the_log_loss(flag, call, tmp_path):
    shown = call("fit", "MUTAG", "-o", "m.sopool", *QUICK, "--epochs", "3", "--lr", "0.05", flag)
    said = " ".join(shown.out.split())
    model = GraphClassifier.load(tmp_path / "m.sopool")
    assert ("Probabilities on unseen graphs" in said) == (flag == "--calibrate")
    assert ("The model uses it." in said) == (model.temperature_ is not None)
    if flag == "--calibrate":
        found = model.about_["estimate"]["calibration"]
        assert found["used"] == (found["after"]["log_loss"] < found["before"]["log_loss"])
        assert model.temperature_ == (found["temperature"] if found["used"] else None)
        assert f"Temperature: {found['temperature']:.2f}" in said
    else:
        assert "calibration" not in model.about_["estimate"]


CHOICE = ["two.jsonl", "-o", "m.sopool", "--pool", "sum,mean"]
VAST = ["--pool", "sopool-m-attn", "--pool-options", f"heads={10**12}"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["MUTAG", "-o", "nowhere/m.sopool"], "the folder nowhere does not exist"),
        (["MUTAG", "-o", "m.sopool", "--folds", "1"], "--folds 1: cross-validation needs at least 2"),
        (["MUTAG", "-o", "m.sopool", "--seed", str(2**32)], "4294967295"),
        (["MUTAG", "-o", "m.sopool", "--pool", "sopol", "--folds", "0"], "Did you mean"),
        (["MUTAG", "-o", "m.sopool", "--lr", "0.01,fast"], "--lr 0.01,fast: 'fast' is not a number."),
        (["MUTAG", "-o", "m.sopool", "--lr", "0.01,0"], "--lr 0.0: a positive number is needed."),
        (["MUTAG", "-o", "m.sopool", "--layers", "257"], "--layers 257: a whole number from 1 to 256 is needed."),
        (["MUTAG", "-o", "m.sopool", "--dropout", "1"], "--dropout 1.0: a number of at least 0 and below 1"),
        (["MUTAG", "-o", "m.sopool", "--batch-size", "0"], "--batch-size 0: a whole number of at least 1"),
        (["MUTAG", "-o", "m.sopool", "--gnn", "gin-0,gin"], "Did you mean 'gin-0'?"),
        (["-", "-o", "m.sopool"], "Give the name of a data set, or the path of a file"),
        (["MUTAG", "-o", "m.sopool", *VAST, "--folds", "0"], "there is not enough memory to train: 5"),
        (["MUTAG", "-o", "m.sopool", "--pool-options", f"rank={10**18}"], f"cannot be made with rank={10**18}: "),
        (["none.csv", "-o", "m.sopool"], "no such file"),
        ([*CHOICE, "--folds", "2"], "'rare' has 2 graphs, and --folds 2 may leave only 1 for training"),
        ([*CHOICE, "--folds", "3"], "than there are folds (3): use fewer folds, or merge or drop the class."),
        (["two.jsonl", "-o", "m.sopool"], "or merge or drop the class. --folds 0 trains without an estimate."),
        (["none.jsonl", "-o", "m.sopool"], "none.jsonl: there are no graphs in it"),
        (["bare.jsonl", "-o", "m.sopool"], "bare.jsonl: no graph has a label"),
    ],
)
def test_what_fit_cannot_do(given, message, call, tmp_path):
    lines = [{"nodes": 2, "edges": [[0, 1]], "label": "rare" if i < 2 else "common"} for i in range(20)]
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "none.jsonl").write_text("")
    (tmp_path / "bare.jsonl").write_text(json.dumps({"nodes": 2, "edges": [[0, 1]]}))
    shown = call("fit", *given, "--device", "cpu", "--workers", "1")
    assert shown.code == 2
    said = " ".join(shown.err.split())
    assert message in said
    assert ("--folds 0 trains" in said) == ("--folds 0 trains" in message)
    assert "frame" not in shown.err  # of PyTorch's own code


@pytest.mark.parametrize("weighted", [True, False])
def test_fit_points_at_class_weights_where_rare_classes_are_missed(weighted, call, tmp_path):
    lines = [{"nodes": 2, "edges": [[0, 1]], "label": "common" if i % 5 else "rare"} for i in range(40)]
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = call("fit", "g.jsonl", "-o", "m.sopool", *QUICK, *(["--class-weight", "balanced"] if weighted else []))
    assert shown.code == 0
    assert ("With --class-weight balanced all classes have the same weight" in shown.err) is not weighted


@pytest.mark.parametrize("weighted", [True, False])
def test_a_model_that_is_no_better_than_the_most_frequent_class_is_told_of(weighted, call, tmp_path):
    """All graphs are alike here, so there is nothing to learn; folds of 7, 6 and 6 graphs."""
    lines = [{"nodes": 2, "edges": [[0, 1]], "label": "ab"[i % 3 == 0]} for i in range(19)]
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ["--folds", "3", *(["--class-weight", "balanced"] if weighted else [])]
    shown = call("fit", "g.jsonl", "-o", "m.sopool", *QUICK, *given)
    assert shown.code == 0
    told = "This model has not been shown to be better than always predicting the most frequent class: its "
    figure = "balanced accuracy is 50.0 % against 50.0" if weighted else "accuracy is 63."
    assert told + figure in " ".join(shown.out.split())


@pytest.mark.parametrize("command", [("fit", "-o", "m.sopool", *QUICK), ("evaluate", "--pool", "sum", *TINY)])
def test_copies_make_the_figures_too_kind(command, call, tmp_path):
    lines = [f"{'C' * size},{size % 2}\n" for size in range(1, 9)]
    (tmp_path / "copies.csv").write_text("smiles,label\n" + 3 * "".join(lines))
    name, *options = command
    shown = call(name, "copies.csv", *options)
    assert shown.code == 0
    assert "24 of 24 graphs look like another one to message passing (ignoring edge labels), in 8 groups" in shown.err


@pytest.mark.filterwarnings("ignore::sopool.estimator.SingleGraphWarning")
@pytest.mark.parametrize(("rare", "folds"), [(1, 0), (2, 2)])
def test_a_class_with_a_single_graph_to_train_on_is_no_reason_to_stop(rare, folds, call, tmp_path):
    """By --folds 0 the class itself, else what a fold leaves of it."""
    lines = [{"nodes": 2, "edges": [[0, 1]], "label": "rare" if i < rare else "ab"[i % 2]} for i in range(20)]
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = call("fit", "g.jsonl", "-o", "m.sopool", *QUICK, "--folds", folds)
    assert shown.code == 0, shown.err
    assert GraphClassifier.load(tmp_path / "m.sopool").classes_.tolist() == ["a", "b", "rare"]


@pytest.mark.parametrize("name", ["N/A", "NA"])
def test_the_classes_that_were_found_are_named_with_their_counts(name, call, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("smiles,label\n" + f"C,no\nCCO,yes\nCC,{name}\nCCC,no\n" * 2)
    shown = call("fit", "m.csv", "-o", "m.sopool", *QUICK, "--folds", "0")
    assert f"m: 8 graphs of 3 classes.\nclasses  {name}: 2 (25.0 %)  no: 4 (50.0 %)  yes: 2 (25.0 %)" in shown.out


def test_as_many_workers_as_the_process_may_use_cores(call, monkeypatch):
    """One here, so nothing is started, however many cores the machine has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr("sopool.estimator.estimate.run_jobs", lambda *_: pytest.fail("workers were started"))
    options = ["--epochs", "1", "--models", "1", "--folds", "2", "--pool", "sum", "--hidden", "4", "--device", "cpu"]
    assert call("fit", "MUTAG", "-o", "m.sopool", *options).code == 0


def test_cores_are_counted_in_one_place():
    folder = Path(sopool.__file__).parent
    counting = [path.name for path in folder.rglob("*.py") if "cpu_count" in path.read_text(encoding="utf-8")]
    assert counting == ["threads.py"]


@pytest.mark.parametrize("wrong", [["--pool", "sum,nosuch"], ["--pool", "sum,sopool-attn", "--gnn", "nosuch"]])
def test_what_cannot_be_trained_is_refused_before_anything_is(wrong, call, monkeypatch):
    """Also where it is not the first of several choices."""
    monkeypatch.setattr(GraphClassifier, "fit", lambda *_: pytest.fail("a model was trained"))
    shown = call("fit", "MUTAG", "-o", "m.sopool", *QUICK, *wrong)
    assert shown.code == 2
    assert "nosuch" in shown.err


@pytest.mark.parametrize("folds", [0, 2])
def test_labels_that_are_hardly_classes_are_refused_whatever_the_folds(folds, call, tmp_path, monkeypatch):
    """Whole numbers, each of which nearly every graph has one of its own: to leave out the estimate is no way out."""
    monkeypatch.setattr(GraphClassifier, "fit", lambda *_: pytest.fail("a model was trained"))
    lines = [json.dumps({"nodes": 2, "edges": [[0, 1]], "label": min(i, 20)}) for i in range(25)]
    (tmp_path / "g.jsonl").write_text("\n".join(lines))
    shown = call("fit", "g.jsonl", "-o", "m.sopool", *QUICK, "--folds", folds)
    assert shown.code == 2
    assert "25 graphs have 21 different labels, which look like names or measurements" in shown.err
    assert "--folds 0" not in shown.err


def test_an_interrupted_fit_continues(call, tmp_path, monkeypatch):
    """Here after all folds, before the final model; what is done is not trained again."""
    given = ["MUTAG", "-o", "m.sopool", *QUICK, "--epochs", "3", "--hidden", "4,5"]
    assert call("fit", *given).code == 0
    whole = (tmp_path / "m.sopool").read_bytes()
    assert not (tmp_path / "m.sopool.work").exists()
    (tmp_path / "m.sopool").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(fit_module.Work, "fit", interrupt)
        shown = call("fit", *given)
    assert "training is kept in m.sopool.work; run the same command again to continue." in shown.err
    assert not (tmp_path / "m.sopool").exists()
    kept = set((tmp_path / "m.sopool.work").iterdir())
    epochs = []
    learn = fitting.Bank.run_epoch
    monkeypatch.setattr(fitting.Bank, "run_epoch", lambda bank: epochs.append(len(bank.configs)) or learn(bank))
    shown = call("fit", *given)
    assert (tmp_path / "m.sopool").read_bytes() == whole
    assert len(epochs) == 3 * (2 * 3 + 1)  # two widths in three inner folds, then the better one on all graphs
    assert not (tmp_path / "m.sopool.work").exists()
    assert len(kept) > 2 * 2 * (2 * 3 + 1)


def interrupt(*_):
    raise KeyboardInterrupt


def test_an_older_model_is_replaced_at_the_end_only_and_never_another_file(call, tmp_path, monkeypatch):
    given = ["MUTAG", "-o", "m.sopool", *QUICK, "--folds", "0"]
    (tmp_path / "m.sopool").touch()  # as mktemp does
    shown = call("fit", *given)
    assert "replaces" not in shown.err
    first = (tmp_path / "m.sopool").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(fit_module.Work, "fit", interrupt)
        shown = call("fit", *given, "--hidden", "3")
    told = "warning: m.sopool holds a model of 188 graphs (MUTAG), which the new one replaces when training ends."
    assert told in " ".join(shown.err.split())
    assert (tmp_path / "m.sopool").read_bytes() == first
    assert call("fit", *given, "--hidden", "3").code == 0
    assert GraphClassifier.load(tmp_path / "m.sopool").hidden == 3
    (tmp_path / "notes.txt").write_text("for later")
    shown = call("fit", *given, "-o", "notes.txt")
    assert shown.code == 2
    assert "notes.txt: not a file written by sopool" in shown.err
    assert "It would be overwritten: write the model to another file, or delete this one." in shown.err
    assert (tmp_path / "notes.txt").read_text() == "for later"


def test_what_is_kept_is_deleted_with_care(call, tmp_path, monkeypatch):
    """Files of others stay, and nothing is left of a fit that cannot succeed."""
    folder = tmp_path / "m.sopool.work"
    folder.mkdir()
    (folder / "mine.txt").write_text("here")
    assert call("fit", "MUTAG", "-o", "m.sopool", *QUICK).code == 0
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    folder.rmdir()
    monkeypatch.setattr(fit_module.Work, "fit", refuse)
    assert call("fit", "MUTAG", "-o", "m.sopool", *QUICK).code == 2
    assert not folder.exists()


def refuse(*_):
    raise DataError("the loss is not finite")
