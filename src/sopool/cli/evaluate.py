"""``sopool evaluate``."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sopool._runtime.packages import require
from sopool.cli.config_file import save_config
from sopool.cli.loading import Reader, print_copies_note, source_files, stored_files
from sopool.cli.options import (
    LIST,
    MAX_ATOMS,
    MODEL,
    OUTPUT,
    TRAINING,
    AddressOption,
    DescriptorsOption,
    DeviceOption,
    ExecutorOption,
    FeaturesOption,
    FiguresOption,
    GroupedJsonOption,
    LabelColumnOption,
    LossOption,
    MaxAtomsOption,
    MetricOption,
    MetricsOption,
    OnErrorOption,
    RootOption,
    RunsOption,
    SmilesColumnOption,
    SourceArgument,
    TargetColumnsOption,
    TaskOption,
    WorkersOption,
    column_names,
    descriptor_kinds,
    names,
    numbers,
    settings,
    whole_numbers,
)
from sopool.cli.output import check_figures, check_file, output_console, print_message, write_figures
from sopool.cli.splitting import CopiesOption, FoldSeedOption, SplitOption, TestOption, load_divided
from sopool.cli.training import (
    print_task,
    repeated,
    show_results,
    shown_metrics,
    summary,
    train,
    training_device,
    training_executor,
)
from sopool.errors import SettingError

if TYPE_CHECKING:
    from sopool.experiments.evaluation import Evaluator
    from sopool.models.config import Setting
    from sopool.objectives import Task


def evaluate(
    context: typer.Context,
    source: SourceArgument,
    pool: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Poolings to compare, e.g. sopool-bimap,sum-avg.", show_default="sopool-bimap"),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            metavar=LIST,
            help="Other systems to compare: kernels and features (see sopool systems), poolings, or a GNN with a "
            "pooling, e.g. wl,sum-avg,gcn+sum.",
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar=LIST,
            help="How epoch and hyperparameters are selected: any of fair, single-epoch, per-fold-max, last-epoch.",
        ),
    ] = "fair",
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Pooling or system that the others are compared with.",
            show_default="first listed sum, mean or max",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    preset: Annotated[
        Literal["default", "best", "paper", "sagpool"],
        typer.Option(
            metavar="NAME",
            help="Default settings: default (as in fit), best (most accurate), paper (as published), or sagpool.",
        ),
    ] = "default",
    label_column: LabelColumnOption = None,
    target_columns: TargetColumnsOption = None,
    task: TaskOption = None,
    metric: MetricOption = None,
    gnn: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Message-passing layers, e.g. gin-0 or gcn; gine also uses edge labels.",
            show_default="gin-0",
            rich_help_panel=MODEL,
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            metavar=LIST,
            help="Widths of the hidden layers. All combinations of this and the other lists are trained.",
            show_default="32",
            rich_help_panel=MODEL,
        ),
    ] = None,
    dropout: Annotated[
        str | None,
        typer.Option(
            metavar=LIST, help="Dropout rates.", show_default="0.5; preset best, regression: 0", rich_help_panel=MODEL
        ),
    ] = None,
    pool_options: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Options of the poolings, e.g. rank=16,triangle=true.", rich_help_panel=MODEL),
    ] = None,
    blocks: Annotated[
        int,
        typer.Option(
            min=0,
            max=3,
            metavar="N",
            help="Blocks of a hierarchical model, each a layer and a pooling; 0 pools once, at the end.",
            rich_help_panel=MODEL,
        ),
    ] = 0,
    head: Annotated[
        Literal["per-block", "sum-readout"] | None,
        typer.Option(
            metavar="NAME",
            help="Classifier of a hierarchy: per-block averages one per block, sum-readout is one for all.",
            show_default="per-block",
            rich_help_panel=MODEL,
        ),
    ] = None,
    block_readout: Annotated[
        Literal["max-mean", "concat", "sopool-pairs"],
        typer.Option(
            metavar="NAME",
            help="Readout of each block: max-mean, concat, or sopool-pairs (of the last block).",
            rich_help_panel=MODEL,
        ),
    ] = "max-mean",
    batch_size: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Batch sizes.", show_default="32", rich_help_panel=TRAINING),
    ] = None,
    lr: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Learning rates.", show_default="0.01", rich_help_panel=TRAINING),
    ] = None,
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of epochs of each run.", rich_help_panel=TRAINING)
    ] = 350,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Number of batches per epoch.", show_default="50", rich_help_panel=TRAINING
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(min=2, metavar="N", help="Number of cross-validation folds.", rich_help_panel=TRAINING),
    ] = 10,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Random seed; the folds are the same for all seeds.", rich_help_panel=TRAINING
        ),
    ] = 0,
    fold_seed: FoldSeedOption = 0,
    loss: LossOption = None,
    device: DeviceOption = "auto",
    workers: WorkersOption = None,
    executor: ExecutorOption = "local",
    address: AddressOption = None,
    smiles_column: SmilesColumnOption = None,
    on_error: OnErrorOption = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    features: FeaturesOption = None,
    descriptors: DescriptorsOption = None,
    root: RootOption = None,
    split: SplitOption = None,
    test: TestOption = None,
    keep_copies: CopiesOption = False,
    metrics: MetricsOption = None,
    runs: RunsOption = Path("runs"),
    output: FiguresOption = None,
    as_json: GroupedJsonOption = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Plot the learning curves of the first protocol to a .svg or .png file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Compare poolings and other systems on a data set by cross-validation: predict a class, labels or numbers.

    If the command is interrupted, run it again to continue; finished runs are not trained again.
    """
    from sopool.experiments.evaluation import Evaluator, Request, make_grid
    from sopool.models.presets import PRESETS, setting_for
    from sopool.objectives.choose import task_of
    from sopool.training.runs.store import RunStore

    pools = [] if pool is None else names("--pool", pool)
    pools += [] if system is None else [name for name in names("--system", system) if name not in pools]
    pools = pools or ["sopool-bimap"]
    protocols = names("--protocol", protocol)
    recipe = PRESETS[preset]

    def grid(kind: "Task") -> list["Setting"]:
        own = setting_for(preset, kind)
        return make_grid(
            [own.hidden] if hidden is None else whole_numbers("--hidden", hidden),
            [own.batch_size] if batch_size is None else whole_numbers("--batch-size", batch_size),
            [own.lr] if lr is None else numbers("--lr", lr),
            [own.dropout] if dropout is None else numbers("--dropout", dropout),
        )

    request = Request(
        pools,
        protocols,
        gnn or recipe.gnn,
        grid(task or "classification"),
        epochs,
        folds,
        seed,
        steps or recipe.steps,
        preset,
        blocks,
        head,
        block_readout,
        {} if pool_options is None else settings("--pool-options", pool_options),
        task,
        metric,
        loss,
        fold_seed,
    )
    request.check()
    _check_reference(reference, pools)
    shown_metrics(metrics, task)
    files = [*source_files(source, root), *stored_files(runs, output, plot), *([] if test is None else [test])]
    check_figures(output, *files)
    if plot:
        _check_plot(plot, files)
    trained_by = training_executor(executor, address)
    place = training_device(device, executor)
    reader = Reader(
        root=root,
        smiles_column=smiles_column,
        label_column=label_column,
        on_error=on_error,
        max_atoms=max_atoms,
        target_columns=column_names(target_columns),
        features=features,
        descriptors=descriptor_kinds(descriptors),
    )
    store = load_divided(reader, source, split, test, keep_copies)
    request = replace(request, settings=grid(task_of(store, task)))
    evaluator = Evaluator(store, request, RunStore(runs))
    repeat = save_config(context, runs)
    shown = shown_metrics(metrics, evaluator.objective.task)
    print_task(evaluator.objective)
    _say_divided(evaluator)
    _say_continued(evaluator)
    found, tally = train(evaluator, place, workers, trained_by)
    said = summary(tally, runs) + repeated(repeat, "evaluate")
    console = output_console(stderr=as_json)
    if not as_json:
        show_results(found, reference, console, _how(evaluator), shown)
    print_copies_note(store)
    write_figures(found.to_json(), output, as_json)
    if plot:
        from sopool.report.figures.curves import plot_curves

        plot_curves(found.reported_runs(found.results()[0].outcome.protocol), plot)
        said += f" The learning curves are in {plot}."
    console.print(said)


