"""What is planned is what is then trained."""

import pytest

from sopool.experiments.reproduce.plan import plan_reproduction
from sopool.training.runs.store import RunStore
from tests.helpers.little_table import little_table


def planned(folder, **changes):
    (line,) = plan_reproduction(little_table(folder, **changes), workers=1)
    return line


@pytest.mark.parametrize("hidden", [[4], [4, 8]])
def test_before_halfway_and_after(tmp_path, hidden):
    """With one setting all runs are known; with two the final ones wait for the choice between them."""
    grid = {"hidden": hidden, "controls": False}
    before = planned(tmp_path, **grid)
    first = len(hidden) * 2 * 2 * (1 + (len(hidden) > 1))  # folds, pools, looks
    assert (before.dataset, before.network, before.pools) == ("MUTAG", "gin-0", ("sum-avg", "sopool-bimap"))
    assert (before.runs, before.found) == (first + 2 * 2 * 3, 0)
    assert before.left == before.model_epochs == before.runs * 2
    assert before.seconds > 0
    assert not RunStore(tmp_path).list()

    little_table(tmp_path, protocols=["per-fold-max"], **grid).run()
    halfway = planned(tmp_path, **grid)
    tested = len(hidden) * 2 * 2
    assert (halfway.found, halfway.left) == (tested, before.left - 2 * tested)

    little_table(tmp_path, **grid).run()
    after = planned(tmp_path, **grid)
    assert (after.found, after.left, after.seconds) == (after.runs, 0, 0)
    assert after.to_json()["pools"] == ("sum-avg", "sopool-bimap")


def test_an_interrupted_run_needs_only_the_rest(tmp_path):
    seen = []
    one = {"protocols": ["per-fold-max"], "pools": ["sum-avg"], "controls": False, "epochs": 5}
    assert little_table(tmp_path, **one).run(report=seen.append, stop=lambda: len(seen) > 1) is None
    done = sum(progress.models * progress.epochs for progress in seen)
    assert 0 < done < 10
    assert planned(tmp_path, **one).left == 10 - done
