"""Options that say what cross-validation divides graphs by, and the function that applies them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sopool.cli.loading import Reader, shown_source
from sopool.cli.options import DATA, LIST
from sopool.cli.output import print_message
from sopool.errors import DataError, SettingError

if TYPE_CHECKING:
    import numpy as np

    from sopool.data.graphs import PackedGraphs

SHOWN = 3
"""The number of test graphs among the training graphs that a warning names."""
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


class TrainAndTest(NamedTuple):
    """Which graphs train and which test if ``--test`` is given."""

    train: "np.ndarray"
    """bool ``[G]``"""
    test: "np.ndarray"
    """bool ``[G]``"""
    name: str
    """The name of the test graphs."""


def load_divided(
    reader: Reader,
    source: str | Sequence[str],
    split: str | None,
    test: Path | None,
    keep_copies: bool,
) -> "PackedGraphs":
    """Load the graphs of a source with the split that they are to be divided by.

    Args:
        reader: What reads the graphs.
        source: The names or paths of the graphs.
        split: The value of ``--split``.
        test: A file of graphs that are tested on, and never trained on.
        keep_copies: Whether graphs that look alike are kept together.
    """
    from sopool.data.division import keep_copies_together, split_rule, with_test

    split_rule(split)  # checked before the graphs are read, which may take long
    if test is None:
        store = reader.load(source, split)
        return keep_copies_together(store) if keep_copies else store
    if split is not None or keep_copies:
        other = "--keep-copies-together" if split is None else f"--split {split}"
        raise SettingError(f"--test {test} and {other} were both given, but the file says which graphs test: give one.")
    train = reader.load(source, "random")
    tested = reader.load(str(test), "random")
    if not len(tested):
        raise DataError("there are no graphs in it to test on.", test)
    try:
        joined = with_test(train, tested)
    except DataError as error:
        raise DataError(f"the graphs cannot be joined with those of {shown_source(source)}: {error}", test) from error
    _warn_of_shared(reader, train, tested, str(test))
    return joined


def _warn_of_shared(reader: Reader, train: "PackedGraphs", tested: "PackedGraphs", test: str) -> None:
    """Warn of test graphs that are training graphs, too, and say where the first ones are."""
    from sopool.data.graphs import EDGE_FIELDS, NODE_FIELDS
    from sopool.estimator.seen_graphs import SeenGraphs

    everything = dict.fromkeys((*NODE_FIELDS, *EDGE_FIELDS))
    shared = SeenGraphs.of(train, everything).contain(tested).nonzero()[0].tolist()
    if not shared:
        return
    count = len(shared)
    first = ", ".join(reader.places(test, shared[:SHOWN])) + ", ..." * (count > SHOWN)
    print_message(
        "warning",
        f"{test}: {count:,} of {len(tested):,} test graphs {'are' if count > 1 else 'is'} among the training graphs "
        f"({first}): scores on them are too good for new graphs. Remove them from one of the files.",
    )


def train_test(store: "PackedGraphs") -> TrainAndTest | None:
    """Return which graphs are those of ``--test``; None if it was not given."""
    from sopool.data.division import Division
    from sopool.data.honest_splits import TEST

    division = Division.of(store)
    kind, _, name = division.name.partition(":")
    if division.parts is None or kind != "test":
        return None
    test = division.parts[:, 0] == TEST
    return TrainAndTest(~test, test, name)


def without_test(store: "PackedGraphs") -> "PackedGraphs":
    """Return the graphs that a final model may be trained on: all but those of ``--test``."""
    apart = train_test(store)
    if apart is None:
        return store
    return replace(store[apart.train.nonzero()[0].tolist()], split_values=None, split_columns=())
