import json
import subprocess
import sys
from io import BytesIO, TextIOWrapper

import pytest


def test_inspect_a_boxed_set(run):
    shown = run("inspect", "MUTAG")
    assert shown.returncode == 0, shown.stderr
    for words in ("188", "1: 125 (66.5 %)", "-1: 63 (33.5 %)", "per graph 10 to 28", "color refinement", "█"):
        assert words in shown.stdout
    assert shown.stderr == ""


def test_inspect_as_json(call):
    found = json.loads(call("inspect", "MUTAG", "--json").out)
    assert found["graphs"] == 188
    assert found["nodes_max"] == 28
    assert found["duplicates"]["rounds"] == 4
    assert found["cautions"] == []


def test_cautions(call, tmp_path):
    (tmp_path / "one.jsonl").write_text('{"nodes": 1, "edges": [], "label": "x"}\n' * 3)
    shown = call("inspect", "one.jsonl")
    assert "Caution: All graphs are of one class" in shown.out


def test_of_many_classes_the_most_frequent_are_told(call, tmp_path):
    line = '{"nodes": 1, "edges": [], "label": "class %d"}\n'
    (tmp_path / "many.jsonl").write_text("".join(line % i for i in [*range(30), 29, 29, 28]))
    shown = " ".join(call("inspect", "many.jsonl").out.split())
    assert "classes class 29: 3 (9.1 %) class 28: 2 (6.1 %)" in shown
    assert shown.count("(3.0 %)") == 18
    assert "and 10 more" in shown


def test_datasets(call):
    shown = call("datasets")
    assert shown.code == 0, shown.err
    for words in ("MUTAG", "SOLUBILITY", "REDDIT-MULTI-5K", "(5,000)", "package"):
        assert words in shown.out
    listed = json.loads(call("datasets", "--json").out)
    assert {one["name"] for one in listed} >= {"MUTAG", "NCI1", "SOLUBILITY"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["inspect", "missing.zip"], "missing.zip: there is no such file or folder"),
        (["inspect", "[/odd].zip"], "[/odd].zip: there is no such file or folder"),
        (["inspect", "IMDBBINARY.txt"], "no such file or folder. Did you mean 'IMDB-BINARY'?"),
        (["inspect", "-"], "- is standard input, which only sopool predict and sopool explain can read"),
        (["inspect", "bad.jsonl"], "bad.jsonl, line 1"),
        (["inspect"], "Missing argument"),
        (["inspekt"], "No such command"),
        (["inspect", "MUTAG", "--rounds", "-1"], "--rounds"),
    ],
)
def test_mistakes_get_a_message_and_no_traceback(call, tmp_path, arguments, says):
    (tmp_path / "bad.jsonl").write_text("{")
    shown = call(*arguments)
    assert shown.code == 2
    assert says in " ".join(shown.err.split())
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_letters_that_the_standard_output_cannot_hold(call, tmp_path, monkeypatch):
    (tmp_path / "g.jsonl").write_text('{"nodes": 1, "edges": [], "label": "\\u65e5"}\n')
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(BytesIO(), "cp1252"))
    shown = call("inspect", "g.jsonl")
    assert shown.code == 2
    assert r"'\u65e5' cannot be printed in charmap. Set PYTHONIOENCODING=utf-8" in shown.err


def test_a_mistake_in_a_process_of_its_own(run):
    shown = run("inspect", "missing.zip")
    assert shown.returncode == 2
    assert shown.stderr.startswith("error: missing.zip")


def test_version_and_help(call):
    assert call("--version").out.startswith("sopool ")
    shown = call("--help").out
    for command in ("inspect", "datasets", "evaluate", "runs", "demo"):
        assert command in shown


def test_starting_waits_for_nothing_heavy():
    heavy = {"torch", "torch_geometric", "sklearn", "matplotlib", "numpy"}
    code = f"import sys, sopool.cli; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
