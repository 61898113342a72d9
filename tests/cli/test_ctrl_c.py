"""Ctrl-C at any moment, heard by all processes as from a terminal: one message, exit code 130, nothing left."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from sopool.cli.interruption import Interruption

ENTRY = """
import signal, sys, types
from sopool import __main__

def command():
    {body}

sys.modules["sopool.cli"] = types.SimpleNamespace(main=command)
__main__.main()
"""
HEARD = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
"""In a process about to start: tests in the background may have it ignored."""
INTERRUPT = "signal.raise_signal(signal.SIGINT)"


@pytest.mark.parametrize(
    ("body", "code", "err"),
    [
        (f"exec({INTERRUPT!r})", 130, "note: stopped.\n"),  # code made of text: Python would die of the signal
        (f"try: {INTERRUPT}\n    except KeyboardInterrupt: sys.exit(130)", 130, "note: stopped.\n"),
        (f"try: {INTERRUPT}\n    except KeyboardInterrupt: raise ImportError", 130, "note: stopped.\n"),
        (
            f"try: {INTERRUPT}\n    except KeyboardInterrupt: pass\n    sys.exit(7)",
            7,
            "",
        ),  # it said what there is to say
        (f"import atexit; atexit.register(lambda: {INTERRUPT})\n    {INTERRUPT}", 130, "note: stopped.\n"),
        ("sys.exit(3)", 3, ""),
    ],
)
def test_whatever_becomes_of_the_exception(body, code, err):
    shown = enter(body, HEARD)
    assert (shown.returncode, shown.stderr) == (code, err)


def test_where_it_is_ignored_it_stays_so():
    """As a shell has it for commands in the background."""
    shown = enter(INTERRUPT, partial(signal.signal, signal.SIGINT, signal.SIG_IGN))
    assert (shown.returncode, shown.stderr) == (0, "")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption() as stop:
            signal.raise_signal(signal.SIGINT)
        assert not stop()
    finally:
        signal.signal(signal.SIGINT, before)


def enter(body, before):
    command = [sys.executable, "-c", ENTRY.format(body=body)]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=before)


def interrupt(command, folder, environment, ready, delay=0.0):
    process = subprocess.Popen(
        [sys.executable, "-m", "sopool", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
        start_new_session=True,
        preexec_fn=HEARD,
    )
    while not ready(process.pid):
        time.sleep(0.001)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    return process, process.communicate(timeout=120)[1]


def has_imported(pid):
    return "libtorch" in Path(f"/proc/{pid}/maps").read_text()


def has_workers(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return len(children) > 1  # the first keeps track of semaphores


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what a process is at")
@pytest.mark.parametrize(("ready", "delay"), [(has_imported, 0), (has_workers, 0), (has_workers, 0.5)])
def test_fit(ready, delay, tmp_path, clean_environment):
    command = ["fit", "MUTAG", "-o", "m.sopool", "--workers", "2", "--epochs", "1000", "--device", "cpu"]
    process, err = interrupt(command, tmp_path, clean_environment, ready, delay)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.endswith("note: stopped.\n")
    assert not list(tmp_path.iterdir())
