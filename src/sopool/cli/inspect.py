"""``sopool inspect``."""

from typing import Annotated

import typer

from sopool.cli.loading import Reader
from sopool.cli.options import (
    MAX_ATOMS,
    JsonOption,
    LabelColumnOption,
    MaxAtomsOption,
    OnErrorOption,
    RootOption,
    SmilesColumnOption,
    SourceArgument,
    TargetColumnsOption,
    column_names,
)
from sopool.cli.output import print_result


def inspect(
    source: SourceArgument,
    label_column: LabelColumnOption = None,
    target_columns: TargetColumnsOption = None,
    rounds: Annotated[int, typer.Option(min=0, metavar="N", help="Number of rounds of color refinement (1-WL).")] = 4,
    as_json: JsonOption = False,
    smiles_column: SmilesColumnOption = None,
    on_error: OnErrorOption = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    root: RootOption = None,
) -> None:
    """Show the sizes and classes of a data set, and which of its graphs message passing can distinguish."""
    from sopool.data.analysis.graph_statistics import data_warnings, graph_statistics
    from sopool.report.terminal.inspection import inspection

    store = Reader(root, smiles_column, label_column, on_error, max_atoms, column_names(target_columns)).load(source)
    found = graph_statistics(store, rounds)
    cautions = data_warnings(found)
    print_result(
        as_json,
        lambda: found.to_json() | {"cautions": cautions},
        lambda: inspection(found, store.sizes, cautions),
    )
