"""Run each script of examples/ in an empty folder."""

import os
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NEEDS = {"molecules_from_csv": "rdkit", "embeddings": "matplotlib"}
SAYS = {
    "custom_gnn": "8 models with ",
    "embeddings": "The plot is in embeddings.svg",
    "hierarchy": "91 -> 32 -> 8",
    "molecules_from_csv": "of 243 new molecules",
    "social_network": "generated friend circles: 200 graphs",
    "swap_readout": "BilinearSecondOrderAggregation",
}
WRITES = {"embeddings": ["embeddings.svg"], "molecules_from_csv": ["molecules.csv", "new.csv"]}
SLOW = {"molecules_from_csv"}
ELSEWHERE = {"onnx_molecules"}
"""Scripts that need a file: tests/cli/test_export.py runs this one."""


def test_each_script_is_listed():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS) | ELSEWHERE


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SAYS]
)
@pytest.mark.filterwarnings("ignore::sopool.estimator.UnseenWarning")
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip(NEEDS.get(name, "torch"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(os.environ, "SOPOOL_DATA", raising=False)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == WRITES.get(name, [])
