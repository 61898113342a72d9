"""Options that several commands share, and lists in one option: ``--hidden 16,32,64``."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

from sopool.errors import OnError, SettingError

LIST = "A,B,..."
"""How the help shows an option that takes a list; :class:`~sopool.cli.typer_app.Command` knows it by that."""

SourceArgument = Annotated[
    str, typer.Argument(metavar="DATA", help="A data set's name, or the path of a file or folder of graphs.")
]
RootOption = Annotated[
    Path | None,
    typer.Option(help="Where named data sets are looked for first.", envvar="SOPOOL_DATA", show_default="SOPOOL_DATA"),
]
SmilesColumnOption = Annotated[str | None, typer.Option(help="The column of a CSV that holds the SMILES.")]
LabelColumnOption = Annotated[str | None, typer.Option(help="The column of a CSV, or property of an SDF, to predict.")]
OnErrorOption = Annotated[OnError, typer.Option(help="What to do about a molecule that cannot be read.")]
MAX_ATOMS = 1000
"""The same as ``sopool.data.formats.limits.MAX_ATOMS``, which takes long to import."""
MaxAtomsOption = Annotated[
    int,
    typer.Option(min=1, help="Atoms of the largest molecule to read; larger ones count as unreadable."),
]
ExecutorOption = Annotated[
    Literal["local", "ray"], typer.Option(help="Train on this machine, or on a Ray cluster that it is part of.")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="auto|HOST|local",
        help="The head of the cluster; local: start one, of this machine alone.",
        show_default="auto",
    ),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, help="Processes to train in on a CPU.", show_default="one for each core")
]
RunsOption = Annotated[Path, typer.Option(help="The folder where all runs are kept.")]
FiguresOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write all figures there, as JSON.")
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that sopool fit has written.")]
StreamArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A data set's name, the path of a file or folder of graphs, or - for the standard input."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

Value = TypeVar("Value")


def names(option: str, text: str) -> list[str]:
    """The items of a comma-separated list, each once; a ``SettingError`` that names the option if one is empty."""
    return _items(option, text, str, "a name")


def whole_numbers(option: str, text: str) -> list[int]:
    """Likewise, of whole numbers."""
    return _items(option, text, int, "a whole number")


def numbers(option: str, text: str) -> list[float]:
    """Likewise, of finite numbers."""
    return _items(option, text, _finite, "a number")


def settings(option: str, text: str) -> dict[str, str | int | float | bool | None]:
    """Names with values, ``heads=32,normalize=none``: numbers, true, false, none, else words."""
    found: dict[str, str | int | float | bool | None] = {}
    for item in names(option, text):
        name, sign, value = (part.strip() for part in item.partition("="))
        if not (name and sign and value):
            raise SettingError(f"{option} {text}: {item!r} is not a name with a value. A list looks like a=1,b=none.")
        if name in found:
            raise SettingError(f"{option} {text}: {name} is there twice. Give it once.")
        found[name] = _value(value)
    return found


def _value(text: str) -> str | int | float | bool | None:
    known = {"none": None, "true": True, "false": False}
    if text.lower() in known:
        return known[text.lower()]
    for convert in (int, _finite):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _items(option: str, text: str, convert: Callable[[str], Value], kind: str) -> list[Value]:
    found = []
    for part in text.split(","):
        item = part.strip()
        try:
            if not item:
                raise ValueError
            found.append(convert(item))
        except ValueError:
            raise SettingError(f"{option} {text}: {item!r} is not {kind}. A list looks like a,b,c.") from None
    return list(dict.fromkeys(found))
