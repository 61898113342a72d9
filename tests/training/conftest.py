import pytest

from sopool.training.run_store import RunStore


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")
