"""Options that say what cross-validation divides graphs by, and the function that applies them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sopool.cli.loading import shown_source
from sopool.cli.options import DATA, LIST
from sopool.errors import DataError, SettingError

if TYPE_CHECKING:
    from sopool.data.graphs import PackedGraphs

KINDS = (
    "What training and test graphs differ in: random, scaffold, group:COLUMN (graphs with one value stay together), "
    "time:COLUMN (later ones test) or column:COLUMN (train, valid or test)."
)
SplitOption = Annotated[
    str | None,
    typer.Option(metavar="KIND", help=KINDS, show_default="random", rich_help_panel=DATA),
]
SplitsOption = Annotated[
    str | None,
    typer.Option(
        metavar=LIST,
        help=f"{KINDS} Of several, e.g. random,scaffold, each gives an estimate, and the model holds out graphs by the "
        "first.",
        show_default="random",
        rich_help_panel=DATA,
    ),
]
TestOption = Annotated[
    Path | None,
    typer.Option("--test", metavar="FILE", help="Test on the graphs of this file only.", rich_help_panel=DATA),
]
CopiesOption = Annotated[
    bool,
    typer.Option(
        "--keep-copies-together",
        help="Never test on a graph that looks to message passing like a training graph.",
        rich_help_panel=DATA,
    ),
]
FoldSeedOption = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Random seed of the folds.", rich_help_panel=DATA)
]


def load_divided(
    load: Callable[..., "PackedGraphs"],
    source: str | Sequence[str],
    split: str | None,
    test: Path | None,
    keep_copies: bool,
) -> "PackedGraphs":
    """Load the graphs of a source with the split that they are to be divided by.

    Args:
        load: A function that loads the graphs of a source, given ``split=``.
        source: The names or paths of the graphs.
        split: The value of ``--split``.
        test: A file of graphs that are tested on, and never trained on.
        keep_copies: Whether graphs that look alike are kept together.
    """
    from sopool.data.division import keep_copies_together, split_rule, with_test

    split_rule(split)  # checked before the graphs are read, which may take long
    if test is None:
        store = load(source, split=split)
        return keep_copies_together(store) if keep_copies else store
    if split is not None or keep_copies:
        other = "--keep-copies-together" if split is None else f"--split {split}"
        raise SettingError(f"--test {test} and {other} were both given, but the file says which graphs test: give one.")
    train = load(source, split="random")
    tested = load(str(test), split="random")
    if not len(tested):
        raise DataError("there are no graphs in it to test on.", test)
    try:
        return with_test(train, tested)
    except DataError as error:
        raise DataError(f"the graphs cannot be joined with those of {shown_source(source)}: {error}", test) from error


def without_test(store: "PackedGraphs") -> "PackedGraphs":
    """Return the graphs that a final model may be trained on: all but those of ``--test``."""
    from sopool.data.division import Division
    from sopool.data.honest_splits import TEST

    division = Division.of(store)
    if division.parts is None or not division.name.startswith("test:"):
        return store
    return replace(store[(division.parts[:, 0] != TEST).nonzero()[0].tolist()], split_values=None, split_columns=())
