"""``sopool controls``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from sopool.cli.loading import load_source
from sopool.cli.options import (
    LIST,
    MAX_ATOMS,
    JsonOption,
    LabelColumnOption,
    MaxAtomsOption,
    OnErrorOption,
    RootOption,
    SmilesColumnOption,
    SourceArgument,
    names,
)
from sopool.cli.output import error_console, print_result
from sopool.errors import check_name


def controls(
    source: SourceArgument,
    controls: Annotated[
        str | None, typer.Option(metavar=LIST, help="Any of majority, size, histogram, wl.", show_default="all")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Of the held-out graphs; the folds are always the same.")] = 0,
    runs: Annotated[Path, typer.Option(metavar="DIR", help="The folder where results are kept.")] = Path("runs"),
    root: RootOption = None,
    smiles_column: SmilesColumnOption = None,
    label_column: LabelColumnOption = None,
    on_error: OnErrorOption = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    as_json: JsonOption = False,
) -> None:
    """What a pooling must beat: classifiers without a network, on the same folds, under the fair protocol."""
    from sopool.experiments.systems import CONTROLS, run_control
    from sopool.report.grids.controls import controls_grid

    wanted = list(CONTROLS) if controls is None else names("--controls", controls)
    for name in wanted:
        check_name("control", name, CONTROLS)
    store = load_source(source, root, smiles_column, label_column, on_error, max_atoms)
    results = []
    for name in wanted:
        with error_console().status(Text(f"{name}: {CONTROLS[name].sees}")):
            results.append(run_control(name, store, folds, seed, runs))
    print_result(as_json, lambda: [one.to_json() for one in results], lambda: controls_grid(results))
