"""Whatever names in data say, they reach a terminal as text: they neither drive it nor count as markup."""

import ast
import io
import json
import os
import sys
import warnings
from pathlib import Path

import pytest

import sopool
from sopool import cli
from sopool.cli import output
from sopool.cli.typer_app import _safe_mistakes
from sopool.data import save_graphs
from tests._runtime.test_visible import drives_a_terminal
from tests.cli.conftest import QUICK, TINY, Shown
from tests.helpers.little_targets import FLAGS, NUMBERS, with_targets
from tests.helpers.stores import fill

HOSTILE = "Ω漢\x1b]0;owned\x07\x1b[2J[red]r[link=u]\x08\r\x7f\x9b5m\u202e\u2066\u2028:boom:"
SEEN = r"Ω漢\x1b]0;owned\x07\x1b[2J[red]r[link=u]\x08\r\u007f\u009b5m\u202e\u2066\u2028:boom:"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, module_environment):
    """A folder of files with hostile names, whose graphs, model, runs and figures have hostile names in them, too."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = [_graph(number) for number in range(40)]
    (folder / f"{HOSTILE}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / f"bad{HOSTILE}.jsonl").write_text(f'{{"{"k" * 5}{json.dumps(HOSTILE)[1:-1]}": 1}}\n')
    (folder / f"{HOSTILE}.csv").write_text(
        f"smiles,label{HOSTILE.replace(chr(13), '')}\nC,a\nCC,b\n", encoding="utf-8", newline=""
    )
    fill(folder / f"runs{HOSTILE}", names=(HOSTILE,), looks=("test",), hidden=(8,), folds=2, epochs=2)
    code = _run("fit", folder / f"{HOSTILE}.jsonl", "-o", folder / f"{HOSTILE}.sopool", *QUICK, "--pool", "sum")
    assert code == 0
    for name, values in (("numbers", NUMBERS), ("labels", FLAGS)):
        save_graphs(with_targets(values, (HOSTILE, f"2{HOSTILE}")), folder / f"{name}.graphs")
        given = ["-o", folder / f"{name}.sopool", *QUICK, "--folds", "0", "--pool", "sum"]
        assert _run("fit", folder / f"{name}.graphs", *given) == 0
    return folder


def _graph(number):
    edges = [[i, i + 1] for i in range(1 + number % 3)]
    names = {"label": f"{'ab'[number % 2]}{HOSTILE}", "id": f"{number}{HOSTILE}"}
    return names | {"nodes": len(edges) + 1, "edges": edges, "node_labels": [HOSTILE, *("n" for _ in edges)]}


@pytest.fixture(scope="module")
def module_environment(clean_environment):
    """A dumb terminal, so that Rich has no control codes of its own to send; it reads the environment of the start."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - clean_environment.keys():
            patch.delenv(name)
        for name, value in (clean_environment | {"TERM": "dumb"}).items():
            patch.setenv(name, value)
        yield


