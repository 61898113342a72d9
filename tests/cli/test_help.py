"""Every command has a readable help with examples, and help and tables fit 80 columns."""

import shlex

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sopool.cli import app
from sopool.cli.options import with_flags
from sopool.cli.typer_app import EXAMPLES, START
from tests.cli.conftest import QUICK, TINY

LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines] + [("", line) for line in START]


def every_command(group=None, path=()):
    for name, command in (group or get_command(app)).commands.items():
        yield " ".join((*path, name))
        if hasattr(command, "commands"):
            yield from every_command(command, (*path, name))


def test_each_command_has_examples_and_nothing_else_has():
    assert set(every_command()) == set(EXAMPLES)


@pytest.mark.parametrize(("name", "line"), LINES)
def test_they_are_what_the_command_takes(name, line):
    program, *arguments = shlex.split(line.rpartition("| ")[2])
    assert program == "sopool"
    command = get_command(app)
    path = []
    while arguments and arguments[0] in getattr(command, "commands", {}):
        path.append(arguments.pop(0))
        command = command.commands[path[-1]]
    assert " ".join(path) in EXAMPLES if name == "" else " ".join(path) == name
    command.make_context(path[-1], arguments)  # raises where an option or a value is unknown


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_shows_them(name, call):
    shown = call(*name.split(), "--help")
    assert shown.code == 0
    words = " ".join(shown.out.split())
    assert all(line in words for line in EXAMPLES[name])


WIDTH = 80
FEW = 7
"""More options than this are shown in panels."""


def found(name):
    command = get_command(app)
    for part in name.split():
        command = command.commands[part]
    return command


def options_of(name):
    return [one for one in found(name).params if one.param_type_name == "option" and not getattr(one, "hidden", False)]


def shown(arguments, folder):
    environment = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": None, "SOPOOL_DATA": None, "SOPOOL_CACHE": str(folder)}
    result = CliRunner().invoke(app, [str(one) for one in arguments], env=environment)
    assert result.exit_code == 0, result.output
    return result.stdout


def widest(text):
    return max(map(len, text.splitlines()))


@pytest.mark.parametrize("name", ["", *EXAMPLES])
def test_the_help_fits_the_terminal(name, tmp_path):
    assert widest(shown([*name.split(), "--help"], tmp_path)) <= WIDTH


@pytest.mark.parametrize("name", ["", *EXAMPLES])
def test_flags_do_not_look_as_if_they_took_a_value(name, tmp_path):
    assert "bool" not in shown([*name.split(), "--help"], tmp_path).lower()


@pytest.mark.parametrize("name", ["", *EXAMPLES])
def test_every_help_text_is_a_sentence(name):
    command = found(name)
    texts = {one.name: one.help for one in command.params if not getattr(one, "hidden", False)} | {"": command.help}
    for option, text in texts.items():
        assert text, option
        assert text[0].isupper() or text.startswith("A "), (option, text)
        assert text.endswith("."), (option, text)


@pytest.mark.parametrize("name", EXAMPLES)
def test_many_options_are_grouped_and_the_most_important_come_first(name):
    options = options_of(name)
    first = [one for one in options if one.rich_help_panel is None]
    assert len(first) <= FEW
    if len(options) > FEW:
        assert first
        assert {one.rich_help_panel for one in options} <= {None, "Model", "Training", "Data", "Output"}


def test_the_tables_fit_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pools = ["--pool", "sopool-bimap,sum-avg", "--hidden", "4,8"]
    for arguments in (
        ["datasets"],
        ["pools"],
        ["inspect", "MUTAG"],
        ["evaluate", "MUTAG", *pools, "--protocol", "fair,single-epoch,per-fold-max", *TINY],
        ["runs"],
        ["runs", "--all"],
        ["controls", "MUTAG", "--folds", "2"],
        ["fit", "MUTAG", "-o", "m.sopool", *QUICK],
        ["show", "m.sopool"],
        ["reproduce", "figure2"],
    ):
        text = shown(arguments, tmp_path)
        assert widest(text) <= WIDTH, arguments
        assert "…" not in text, arguments
        if "evaluate" in arguments:
            assert text.count("sopool-bimap ") == 6
            assert " +-\n" not in text
        if "runs" in arguments:
            assert "sopool-bimap" in text
            assert "finished" in text


@pytest.mark.parametrize(
    ("message", "translated"),
    [
        ("Try workers=1.", "Try --workers 1."),
        ("address='auto': no cluster.", "--address auto: no cluster."),
        ("device='cuda:1' is not there", "--device cuda:1 is not there"),
        ("raise max_atoms=2000, or", "raise --max-atoms 2000, or"),
        ("no column 'toxc' (label_column). Found: toxic.", "no column 'toxc' (--label-column). Found: toxic."),
        ("no property 'toxc' (label_property).", "no property 'toxc' (--label-column)."),
        ("Give its name as label_column, or labelled=False to read no labels.", "Give its name as --label-column."),
        ("Give its name as smiles_column; the first line", "Give its name as --smiles-column; the first line"),
        ("Found: smiles, label_column.", "Found: smiles, label_column."),
        ("give that folder as root or SOPOOL_DATA", "give that folder as --root or SOPOOL_DATA"),
        ("label_column='log P' was given.", "--label-column log P was given."),
        ("Leave label_column out.", "Leave --label-column out."),
        (
            "Give its name as label_column or, of several, as target_columns, or labelled=False to read no labels.",
            "Give its name as --label-column or, of several, as --target-columns.",
        ),
        ("rank=16 is an option of a pooling", "rank=16 is an option of a pooling"),
    ],
)
def test_python_arguments_in_errors_become_options(message, translated):
    assert with_flags(message) == translated
