"""``sopool inspect``."""

from typing import Annotated

import typer

from sopool.cli.loading import load_source
from sopool.cli.options import (
    MAX_ATOMS,
    JsonOption,
    LabelColumnOption,
    MaxAtomsOption,
    OnErrorOption,
    RootOption,
    SmilesColumnOption,
    SourceArgument,
)
from sopool.cli.output import print_result


def inspect(
    source: SourceArgument,
    root: RootOption = None,
    rounds: Annotated[int, typer.Option(min=0, help="Rounds of colour refinement.")] = 4,
    smiles_column: SmilesColumnOption = None,
    label_column: LabelColumnOption = None,
    on_error: OnErrorOption = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    as_json: JsonOption = False,
) -> None:
    """Look at a data set: sizes, classes, oddities, and what a network can tell apart at best."""
    from sopool.data.analysis.graph_statistics import data_warnings, graph_statistics
    from sopool.report.terminal.inspection import inspection

    store = load_source(source, root, smiles_column, label_column, on_error, max_atoms)
    found = graph_statistics(store, rounds)
    cautions = data_warnings(found)
    print_result(
        as_json,
        lambda: found.to_json() | {"cautions": cautions},
        lambda: inspection(found, store.sizes, cautions),
    )
