import pytest

from sopool.experiments.summary import summarise
from tests.helpers.stores import ODD, fill


@pytest.fixture(scope="session")
def summary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return summarise(fill(folder, ("TOY", ODD), (("sum", 0.6), ("sopool-bimap", 0.8), ("covpool", 0.7))))
