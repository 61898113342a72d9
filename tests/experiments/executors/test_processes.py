import os
import time
from pathlib import Path

import pytest

from sopool.experiments.executors.processes import run_jobs


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """Other processes, which take the path from here, must find this file."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3])


def squarer(plus, report, stop):
    """Squares numbers; a negative one is an error, 0 waits until it is told to stop."""

    def work(number):
        if number < 0:
            raise ValueError(f"{number} is negative")
        while number == 0 and not stop():
            report((os.getpid(), number))
            time.sleep(0.01)
        report((os.getpid(), number))
        return number**2 + plus

    return work


def test_jobs_are_done_elsewhere_and_told():
    told = []
    assert sorted(run_jobs(squarer, (1,), range(1, 6), 2, told.append)) == [2, 5, 10, 17, 26]
    assert sorted(number for _, number in told) == [1, 2, 3, 4, 5]
    assert os.getpid() not in {worker for worker, _ in told}


def test_stop_ends_the_job_in_hand_and_leaves_out_the_rest():
    told = []
    # Some jobs beyond the one in hand are on their way to the worker already.
    found = list(run_jobs(squarer, (0,), [0, *range(1, 100)], 1, told.append, lambda: bool(told)))
    assert 0 in found
    assert len(found) < 10


def test_an_error_comes_through_and_ends_the_others():
    with pytest.raises(ValueError, match="-3 is negative"):
        list(run_jobs(squarer, (0,), [0, -3], 2))


def test_an_interruption_here_ends_what_is_at_work_there():
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_jobs(squarer, (0,), [0], 1, interrupted))