def _run(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sopool", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
    return left.value.code


@pytest.fixture
def on_terminal(hostile, tmp_path, monkeypatch):
    """Run a command in a folder of its own, with terminals for streams."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # put back afterwards: the command sets its own
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        streams = Terminal(), Terminal()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            code = _run(*arguments)
        return Shown(code, *(stream.getvalue() for stream in streams))

    return run


DATA = f"{HOSTILE}.jsonl"
CSV = f"{HOSTILE}.csv"
MODEL = f"{HOSTILE}.sopool"
RUNS = f"runs{HOSTILE}"
COMMANDS = {
    "inspect": (0, ["inspect", DATA]),
    "inspect --json": (0, ["inspect", DATA, "--json"]),
    "inspect: a bad line": (2, ["inspect", f"bad{DATA}"]),
    "inspect: no such file": (2, ["inspect", f"none{HOSTILE}\udcff.jsonl"]),
    "inspect: no such column": (2, ["inspect", CSV, "--label-column", f"no{HOSTILE}"]),
    "fit": (0, ["fit", DATA, "-o", f"new{MODEL}", *QUICK, "--pool", "sum"]),
    "fit: no such pooling": (2, ["fit", DATA, "-o", f"new{MODEL}", "--pool", HOSTILE]),
    "predict": (0, ["predict", MODEL, DATA, "--device", "cpu"]),
    "predict --format jsonl": (0, ["predict", MODEL, DATA, "--format", "jsonl", "--device", "cpu"]),
    "predict: only bad rows": (2, ["predict", MODEL, f"bad{DATA}", "--device", "cpu"]),
    "show": (0, ["show", MODEL, "--card", f"{HOSTILE}.md"]),
    "show --json": (0, ["show", "numbers.sopool", "--json"]),
    "show labels": (0, ["show", "labels.sopool"]),
    "explain": (0, ["explain", MODEL, DATA, "-g", "1", "-o", f"{HOSTILE}.json", "--device", "cpu"]),
    "explain on the terminal": (0, ["explain", MODEL, DATA, "-g", "1", "-o", "-", "--format", "json"]),
    "explain: no such graph": (2, ["explain", MODEL, DATA, "-g", f"no{HOSTILE}"]),
    "fit numbers": (0, ["fit", "numbers.graphs", "-o", "m.sopool", *QUICK, "--pool", "sum"]),
    "fit labels": (0, ["fit", "labels.graphs", "-o", "m.sopool", *QUICK, "--pool", "sum"]),
    "predict numbers": (0, ["predict", "numbers.sopool", "numbers.graphs", "--device", "cpu"]),
    "predict labels": (0, ["predict", "labels.sopool", "labels.graphs", "-o", "out.csv", "--device", "cpu"]),
    "predict: other columns": (2, ["predict", "labels.sopool", "labels.graphs", "--target-columns", HOSTILE]),
    "explain a number": (0, ["explain", "numbers.sopool", "numbers.graphs", "-g", "1", "-o", "a.json"]),
    "explain: no such target": (2, ["explain", "numbers.sopool", "numbers.graphs", "-g", "1", "--target", HOSTILE[1:]]),
    "evaluate": (0, ["evaluate", DATA, *TINY, "--pool", "sum,mean", "--protocol", "per-fold-max", "--runs", HOSTILE]),
    "controls": (0, ["controls", DATA, "--controls", "size", "--folds", "2", "--runs", HOSTILE]),
    "runs": (0, ["runs", "--runs", RUNS]),
    "runs --all": (0, ["runs", "list", "--all", "--runs", RUNS]),
    "runs: no such run": (2, ["runs", "remove", HOSTILE, "--runs", RUNS]),
    "runs clean": (0, ["runs", "clean", "--runs", RUNS]),
    "report": (0, ["report", RUNS, "-o", f"{HOSTILE}.md"]),
    "report md": (0, ["report", RUNS, "-o", "-", "--format", "md"]),
    "report tex": (0, ["report", RUNS, "-o", "-", "--format", "tex"]),
    "report csv": (0, ["report", RUNS, "-o", "-", "--format", "csv"]),
    "reproduce": (2, ["reproduce", "table2", "--datasets", HOSTILE]),
    "no such command": (2, [HOSTILE]),
    "no such option": (2, ["inspect", f"--{HOSTILE}"]),
    "one argument too many": (2, ["inspect", "MUTAG", HOSTILE]),
    "no such choice": (2, ["evaluate", "MUTAG", "--preset", HOSTILE]),
}
ESCAPED = ("inspect --json", "show --json", "explain on the terminal")
"""JSON in ASCII."""


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_lets_names_drive_the_terminal(name, hostile, on_terminal):
    code, arguments = COMMANDS[name]
    places = [str(hostile / one) if (hostile / one).exists() else one for one in arguments]
    shown = on_terminal(*places)
    text = (shown.out + shown.err).replace(output.CLEAR_LINE, "")
    assert shown.code == code, text
    assert not {character for character in text if drives_a_terminal(character)} - {"\n"}
    assert any(written in text for written in ("x1b", "1b]", "u202e"))
    assert "Ω漢" in text or name in ESCAPED


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_data_in_a_pipe_is_exact(form, hostile, call):
    shown = call("predict", hostile / MODEL, hostile / DATA, "--format", form, "--device", "cpu")
    assert shown.code == 0
    assert (HOSTILE if form == "csv" else json.dumps(HOSTILE, ensure_ascii=False)[1:-1]) in shown.out
    assert not any(drives_a_terminal(character) for character in shown.err.replace("\n", ""))


def test_names_are_shown_whole(hostile, call):
    shown = call("inspect", hostile / DATA)
    assert shown.out.startswith(SEEN)
    assert f"a{SEEN}: 20 (50.0 %)" in shown.out


def test_a_table_leaves_room_for_what_is_written_out():
    from rich.table import Table

    stream = io.StringIO()
    table = Table("name", "figure")
    table.add_row("\x1b[2J\x07[b]", "1")
    output.SafeConsole(file=stream, width=80).print(table)
    assert len(set(map(len, stream.getvalue().splitlines()))) == 1
    assert r"\x1b[2J\x07[b]" in stream.getvalue()


def test_a_name_cannot_forge_a_line_of_its_own(call):
    shown = call("inspect", "none\nnote: all is well.jsonl")
    assert shown.code == 2
    assert shown.err.count("\n") == 1


def test_mistakes_that_typer_words_by_itself_are_safe():
    class MistakeError(Exception):
        ctx, exit_code = None, 7

        def format_message(self):
            return f"no {HOSTILE}"

    with pytest.raises(Exception, match="no Ω") as caught, _safe_mistakes():
        raise MistakeError
    assert caught.value.format_message() == f"no {SEEN}"
    assert caught.value.exit_code == 7


def test_an_error_that_nobody_expected_is_safe(monkeypatch):
    from sopool.__main__ import _show_fault

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    _show_fault(RuntimeError, RuntimeError(HOSTILE), None)
    assert sys.stderr.getvalue() == f"RuntimeError: {SEEN}\n"


def test_a_worker_warns_safely():
    from sopool._runtime.processes import _safe_warning

    assert _safe_warning("{}: {}".format, "file", HOSTILE) == f"file: {SEEN}"


SOURCES = [path for room in ("cli", "report") for path in sorted((Path(sopool.__file__).parent / room).rglob("*.py"))]


def test_only_the_console_prints():
    """What is printed elsewhere would have to think of hostile text by itself."""
    found = {f"{path.name}: {call}" for path in SOURCES if path != Path(output.__file__) for call in _prints(path)}
    assert not found


def _prints(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        printing = called in ("print", "Console", "rich.print") or called.endswith((".echo", ".secho", ".Console"))
        if printing or called.startswith(("sys.stdout.write", "sys.stderr.write")):
            yield called
