import pytest

from sopool.training.runs.store import RunStore


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")
