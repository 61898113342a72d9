import json
import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sopool._runtime.processes import WorkerDiedError
from sopool.cli import app
from sopool.experiments.evaluation import Evaluator
from sopool.training.runs.store import RunStore
from tests.cli.conftest import TINY
from tests.helpers.runs import assert_trained_alike

POOLS = ["--pool", "sopool-bimap,sum-avg", "--hidden", "4,8", "--pool-options", "rank=4"]
BOTH = ["--protocol", "fair,single-epoch"]
PLAIN = {"\n"}


def is_plain(text):
    return all(character in PLAIN or character.isprintable() for character in text)


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory, clean_environment):
    """A small evaluation, through typer's own runner: its folder and what was printed."""
    folder = tmp_path_factory.mktemp("evaluated")
    files = ["--runs", folder / "runs", "-o", folder / "found.json", "--plot", folder / "curves.svg"]
    command = ["evaluate", "MUTAG", *POOLS, *BOTH, *TINY, *files]
    return folder, CliRunner().invoke(app, [str(part) for part in command], env=clean_environment)


def test_the_tables(evaluated):
    folder, shown = evaluated
    assert shown.exit_code == 0, shown.output
    for words in ("single-epoch (less optimistic)", "Gain over sum-avg, in points", "2 x 3", "95 % interval"):
        assert words in shown.stdout
    for words in ("Preset default, epochs 2, seed 0.", "Options: sopool-bimap rank=4; sum-avg none."):
        assert words in " ".join(shown.stdout.split())
    assert "Trained 56 model-epochs" in shown.stdout
    assert f"All 28 runs are stored in {folder / 'runs'}" in shown.stdout
    assert is_plain(shown.stdout)


def test_progress_is_plain_lines_where_there_is_no_terminal(evaluated):
    lines = evaluated[1].stderr.splitlines()
    assert 2 <= len(lines) <= 20
    assert lines[-1].startswith("100 %: 56/56 model-epochs, 28/28 runs, held-out accuracy ")
    assert is_plain(evaluated[1].stderr)


def test_the_json(evaluated):
    first, second = json.loads((evaluated[0] / "found.json").read_text())
    assert (first["pool"], second["pool"]) == ("sopool-bimap", "sum-avg")
    assert (first["pool_options"], second["pool_options"]) == ({"lr_scale": 0.1, "rank": 4}, {})
    for one in (first, second):
        assert (one["preset"], one["epochs"], one["seed"]) == ("default", 2, 0)
        assert (one["dataset"], one["gnn"], one["model_epochs"]) == ("MUTAG", "gin-0", 28)
        assert one["seconds"] > 0
        assert one["device"]
        assert {"sopool", "torch"} <= set(one["versions"])
        assert len(one["fingerprint"]) >= 16
        assert set(one["protocols"]) == {"fair", "single-epoch"}
        for outcome in one["protocols"].values():
            assert len(outcome["folds"]) == 2
            assert outcome["mean"] == pytest.approx(sum(outcome["folds"]) / 2)
            assert all(0 <= fold <= 1 for fold in outcome["folds"])
            assert {"std", "epochs", "setting"} <= set(outcome)
        assert [setting["hidden"] in (4, 8) for setting in one["protocols"]["fair"]["setting"]] == [True, True]


def test_the_curves(evaluated):
    assert "<svg" in (evaluated[0] / "curves.svg").read_text()