def _check_reference(wanted: str | None, pools: list[str]) -> None:
    if wanted is not None and wanted not in pools:
        raise SettingError(f"--reference {wanted} is not one of the evaluated poolings: {', '.join(pools)}.")


def _check_plot(path: Path, files: list[str | Path]) -> None:
    from sopool.report.figures.curves import check_picture

    check_file(path, *files)
    check_picture(path)
    require("--plot", "matplotlib")


def _how(evaluator: "Evaluator") -> list[str]:
    """Return notes about the training settings and the options of each pooling."""
    from sopool.training.protocols.outcome import value_text

    request = evaluator.request
    said = [f"Preset {request.preset}, epochs {request.epochs}, seed {request.seed}."]
    if evaluator.division.arrays or request.fold_seed:
        said.append(f"Split: {evaluator.division.name}, fold seed {request.fold_seed}.")
    if evaluator.systems:
        found = [(name, one.strength, one.path) for name, one in evaluator.systems.items() if one.strength]
        paths = "; ".join(f"{name} {strength} {', '.join(map(value_text, path))}" for name, strength, path in found)
        said += [f"The epoch of a system is the place of the selected strength on its path: {paths}."] * bool(paths)
    if request.pool_options:
        each = [(pool, [f"{name}={value}" for name, value in own.items()]) for pool, own in evaluator.options.items()]
        said.append("Options: " + "; ".join(f"{pool} {', '.join(own) or 'none'}" for pool, own in each) + ".")
    return said


def _say_divided(evaluator: "Evaluator") -> None:
    """Print which poolings are divided by the number of nodes by default; their names do not show it."""
    from sopool.nn.aggr.normalize import DIVIDED

    each = evaluator.models.items()
    divided = [pool for pool, model in each if model.pool_options.get("normalize") in DIVIDED.values()]
    if divided and "normalize" not in evaluator.request.pool_options:
        print_message(
            "note",
            f"{', '.join(divided)}: divided by the number of nodes, because nodes have neither labels nor attributes. "
            "Use --pool-options normalize=none (or matrix-sqrt) to avoid this.",
        )


def _say_continued(evaluator: "Evaluator") -> None:
    """Print which poolings have earlier defaults, as runs of the store do."""
    from sopool.nn.registry import default_options

    for pool in evaluator.continued:
        model = evaluator.models[pool]
        now = default_options(model.pool, bool(model.blocks))
        used = model.effective_options
        changed = {name: used[name] for name in now if name not in model.pool_options and used[name] != now[name]}
        current = {name: now[name] for name in changed}
        print_message(
            "note",
            f"{pool}: the store has runs of this request with {_listed(changed)}, the default when they were trained, "
            f"and this evaluation continues them. Use --pool-options {_listed(current)} for the current default.",
        )


def _listed(options: dict[str, Any]) -> str:
    return ",".join(f"{name}={'none' if value is None else value}" for name, value in options.items())
