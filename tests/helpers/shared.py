"""Where the benchmark data lie, for tests that read them."""

import json
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not beside the repository")


def published_folds(name, graphs):
    """(train, test) numbers of graphs for each of the folds that the authors of the paper used."""
    tests = json.loads((DATA / "folds" / f"{name}.json").read_text())["test"]
    return [(np.setdiff1d(np.arange(graphs), test), np.array(test)) for test in tests]


MOLECULES = DATA.parent / "molecules"
needs_molecules = pytest.mark.skipif(not MOLECULES.is_dir(), reason="the molecules are not beside the repository")
