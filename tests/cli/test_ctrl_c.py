"""Ctrl-C at any moment, heard by all processes as from a terminal: one message, exit code 130, nothing left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ENTRY = """
import signal, sys, types
from sopool import __main__

def command():
    {body}

sys.modules["sopool.cli"] = types.SimpleNamespace(main=command)
__main__.main()
"""
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
    shown = subprocess.run([sys.executable, "-c", ENTRY.format(body=body)], capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (code, err)


def interrupt(command, folder, environment, ready, delay=0.0):
    process = subprocess.Popen(
        [sys.executable, "-m", "sopool", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
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