def test_a_second_time_nothing_is_trained(evaluated, call):
    folder = evaluated[0]
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*.safetensors")}
    shown = call("evaluate", "MUTAG", *POOLS, *BOTH, *TINY, "--runs", folder / "runs", "--json")
    assert shown.code == 0
    assert json.loads(shown.out) == json.loads((folder / "found.json").read_text())
    assert "Nothing to train: all 28 runs are stored in" in shown.err
    assert "model-epochs" not in shown.err
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_reference_can_be_chosen(evaluated, call):
    shown = call("evaluate", "MUTAG", *POOLS, *TINY, "--runs", evaluated[0] / "runs", "--reference", "sopool-bimap")
    assert "Gain over sopool-bimap" in shown.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--hidden", "16,x"], "--hidden 16,x: 'x' is not a whole number"),
        (["--batch-size", "0"], "batch_size must be at least 1, but 0 was given"),
        (["--lr", "0.1,-1"], "learning rate must be positive, but -1.0 was given"),
        (["--dropout", "1"], "dropout rate must be at least 0 and below 1, but 1.0 was given"),
        (["--pool", "sopool-bimap,sopool-bimapp"], "Did you mean 'sopool-bimap'?"),
        (["--gnn", "gin0"], "Did you mean 'gin-0'?"),
        (["--gnn", "gin"], "Did you mean 'gin-0'?"),
        (["--protocol", "fairr"], "Did you mean 'fair'?"),
        (["--reference", "sum"], "--reference sum is not one of the evaluated poolings: sopool-bimap"),
        (["--device", "tpu"], "there is no device 'tpu'"),
        (["--device", "cuda:99"], "device cuda:99: no such GPU"),
        (["--folds", "100"], "fewer graphs (63) than there are folds (100)"),
        (["--folds", "1"], "--folds"),
        (["--epochs", "0"], "--epochs"),
        (["--preset", "papper"], "--preset"),
        (["-o", "nowhere/found.json"], "the folder nowhere does not exist"),
        (["-o", "."], "this is a folder"),
        (["--plot", "curves.pdf"], ".svg or .png, not '.pdf'"),
        (["--runs", "file"], "this is a file, but a store of runs is a folder"),
    ],
)
def test_mistakes(call, tmp_path, arguments, says):
    (tmp_path / "file").touch()
    shown = call("evaluate", "MUTAG", *arguments)
    assert shown.code == 2
    assert says in " ".join(shown.err.split())
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_model_beyond_all_memory(call):
    shown = call("evaluate", "MUTAG", *TINY, "--pool", "sopool-m-attn", "--pool-options", f"heads={10**12}")
    assert shown.code == 2
    (said,) = shown.err.splitlines()
    assert "there is not enough memory on cpu for a single model" in said
    assert "bytes were asked for at once. Use a smaller batch size, width or rank. Finished" in said


def test_a_protocol_that_cannot_be_judged_leaves_the_others(call):
    """Every run stops in its first epoch: there is no single one that all folds reached."""
    how = ["--pool", "sopool,sum", "--lr", "1e38", *TINY]
    shown = call("evaluate", "MUTAG", *how, "--protocol", "single-epoch,per-fold-max", "--json", "--plot", "c.svg")
    assert shown.code == 0, shown.err
    for pool in ("sopool", "sum"):
        assert f"warning: {pool}: single-epoch: no setting has an epoch that every fold reached" in shown.err
    for one in json.loads(shown.out):
        assert list(one["protocols"]) == ["per-fold-max"]
        assert "Try a lower learning rate" in one["missing"]["single-epoch"]
    tables = call("evaluate", "MUTAG", *how, "--protocol", "single-epoch,per-fold-max").out
    assert "Gain over sum, in points: MUTAG, gin-0, per-fold-max" in tables
    alone = call("evaluate", "MUTAG", *how, "--protocol", "single-epoch")
    assert alone.code == 2
    assert alone.err.endswith("error: there are no results: no pooling could be evaluated.\n")


def test_own_data(call, tmp_path):
    edges = {"ring": [[0, 1], [1, 2], [2, 0]], "path": [[0, 1], [1, 2]]}
    lines = [json.dumps({"nodes": 3, "edges": edges[kind], "label": kind}) for kind in edges]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines * 6))
    shown = call("evaluate", "mine.jsonl", "--pool", "sum", "--protocol", "per-fold-max", *TINY, "-o", "found.json")
    assert shown.code == 0, shown.err
    assert "Gain" not in shown.out
    assert json.loads((tmp_path / "found.json").read_text())[0]["dataset"] == "mine"
    assert len(RunStore(tmp_path / "runs").list()) == 2


LONG = ["evaluate", "MUTAG", "--pool", "sum", *BOTH, "--hidden", "4", "--epochs", "60", "--steps", "1", "--folds", "2"]


