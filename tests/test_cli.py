import json
import os
import subprocess
import sys

import pytest


@pytest.fixture
def run(tmp_path):
    """Run the command in a process of its own, as a user does."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SOPOOL_")}
    environment |= {"SOPOOL_CACHE": str(tmp_path / "cache"), "COLUMNS": "100"}

    def call(*arguments):
        command = [sys.executable, "-m", "sopool.cli", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)

    return call


def test_inspect_a_boxed_set(run):
    shown = run("inspect", "MUTAG")
    assert shown.returncode == 0, shown.stderr
    for words in ("188", "1: 125 (66.5%)", "-1: 63 (33.5%)", "per graph 10 to 28", "colour refinement", "█"):
        assert words in shown.stdout
    assert shown.stderr == ""


def test_inspect_as_json(run):
    found = json.loads(run("inspect", "MUTAG", "--json").stdout)
    assert found["graphs"] == 188
    assert found["nodes_max"] == 28
    assert found["duplicates"]["rounds"] == 4
    assert found["cautions"] == []


def test_cautions(run, tmp_path):
    (tmp_path / "one.jsonl").write_text('{"nodes": 1, "edges": [], "label": "x"}\n' * 3)
    shown = run("inspect", "one.jsonl")
    assert "Caution: All graphs are of one class" in shown.stdout


def test_datasets(run):
    shown = run("datasets")
    assert shown.returncode == 0, shown.stderr
    for words in ("MUTAG", "SOLUBILITY", "REDDIT-MULTI-5K", "(5,000)", "package"):
        assert words in shown.stdout
    listed = json.loads(run("datasets", "--json").stdout)
    assert {one["name"] for one in listed} >= {"MUTAG", "NCI1", "SOLUBILITY"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["inspect", "missing.zip"], "missing.zip: there is no such file or folder"),
        (["inspect", "bad.jsonl"], "bad.jsonl, line 1"),
        (["inspect"], "Missing argument"),
        (["inspekt"], "No such command"),
        (["inspect", "MUTAG", "--rounds", "-1"], "--rounds"),
    ],
)
def test_mistakes_get_a_message_and_no_traceback(run, tmp_path, arguments, says):
    (tmp_path / "bad.jsonl").write_text("{")
    shown = run(*arguments)
    assert shown.returncode == 2
    assert says in " ".join(shown.stderr.split())
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""


def test_version_and_help(run):
    assert run("--version").stdout.startswith("sopool ")
    assert "inspect" in run("--help").stdout
