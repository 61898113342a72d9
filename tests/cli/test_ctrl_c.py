"""Ctrl-C and other signals at any moment, heard by all processes as from a terminal: one message, nothing left."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import torch

from sopool import GraphClassifier
from sopool.cli.progress import Interruption

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


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_other_signals_have_codes_of_their_own(name):
    shown = enter(f"signal.raise_signal(signal.{name})", partial(signal.signal, getattr(signal, name), signal.SIG_DFL))
    assert (shown.returncode, shown.stderr) == (128 + getattr(signal, name), "note: stopped.\n")
    shown = enter(f"signal.raise_signal(signal.{name})", partial(signal.signal, getattr(signal, name), signal.SIG_IGN))
    assert (shown.returncode, shown.stderr) == (0, "")


def test_a_terminal_that_is_closed():
    """What is still to be said has nowhere to go: that is no error, and changes no exit code."""
    ours, terminal = os.openpty()

    def take_over():
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    command = [sys.executable, "-c", ENTRY.format(body='print("ready", flush=True)\n    signal.pause()')]
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, preexec_fn=take_over
    )
    os.close(terminal)
    assert os.read(ours, 100).startswith(b"ready")
    os.close(ours)
    assert process.wait(timeout=60) == 128 + signal.SIGHUP


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


def begin(command, folder, environment, ready):
    """Start a command in a process group of its own, and wait until it is at what is to be interrupted."""
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
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    return process


def has_imported(pid):
    return "libtorch" in Path(f"/proc/{pid}/maps").read_text()


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def has_workers(pid):
    return len(children(pid)) > 1  # the first keeps track of semaphores


def has_graphs(folder, pid):
    """Whether two workers have the graphs in memory, from a file in a folder, be it without a name."""
    with suppress(FileNotFoundError, ProcessLookupError):
        maps = [Path(f"/proc/{child}/maps").read_text() for child in children(pid)[1:]]
        return len(maps) == 2 and all(str(folder) in one for one in maps)
    return False


def lives(pid):
    """Whether a process is there, and not only because nobody has asked for its exit code."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


FIT = ["fit", "MUTAG", "-o", "m.sopool", "--workers", "2", "--epochs", "100000", "--device", "cpu"]
LINUX = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what a process is at")


@LINUX
@pytest.mark.parametrize(
    ("ready", "delay"),
    [(has_imported, 0), *(pytest.param(has_workers, delay, marks=pytest.mark.slow) for delay in (0, 0.5))],
)
def test_fit(ready, delay, tmp_path, clean_environment):
    process = begin(FIT, tmp_path, clean_environment, ready)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    err = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.endswith("note: stopped.\n")
    assert not list(tmp_path.iterdir())


@LINUX
@pytest.mark.parametrize(
    ("number", "send"),
    [
        pytest.param(signal.SIGTERM, os.kill, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, os.killpg, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, os.killpg, marks=pytest.mark.slow),
        (signal.SIGKILL, os.kill),
    ],
)
def test_a_killed_fit_leaves_nothing(number, send, tmp_path, clean_environment):
    """Neither a copy of the graphs, nor a process, nor a file beside the model, whoever hears the signal."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = clean_environment | {"TMPDIR": str(temporary)}
    process = begin(FIT, tmp_path, environment, partial(has_graphs, temporary))
    others = children(process.pid)
    send(process.pid, number)
    err = process.communicate(timeout=120)[1]
    try:
        check_gone(others)
    finally:
        end(others)
    assert [path for path in tmp_path.rglob("*") if path != temporary] == []
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number
        assert "Traceback" not in err
        assert err.endswith("note: stopped.\n")


def has_checkpoint(folder, pid):
    return any(folder.glob("m.sopool.work/*/checkpoint.safetensors"))


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize(("number", "send"), [(signal.SIGKILL, os.kill), (signal.SIGINT, os.killpg)])
def test_an_interrupted_fit_continues_with_the_same_result(number, send, tmp_path, clean_environment):
    few = ["--workers", "2", "--folds", "2", "--models", "2", "--hidden", "8", "--epochs", "30"]
    command = ["fit", "MUTAG", "-o", "m.sopool", "--device", "cpu", *few]
    for folder in ("whole", "stopped"):
        (tmp_path / folder).mkdir()
    finish(command, tmp_path / "whole", clean_environment)
    stopped = tmp_path / "stopped"
    process = begin(command, stopped, clean_environment, partial(has_checkpoint, stopped))
    others = children(process.pid)
    send(process.pid, number)
    err = process.communicate(timeout=120)[1]
    try:
        check_gone(others)
    finally:
        end(others)
    assert ("run the same command again to continue" in err) == (number == signal.SIGINT)
    assert not (stopped / "m.sopool").exists()
    finish(command, stopped, clean_environment)
    models = [GraphClassifier.load(tmp_path / folder / "m.sopool") for folder in ("whole", "stopped")]
    (whole, config, estimate), (again, *others) = (
        (one.ensemble_.model.state_dict(), one.about_["config"], one.about_["estimate"]) for one in models
    )
    assert others == [config, estimate]
    assert all(torch.equal(again[name], tensor) for name, tensor in whole.items())
    assert models[1].temperature_ == models[0].temperature_
    assert [path.name for path in stopped.iterdir()] == ["m.sopool"]


def finish(command, folder, environment):
    subprocess.run([sys.executable, "-m", "sopool", *command], cwd=folder, env=environment, check=True)


def check_gone(processes):
    """They need a moment to notice that nobody waits for them; by far the most of this time is for busy machines."""
    for _ in range(6000):
        if not any(map(lives, processes)):
            return
        time.sleep(0.01)
    raise AssertionError(f"still there: {[one for one in processes if lives(one)]}")


def end(processes):
    for one in processes:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