@pytest.mark.parametrize(
    ("pools", "options", "divided"),
    [
        ("sum-avg,sopool-bimap,sopool-attn-random", [], "sopool-bimap, sopool-attn-random: divided by the number of"),
        ("sopool-bimap", ["--pool-options", "normalize=none"], None),
        ("sopool-bimap", ["--pool-options", "normalize=size"], None),
        ("sopool-bimap", ["--preset", "paper"], None),
        ("sum-avg", [], None),
    ],
)
def test_what_is_divided_where_nodes_carry_nothing_is_said(call, tmp_path, pools, options, divided):
    lines = ['{"nodes": 3, "edges": [[0, 1]], "label": "a"}', '{"nodes": 2, "edges": [], "label": "b"}']
    (tmp_path / "plain.jsonl").write_text("\n".join(lines * 6))
    shown = call("evaluate", "plain.jsonl", "--pool", pools, "--protocol", "per-fold-max", *options, *TINY)
    assert shown.code == 0, shown.err
    assert ("divided" in shown.err) is (divided is not None)
    assert divided is None or divided in " ".join(shown.err.split())


@pytest.mark.slow
def test_interrupted_and_resumed_it_ends_with_the_same_figures(start, call, tmp_path):
    process = start(*LONG, "--workers", "1")
    process.stderr.readline()  # training has begun
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "Stopping after this epoch" in err
    assert "note: stopped. The finished training is in runs; run the same command again to continue." in err
    assert "Traceback" not in err
    assert any(info.epoch for info in RunStore(tmp_path / "runs").list() if info.kind == "interrupted")

    resumed = call(*LONG, "--workers", "1", "-o", "resumed.json")
    assert "Trained 480 model-epochs" not in resumed.out
    whole = call(*LONG, "--workers", "1", "-o", "whole.json", "--runs", "other")
    assert "Trained 480 model-epochs" in whole.out
    found = [json.loads(Path(name).read_text())[0]["protocols"] for name in ("resumed.json", "whole.json")]
    assert found[0].keys() == found[1].keys()
    assert_trained_alike(tmp_path / "runs", tmp_path / "other")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals(call, monkeypatch, number, code):
    """The first asks to stop; the second does, whatever is going on; then they mean what they meant before."""
    before = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    found = signal.signal(number, before)  # tests in the background may have it ignored

    def polite(self, device, workers, report, stop, train):
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop()

    def stubborn(self, device, workers, report, stop, train):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        raise AssertionError("still here")

    for evaluate, says in ((polite, "The finished training is in runs"), (stubborn, "Work saved earlier is in runs")):
        monkeypatch.setattr(Evaluator, "evaluate", evaluate)
        shown = call("evaluate", "MUTAG")
        assert shown.code == code
        assert says in shown.err
        assert signal.getsignal(number) is before
    signal.signal(number, found)


def test_a_worker_that_died(call, monkeypatch):
    def die(*_, **__):
        raise WorkerDiedError("A worker process was killed.")

    monkeypatch.setattr(Evaluator, "evaluate", die)
    shown = call("evaluate", "MUTAG")
    assert shown.code == 1
    assert shown.err == "error: A worker process was killed.\n"


@pytest.mark.parametrize("protocols", ["fair", "per-fold-max,fair"])
def test_classes_too_small_for_fair_are_refused_before_anything_is_trained(protocols, call, tmp_path):
    """By the name of the class, and with nothing in the store."""
    labels = ["rare"] * 2 + ["common"] * 28
    lines = [json.dumps({"nodes": 2, "edges": [[0, 1]], "label": label}) for label in labels]
    (tmp_path / "g.jsonl").write_text("\n".join(lines))
    shown = call("evaluate", "g.jsonl", *TINY, "--pool", "sum", "--protocol", protocols)
    assert shown.code == 2
    assert "class 'rare' has a single training graph" in shown.err
    assert call("runs", "--json").out == "[]\n"
    assert call("evaluate", "g.jsonl", *TINY, "--pool", "sum", "--protocol", "per-fold-max").code == 0
