import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children
from pathlib import Path

import pytest

from sopool._runtime.processes import run_jobs
from tests.helpers.marks import starts_processes

pytestmark = starts_processes


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
    assert len(found) <= 3


@pytest.mark.slow
def test_an_error_comes_through_and_ends_the_others():
    with pytest.raises(ValueError, match="-3 is negative"):
        list(run_jobs(squarer, (0,), [0, -3], 2))


@pytest.mark.slow
def test_an_interruption_here_ends_what_is_at_work_there():
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_jobs(squarer, (0,), [0], 1, interrupted))


def test_a_signal_while_workers_start_waits_for_that(monkeypatch):
    """Also one that another thread was given: the handler runs in this one, which must not leave a start half done."""
    submitted = []
    submit = ProcessPoolExecutor.submit

    def interrupted(self, *arguments):
        os.kill(os.getpid(), signal.SIGINT)
        _handle_as_from_another_thread()
        submitted.append(submit(self, *arguments))
        return submitted[-1]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(run_jobs(squarer, (0,), [0, 0], 2))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(submitted) == 2
    assert not active_children()
    assert time.monotonic() - start < 60


def _handle_as_from_another_thread():
    thread = threading.Thread(target=signal.pthread_sigmask, args=(signal.SIG_UNBLOCK, {signal.SIGINT}))
    thread.start()
    thread.join()


def reader(path, report, stop):
    """Needs a file from the start, as workers that load graphs do."""
    Path(path).read_text()
    return squarer(0, report, stop)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["stopped", "left"])
def test_workers_that_start_are_waited_for(way, tmp_path, capfd):
    file = tmp_path / "needed"
    file.write_text("all")
    found = run_jobs(reader, (str(file),), [1, *[0] * 5], 2, stop=lambda: way == "stopped")
    if way == "left":
        next(found)
        found.close()
    else:
        list(found)
    assert not active_children()
    file.unlink()
    assert "Traceback" not in capfd.readouterr().err
