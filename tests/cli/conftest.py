import os
import signal
import subprocess
import sys
import warnings
from functools import partial
from typing import NamedTuple

import pytest

from sopool import cli
from sopool.data import DegreeEncoder
from sopool.data.formats.jsonl import write_jsonl
from tests.helpers.little_classifier import LABELS, STORE, tiny

TINY = ["--epochs", "2", "--steps", "2", "--folds", "2", "--workers", "1", "--device", "cpu"]
QUICK = ["--epochs", "1", "--models", "2", "--folds", "2", "--workers", "1", "--device", "cpu"]


class Shown(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def clean_environment(tmp_path_factory):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SOPOOL_") and "COLOR" not in k}
    return environment | {"SOPOOL_CACHE": str(tmp_path_factory.mktemp("cache")), "COLUMNS": "160"}


@pytest.fixture
def start(tmp_path, clean_environment):
    """Start the command in a process of its own, as a user does."""

    def begin(*arguments):
        command = [sys.executable, "-m", "sopool", *map(str, arguments)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        restore = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests in the background may have it ignored
        return subprocess.Popen(command, **streams, env=clean_environment, cwd=tmp_path, preexec_fn=restore)

    return begin


@pytest.fixture
def run(start):
    """Run it there to the end."""

    def call(*arguments):
        process = start(*arguments)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return call


@pytest.fixture
def call(tmp_path, clean_environment, monkeypatch, capsys):
    """Run it in this process, in a folder of its own: what it printed and the exit code."""
    monkeypatch.setattr(os, "environ", clean_environment.copy())
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.chdir(tmp_path)

    def called(*arguments):
        monkeypatch.setattr(sys, "argv", ["sopool", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            cli.main()
        return Shown(left.value.code, *capsys.readouterr())

    return called


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A model file, quickly made."""
    path = tmp_path_factory.mktemp("model") / "m.sopool"
    tiny(encoder=DegreeEncoder()).fit(STORE, LABELS).save(path)
    return path


@pytest.fixture
def graphs(tmp_path):
    """The graphs it learned from, in a file."""
    path = tmp_path / "graphs.jsonl"
    write_jsonl(STORE, path)
    return path
