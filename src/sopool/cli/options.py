"""Options that several commands share, and parsers for options with lists such as ``--hidden 16,32,64``."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

from sopool.errors import OnError, SettingError

LIST = "A,B,..."
"""The metavar of options that take a list; :class:`~sopool.cli.typer_app.Command` recognizes them by it."""

MODEL = "Model"
TRAINING = "Training"
DATA = "Data"
OUTPUT = "Output"
"""Headings of the groups of options in the help; options without one come first."""

SourceArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA", help="The name of a data set, or the path of a file or folder of graphs; several are joined."
    ),
]
RootOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder that is searched first for named data sets.",
        envvar="SOPOOL_DATA",
        rich_help_panel=DATA,
    ),
]
SmilesColumnOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of a CSV file that holds the SMILES strings.", rich_help_panel=DATA),
]
IdColumnOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column, or property of an SDF file, that identifies graphs.",
        show_default="id or name; the title of a record",
        rich_help_panel=DATA,
    ),
]
LabelColumnOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Column of a CSV file, or property of an SDF file, to predict: classes or one number."
    ),
]
TargetColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar=LIST,
        help="Columns of a CSV file, or properties of an SDF file, to predict: numbers, or labels 0 and 1.",
    ),
]
TruthColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar=LIST,
        help="Columns or properties with the true values of the model's targets, in their order.",
        show_default="those it was trained on",
        rich_help_panel=DATA,
    ),
]
TaskOption = Annotated[
    Literal["classification", "multi-label", "regression"] | None,
    typer.Option(
        metavar="TASK",
        help="What is predicted: classification, multi-label or regression.",
        show_default="found from the values",
        rich_help_panel=DATA,
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Metric that chooses epochs and settings, e.g. roc_auc or mae.",
        show_default="accuracy, roc_auc or rmse, by task",
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        metavar=LIST,
        help="Metrics to show, e.g. roc_auc,average_precision.",
        show_default="the usual ones of the task",
        rich_help_panel=OUTPUT,
    ),
]
LossOption = Annotated[
    Literal["squared", "absolute", "huber"] | None,
    typer.Option(help="Loss of a regression.", show_default="squared", rich_help_panel=TRAINING),
]
OnErrorOption = Annotated[
    OnError,
    typer.Option(help="Skip molecules that cannot be read, or stop with an error.", rich_help_panel=DATA),
]
FeaturesOption = Annotated[
    Literal["element", "charge", "atoms", "all"] | None,
    typer.Option(
        metavar="NAME",
        help="Features of molecules: element (and bond types), charge (also charges), atoms (all of atoms), or all.",
        show_default="atoms",
        rich_help_panel=DATA,
    ),
]
DescriptorsOption = Annotated[
    str | None,
    typer.Option(
        metavar=LIST,
        help="Numbers that RDKit computes of each molecule, e.g. rdkit2d,morgan; atom-pairs is another fingerprint.",
        rich_help_panel=DATA,
    ),
]
MAX_ATOMS = 1000
"""The same as ``sopool.data.formats.limits.MAX_ATOMS``, which takes long to import."""
MaxAtomsOption = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="Treat molecules with more atoms than this as unreadable.", rich_help_panel=DATA
    ),
]
ExecutorOption = Annotated[
    Literal["local", "ray"],
    typer.Option(help="Train on this machine or on a Ray cluster.", rich_help_panel=TRAINING),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST",
        help="Head node of the Ray cluster; 'local' starts a cluster on this machine.",
        show_default="auto",
        rich_help_panel=TRAINING,
    ),
]
DeviceOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Device to compute on: auto, cpu, cuda or, e.g., cuda:1.", rich_help_panel=TRAINING
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Number of worker processes on a CPU.",
        show_default="one per core",
        rich_help_panel=TRAINING,
    ),
]
RunsOption = Annotated[
    Path, typer.Option(metavar="DIR", help="Folder in which the runs are stored.", rich_help_panel=OUTPUT)
]
FiguresOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write all results to a JSON file.", rich_help_panel=OUTPUT),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by sopool fit.")]
StreamsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="The name of a data set, the path of a file or folder of graphs, or - for standard input; or several.",
    ),
]
StreamArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The name of a data set, the path of a file or folder of graphs, or - for standard input.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
GroupedJsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=OUTPUT)
]

Value = TypeVar("Value")
ARGUMENT = re.compile(
    r"\b(address|batch_size|block_readout|blocks|device|dropout|executor|head|hidden|layers|lr|max_atoms|root|split|workers)=(['\"]?)([\w:./-]*\w)\2"
)
"""A Python argument with a value in a message of the library."""
NAMED = re.compile(
    r"(\(|\b(?:as|[Gg]ive|[Ll]eave|or) )(id_column|label_column|label_property|root|smiles_column|target_columns)\b"
    r"(?:, or labelled=False to read no labels)?"
)
"""A Python argument that a message names without a value; commands have no option for ``labelled``."""


LISTED = re.compile(r"\b(target_columns)=\[([^]]*)\]")
"""A Python argument with a list of names in a message of the library."""
QUOTED = re.compile(r"(?<=['\"])[^'\",]+(?=['\"])")
COLUMN = re.compile(r"\b(id_column|label_column|label_property|smiles_column)=(['\"])(.*?)\2")
"""A Python argument with the name of a column in a message of the library."""


def with_flags(message: str) -> str:
    """Replace Python arguments such as ``workers=2`` in a message by options such as ``--workers 2``."""
    message = LISTED.sub(lambda found: f"{_option(found[1])} {','.join(QUOTED.findall(found[2]))}", message)
    message = COLUMN.sub(lambda found: f"{_option(found[1])} {found[3]}", message)
    message = ARGUMENT.sub(lambda found: f"{_option(found[1])} {found[3]}", message)
    return NAMED.sub(lambda found: found[1] + _option(found[2]), message)


def _option(argument: str) -> str:
    """Return the option of a Python argument; ``--label-column`` also names a property."""
    return f"--{argument.replace('label_property', 'label_column').replace('_', '-')}"


def names(option: str, text: str) -> list[str]:
    """Return the distinct items of a comma-separated list; raise ``SettingError`` if one is empty."""
    return _items(option, text, str, "a name")


def column_names(text: str | None) -> list[str]:
    """Return the names that ``--target-columns`` lists; none if it is not given."""
    return [] if text is None else names("--target-columns", text)


def descriptor_kinds(text: str | None) -> list[str]:
    """Return the kinds that ``--descriptors`` lists; none if it is not given."""
    return [] if text is None else names("--descriptors", text)


def whole_numbers(option: str, text: str) -> list[int]:
    """Return the distinct whole numbers of a comma-separated list; raise ``SettingError`` for anything else."""
    return _items(option, text, int, "a whole number")


def numbers(option: str, text: str) -> list[float]:
    """Return the distinct finite numbers of a comma-separated list; raise ``SettingError`` for anything else."""
    return _items(option, text, _finite, "a number")


def settings(option: str, text: str) -> dict[str, str | int | float | bool | None]:
    """Parse names with values, e.g. ``heads=32,normalize=none``.

    Values are numbers, ``true``, ``false`` or ``none``; anything else is a string.
    """
    found: dict[str, str | int | float | bool | None] = {}
    for item in names(option, text):
        name, sign, value = (part.strip() for part in item.partition("="))
        if not (name and sign and value):
            raise SettingError(f"{option} {text}: {item!r} is not a name with a value. Write, e.g., a=1,b=none.")
        if name in found:
            raise SettingError(f"{option} {text}: {name} is given twice. Give it once.")
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
            raise SettingError(
                f"{option} {text}: {item!r} is not {kind}. Separate the items of a list with commas."
            ) from None
    return list(dict.fromkeys(found))
