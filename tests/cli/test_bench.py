import json
import signal
import time

import pytest
import torch

from sopool.experiments import bench
from sopool.experiments.bench import Effort, timing
from tests.report.bench_results import some_results


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(bench, "QUICK", Effort(share=0.01, repeats=1, epochs=1, steps=2))
    monkeypatch.setitem(timing.COPIED, "cpu", 1 << 12)
    monkeypatch.setitem(timing.PRODUCT, "cpu", 16)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(some_results().to_json()))
    return path


@pytest.mark.slow
def test_measured_here_drawn_from_the_file(tiny, call, tmp_path):
    shown = call("bench", "--device", "cpu", "--quick", "--models", "2", "-o", "figures.json", "--profile")
    assert shown.code == 0, shown.err
    for words in (
        "Readout bimap",
        "Readout attn",
        "by models: MUTAG",
        "padded",
        "aten::",
        f"torch {torch.__version__}",
    ):
        assert words in " ".join(shown.out.split())  # a long line is wrapped where it may be
    assert "bank: sopool, MUTAG" in shown.err
    saved = json.loads((tmp_path / "figures.json").read_text())
    assert saved["machine"]["torch"] == torch.__version__
    assert {"milliseconds", "train_seconds", "memory_bytes"} <= set(saved["units"])
    assert {row["way"] for row in saved["bank"]} == {"sopool", "PyG", "padded"}

    again = call("bench", "--from", "figures.json", "--plot", "pictures")
    assert again.code == 0, again.err
    assert again.out.startswith(shown.out)
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"readouts.svg", "bank-models.svg"}


@pytest.mark.slow
def test_figures_to_the_standard_output(tiny, call):
    shown = call("bench", "--device", "cpu", "--quick", "--part", "readouts", "--json")
    assert shown.code == 0, shown.err
    assert len(json.loads(shown.out)["readouts"]) == 24
    assert "Readout attn" not in shown.out + shown.err
    assert f"torch {torch.__version__}" in shown.err


def interrupted(error):
    def run(request, report):
        yield some_results()
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "stopped. What was measured until then is shown"),
        (torch.OutOfMemoryError("CUDA out of memory.\nMore."), 1, "fewer --models. CUDA out of memory."),
    ],
)
def test_what_was_measured_is_kept(error, code, said, call, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "run", interrupted(error))
    shown = call("bench", "-o", "figures.json", "--plot", "pictures")
    assert shown.code == code
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert "by width: MUTAG" in shown.out
    assert bench.Results.from_json(json.loads((tmp_path / "figures.json").read_text())) == some_results()
    assert not (tmp_path / "pictures").exists()


@pytest.mark.slow
def test_ctrl_c(start):
    process = start("bench", "--device", "cpu", "--part", "readouts")
    assert "bandwidth" in process.stderr.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--part", "readout"], "there is no part 'readout'. Did you mean 'readouts'?"),
        (["--scale", "depth"], "there is no scale 'depth'"),
        (["--models", "1,x"], "'x' is not a whole number"),
        (["--models", "0"], "a bank of 0 models"),
        (["--part", "readouts", "--profile"], "not among the parts"),
        (["--device", "tpu"], "there is no device 'tpu'"),
        (["--data", "NOWHERE.zip"], "NOWHERE.zip"),
        (["-o", "nowhere/figures.json"], "there is no folder nowhere"),
        (["--plot", "nowhere/pictures"], "there is no folder nowhere"),
        (["--plot", "figures.json"], "a folder for the pictures is needed"),
        (["--from", "other.json"], "cannot be read: No such file"),
        (["--from", "empty.json"], "not JSON: "),
        (["--from", "strange.json"], "not what sopool bench --output writes"),
        (["--from", "figures.json", "--models", "1", "-o", "x.json"], "not with --models, --output"),
    ],
)
def test_wrong_usage(arguments, message, call, tmp_path, saved):
    (tmp_path / "empty.json").touch()
    (tmp_path / "strange.json").write_text("{}")
    shown = call("bench", *arguments)
    assert shown.code == 2
    assert message in " ".join(shown.err.split())
