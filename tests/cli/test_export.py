"""``sopool export``, and the example that predicts with its file without PyTorch and without this package."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.exported import quiet
from tests.helpers.little_classifier import tiny
from tests.helpers.little_targets import tiny_regressor
from tests.helpers.marks import starts_processes

pytestmark = quiet
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "onnx_molecules.py"
SMILES = ["CCO", "c1ccccc1O", "CC(=O)[O-]", "[Na+].[Cl-]", "C", "N#CC=C", "[H]O[H]", "C1CC1Br", "C[C@H](N)C(=O)O"]
NEW = [*SMILES, "[Xe]", "CCCCCCCCCCCCCCCCN", "[NH3]->[Cu]", "C[C@@H](O)[C@H](N)F", "C1CCCCCCCCC1", "[O-2]"]
"""With atoms, a bond, a ring and a charge that no molecule for training has."""
WITHOUT = """
import runpy, sys
sys.modules["torch"] = sys.modules["sopool"] = None  # an import would fail
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


PAIRS = {"gnn": "gine", "pool": "sopool-pairs", "pool_options": {"distances": 3, "rank": 2}}


@pytest.fixture
def molecules(tmp_path):
    """A model of molecules that takes all inputs, and a file of new ones after one that cannot be read."""
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    path = tmp_path / "molecules.sopool"
    tiny(**PAIRS).fit(SMILES, ["a", "b", "a"] * 3).save(path)
    (tmp_path / "new.smi").write_text("\n".join(["C(C bad", *NEW]) + "\n")
    (tmp_path / "new.csv").write_text("\n".join(["smiles", *NEW]) + "\n")
    return path


@starts_processes
def test_the_example_agrees_with_predict(molecules, call, tmp_path):
    for package in ("onnxruntime", "onnxscript"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    shown = call("export", molecules, "-o", "model.onnx")
    assert shown.code == 0
    said = " ".join(shown.err.split())
    assert "exported 2 networks to model.onnx" in said
    inputs = "ptr, edge_index, node_labels, node_categories, edge_labels, pair_index, pair_distance"
    assert f"the metadata key sopool describes its inputs: {inputs}." in said
    want = [row[:-1] for row in csv.reader(call("predict", molecules, "new.csv").out.splitlines())]  # no in_training
    command = [sys.executable, "-c", WITHOUT, EXAMPLE, tmp_path / "model.onnx", tmp_path / "new.smi"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "warning: skipped line 1: RDKit cannot read the SMILES 'C(C'.\n"
    found = list(csv.reader(done.stdout.splitlines()))
    assert found[0][1:] == want[0][2:]
    assert [row[0] for row in found[1:]] == NEW
    assert [row[1] for row in found[1:]] == [row[2] for row in want[1:]]
    numbers = [np.array([row[first:] for row in rows[1:]], float) for rows, first in ((found, 2), (want, 3))]
    np.testing.assert_allclose(*numbers, rtol=0, atol=1e-5)


@starts_processes
@pytest.mark.parametrize(
    ("make", "y"),
    [
        (tiny_regressor, [[len(one), 0.5 * i] for i, one in enumerate(SMILES)]),
        (tiny, [[int("O" in one), i % 2] for i, one in enumerate(SMILES)]),
    ],
)
def test_the_example_predicts_targets_too(make, y, call, tmp_path):
    for package in ("rdkit", "onnxruntime", "onnxscript"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    model = make(gnn="gine").fit(SMILES, y)
    model.save(tmp_path / "m.sopool")
    (tmp_path / "new.smi").write_text("\n".join(SMILES) + "\n")
    assert call("export", "m.sopool", "-o", "model.onnx").code == 0
    command = [sys.executable, "-c", WITHOUT, EXAMPLE, tmp_path / "model.onnx", tmp_path / "new.smi"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    header, *rows = csv.reader(done.stdout.splitlines())
    kind = "predicted" if make is tiny_regressor else "probability"
    assert header[1:] == [f"{what}_target {t}" for what in (kind, "uncertainty") for t in (1, 2)]
    *_, values, uncertainty = model.predict_with_uncertainty(SMILES)
    found = np.array([row[1:] for row in rows], float)
    np.testing.assert_allclose(found, np.concatenate([values, uncertainty], axis=1), rtol=1e-4, atol=1e-4)


def test_the_model_is_not_written_over(model, call, tmp_path, monkeypatch):
    own = tmp_path / "own.sopool"
    own.write_bytes(model.read_bytes())
    (tmp_path / "link").symlink_to(own)
    for output in ("own.sopool", "link"):
        shown = call("export", own, "-o", output)
        assert shown.code == 2
        assert "which would be overwritten" in " ".join(shown.err.split())
    assert own.read_bytes() == model.read_bytes()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("-", "a file name is needed"),
        ("no/m.onnx", "the folder no does not exist"),
        ("m.pt", "m.pt: the name of the file to write must end in .onnx"),
    ],
)
def test_a_file_is_needed(output, said, model, call):
    shown = call("export", model, "-o", output)
    assert shown.code == 2
    assert said in " ".join(shown.err.split())


def test_a_missing_package_is_named(model, call, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    shown = call("export", model)
    assert shown.code == 2
    assert "needs ONNX, which is not installed: pip install 'sopool[export]'" in " ".join(shown.err.split())
    assert not list(tmp_path.glob("*.onnx"))
