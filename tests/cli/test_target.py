"""Files that commands write: never one that is read, never half of one, never over what is no file."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest
from typer.main import get_command

from sopool.cli import app
from sopool.data.formats.jsonl import write_jsonl
from tests.cli.conftest import TINY
from tests.helpers.little_classifier import STORE
from tests.helpers.stores import fill

COMMANDS = [
    ["predict", "MODEL", "GRAPHS", "--format", "csv"],
    ["explain", "MODEL", "GRAPHS", "-g", "1"],
    ["fit", "GRAPHS"],
    ["evaluate", "GRAPHS"],
]
QUICK = ["--epochs", "1", "--models", "2", "--folds", "0", "--device", "cpu"]


def spellings(path):
    """The same file by other names."""
    folder = path.parent
    (folder / "link").symlink_to(path.name)
    (folder / "hard").hardlink_to(path)
    (folder / "around").symlink_to(folder)
    return [path, path.name, f"./{path.name}", folder / "link", "hard", f"around/../{folder.name}/around/{path.name}"]


@pytest.fixture
def nothing_is_read(monkeypatch):
    """A refusal comes before any work."""

    def fail(*_, **__):
        raise AssertionError("too late")

    names = [
        "sopool.data.sources.find_graph.find_graph",
        "sopool.data.sources.stream.stream_graphs",
        "sopool.data.sources.catalogue.load",
    ]
    names += ["sopool.experiments.stored.load", "sopool.estimator.GraphClassifier.load"]
    for name in names:  # all before the first is replaced: a module that is imported later would keep what it finds
        resolve_name(name)
    for name in names:
        monkeypatch.setattr(name, fail)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_is_read_is_not_written_over(command, call, model, graphs, tmp_path, nothing_is_read):
    own = tmp_path / "own.sopool"
    own.write_bytes(model.read_bytes())
    before = {path: path.read_bytes() for path in (own, graphs)}
    given = [{"MODEL": own, "GRAPHS": graphs}.get(word, word) for word in command]
    for output in [*spellings(graphs), *(["own.sopool"] if own in given else [])]:
        shown = call(*given, "-o", output)
        assert shown.code == 2, output
        assert "which would be overwritten" in " ".join(shown.err.split())
        assert {path: path.read_bytes() for path in before} == before


def test_of_a_folder_and_of_a_named_set_neither(call, tmp_path, nothing_is_read):
    (tmp_path / "DS").mkdir()
    (tmp_path / "DS" / "DS_A.txt").write_text("1, 2")
    for source in (["DS/"], ["DS"], [tmp_path / "DS"]):
        shown = call("fit", *source, "-o", "DS/DS_A.txt")
        assert "the same file as" in shown.err
    shown = call("evaluate", "TOY", "--root", "sets", "--plot", "DS/DS_A.txt")
    assert "file name of a figure" in shown.err
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "TOY.zip").write_text("")
    shown = call("fit", "TOY", "--root", "sets", "-o", "sets/TOY.zip")
    assert "the same file as sets/TOY.zip" in shown.err


@pytest.mark.parametrize(
    "command",
    [
        ["report", "runs", "-o"],
        ["evaluate", "MUTAG", "-o"],
        ["reproduce", "table2", "--datasets", "MUTAG", "-o"],
        ["demo", "--runs", "runs", "--plot"],
    ],
    ids=lambda command: command[0],
)
def test_a_store_of_runs_is_not_written_over(command, call, tmp_path, nothing_is_read):
    store = fill(tmp_path / "runs", looks=("test",), hidden=(8,))
    for name in ("controls/a.json", "reproduce-table2-0a1b2c3d.json"):
        (store.folder / name).parent.mkdir(exist_ok=True)
        (store.folder / name).write_text("{}")
    before = {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file()}
    for path in (*before, tmp_path / "runs" / ".." / "runs" / store.list()[0].key / "config.json"):
        if path.name != ".lock":
            shown = call(*command, path)
            assert (shown.code, "would be overwritten" in " ".join(shown.err.split())) == (2, True), path
    assert {path: path.read_bytes() for path in before} == before


def test_a_report_may_lie_beside_the_runs(call, tmp_path):
    fill(tmp_path / "runs", looks=("test",), hidden=(8,))
    for _ in range(2):
        assert call("report", "runs", "-o", "runs/report.md").code == 0


def test_graphs_of_a_table_are_not_written_over(call, tmp_path, nothing_is_read):
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "PTC.zip").write_text("")
    shown = call("reproduce", "table2", "--datasets", "PTC", "--root", "sets", "-o", "sets/PTC.zip")
    assert "the same file as sets/PTC.zip" in shown.err


@pytest.mark.parametrize(
    ("rest", "known"),
    [
        ("- -o graphs.jsonl < graphs.jsonl", "standard input"),
        pytest.param("graphs.jsonl >> graphs.jsonl", "graphs.jsonl", marks=pytest.mark.slow),
    ],
)
def test_what_the_shell_opened_counts(rest, known, model, graphs, tmp_path, clean_environment):
    before = graphs.read_bytes()
    command = f"{sys.executable} -m sopool predict {model} {rest}"
    shown = subprocess.run(command, shell=True, cwd=tmp_path, env=clean_environment, capture_output=True, text=True)
    assert shown.returncode == 2
    assert f"the same file as {known}" in shown.stderr
    assert graphs.read_bytes() == before


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) for name in ("/dev/stdout", "/dev/fd/1", "-")]
)
def test_names_of_the_standard_output_add_to_it(name, model, graphs, tmp_path, clean_environment):
    (tmp_path / "log").write_text("before\n")
    with (tmp_path / "log").open("a") as log:
        command = [sys.executable, "-m", "sopool", "predict", model, graphs, "-o", name]
        subprocess.run(command, env=clean_environment, stdout=log, stderr=subprocess.DEVNULL, check=True)
    assert (tmp_path / "log").read_text().startswith("before\nrow,")


@pytest.mark.parametrize("command", [["fit", "MUTAG", "-o"], ["evaluate", "MUTAG", "-o"], ["demo", "--plot"]])
def test_what_is_no_text_needs_a_file(command, call, tmp_path):
    shown = call(*command, "-")
    assert shown.code == 2
    assert "this is standard output, but a file name is needed" in shown.err
    assert not (tmp_path / "-").exists()


def test_a_pipe_gets_the_predictions(model, graphs, call, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    assert call("predict", model, graphs, "-o", "pipe", "--format", "csv").code == 0
    assert reader.communicate()[0] == call("predict", model, graphs).out
    assert (tmp_path / "pipe").is_fifo()


def limited(start_at, *arguments, **options):
    """Run with a limit on the size of files: a write fails as on a full disk."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (start_at, start_at))

    command = [sys.executable, "-m", "sopool", *map(str, arguments)]
    return subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    ("limit", "command", "named"),
    [
        (100, ["predict", "MODEL", "GRAPHS", "-o", "out.csv"], "out.csv: File too large. "),
        pytest.param(
            1000,
            ["explain", "MODEL", "GRAPHS", "-g", "1", "-o", "out.html"],
            "out.html: File too large. ",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            1000,
            ["fit", "GRAPHS", "-o", "out.sopool", *QUICK],
            "out.sopool: File too large. ",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            3000,
            ["evaluate", "GRAPHS", "--pool", "sum", *TINY, "--epochs", "60"],
            "the store of runs cannot be written: ",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            100,
            ["evaluate", "GRAPHS", "--pool", "sum", *TINY, "--workers", "2"],
            "File too large. ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_full_disk_is_told_in_words(limit, command, named, model, tmp_path, clean_environment):
    graphs = tmp_path / "graphs.jsonl"
    write_jsonl(STORE, graphs)
    given = [{"MODEL": model, "GRAPHS": graphs}.get(word, word) for word in command]
    shown = limited(limit, *given, cwd=tmp_path, env=clean_environment)
    assert shown.returncode == 2, shown.stderr
    assert named in shown.stderr
    assert "Raise the limit" in shown.stderr
    assert "Traceback" not in shown.stderr
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()} - {".lock"}
    assert not {name for name in written if name.startswith((".", "out", "curves"))}


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_standard_output(options, tmp_path, clean_environment):
    if not Path("/dev/full").is_char_device():
        pytest.skip("there is no /dev/full")
    command = [sys.executable, "-m", "sopool", "pools", *options]
    with Path("/dev/full").open("w") as full:
        shown = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=clean_environment)
    assert shown.returncode == 2
    assert shown.stderr.startswith("error: No space left on device.")
    assert len(shown.stderr.splitlines()) == 1


def test_one_way_to_ask_for_json_and_for_a_file():
    def options(group):
        for command in group.commands.values():
            yield from command.params
            yield from options(command) if hasattr(command, "commands") else ()

    every = list(options(get_command(app)))
    assert all(one.is_flag for one in every if "--json" in one.opts)
    assert {tuple(one.opts) for one in every if "-o" in one.opts} == {("--output", "-o")}
