"""``sopool controls``."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from sopool.cli.config_file import save_config
from sopool.cli.loading import Reader
from sopool.cli.options import (
    LIST,
    MAX_ATOMS,
    OUTPUT,
    GroupedJsonOption,
    LabelColumnOption,
    MaxAtomsOption,
    MetricOption,
    MetricsOption,
    OnErrorOption,
    RootOption,
    SmilesColumnOption,
    SourceArgument,
    TargetColumnsOption,
    TaskOption,
    column_names,
    names,
)
from sopool.cli.output import error_console, print_progress, print_result
from sopool.cli.splitting import CopiesOption, FoldSeedOption, SplitOption, TestOption, load_divided
from sopool.cli.training import print_task, repeated, shown_metrics
from sopool.errors import check_name


def controls(
    context: typer.Context,
    source: SourceArgument,
    controls: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Controls to run: any of majority, size, histogram, wl.", show_default="all"),
    ] = None,
    label_column: LabelColumnOption = None,
    target_columns: TargetColumnsOption = None,
    task: TaskOption = None,
    metric: MetricOption = None,
    folds: Annotated[int, typer.Option(min=2, metavar="N", help="Number of cross-validation folds.")] = 10,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Random seed of the held-out graphs; the folds are the same for all seeds."
        ),
    ] = 0,
    fold_seed: FoldSeedOption = 0,
    smiles_column: SmilesColumnOption = None,
    on_error: OnErrorOption = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    root: RootOption = None,
    split: SplitOption = None,
    test: TestOption = None,
    keep_copies: CopiesOption = False,
    metrics: MetricsOption = None,
    runs: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder in which the results are stored.", rich_help_panel=OUTPUT)
    ] = Path("runs"),
    as_json: GroupedJsonOption = False,
) -> None:
    """Evaluate simple models without a network, as baselines, under the fair protocol."""
    from sopool.experiments.systems import CONTROLS, run_control
    from sopool.objectives import objective_for
    from sopool.report.grids.controls import controls_grid

    wanted = list(CONTROLS) if controls is None else names("--controls", controls)
    for name in wanted:
        check_name("control", name, CONTROLS)
    shown_metrics(metrics, task)
    reader = Reader(
        root=root,
        smiles_column=smiles_column,
        label_column=label_column,
        on_error=on_error,
        max_atoms=max_atoms,
        target_columns=column_names(target_columns),
    )
    store = load_divided(reader, source, split, test, keep_copies)
    objective = objective_for(store, task, metric)
    columns = shown_metrics(metrics, objective.task)
    print_task(objective)
    results = []
    for name in wanted:
        console, shown = error_console(), f"{name}: {CONTROLS[name].seen_for(objective.task)}"
        if not console.is_terminal:  # where the status is not shown
            print_progress(shown)
        with console.status(Text(shown)):
            results.append(run_control(name, store, folds, seed, runs, task, metric, fold_seed))
    print_result(as_json, lambda: [one.to_json() for one in results], lambda: controls_grid(results, columns))
    print_progress(repeated(save_config(context, runs), "controls").strip())
