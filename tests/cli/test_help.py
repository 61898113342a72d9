"""Every command has examples in its help, and they are what the command takes."""

import shlex

import pytest
from typer.main import get_command

from sopool.cli import app
from sopool.cli.typer_app import EXAMPLES, START

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
