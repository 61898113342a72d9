"""``sopool evaluate``."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sopool.cli.loading import load_source, print_copies_note, source_files, stored_files
from sopool.cli.options import (
    LIST,
    MAX_ATOMS,
    AddressOption,
    DeviceOption,
    ExecutorOption,
    FiguresOption,
    JsonOption,
    LabelColumnOption,
    MaxAtomsOption,
    OnErrorOption,
    RootOption,
    RunsOption,
    SmilesColumnOption,
    SourceArgument,
    WorkersOption,
    names,
    numbers,
    settings,
    whole_numbers,
)
from sopool.cli.output import check_figures, check_file, output_console, print_message, write_figures
from sopool.cli.training import (
    show_results,
    summary,
    train,
    training_device,
    training_executor,
)
from sopool.errors import MissingPackageError, SettingError

if TYPE_CHECKING:
    from sopool.experiments.evaluation import Evaluator


def evaluate(
    source: SourceArgument,
    gnn: Annotated[
        str | None,
        typer.Option(
            help="Message-passing layers, e.g. gin-0 or gcn; gine also uses edge labels.", show_default="gin-0"
        ),
    ] = None,
    pool: Annotated[str, typer.Option(metavar=LIST, help="Poolings, such as sopool-bimap,sum-avg.")] = "sopool-bimap",
    blocks: Annotated[
        int, typer.Option(min=0, max=3, help="Blocks of one layer and one pooling; 0 pools once, at the end.")
    ] = 0,
    head: Annotated[
        Literal["per-block", "sum-readout"] | None,
        typer.Option(help="Scores of each block averaged, or one classifier of all.", show_default="per-block"),
    ] = None,
    block_readout: Annotated[
        Literal["max-mean", "concat"], typer.Option(help="What a block's classifier sees of the nodes left.")
    ] = "max-mean",
    pool_options: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Options of the poolings that have them, such as rank=16,triangle=true."),
    ] = None,
    protocol: Annotated[str, typer.Option(metavar=LIST, help="Any of fair, single-epoch, per-fold-max.")] = "fair",
    hidden: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Widths of the hidden layers. Several make a grid.", show_default="32"),
    ] = None,
    batch_size: Annotated[
        str | None, typer.Option(metavar=LIST, help="Graphs in a batch, likewise.", show_default="32")
    ] = None,
    lr: Annotated[str | None, typer.Option(metavar=LIST, help="Learning rates, likewise.", show_default="0.01")] = None,
    dropout: Annotated[
        str | None, typer.Option(metavar=LIST, help="Dropouts, likewise.", show_default="0.5; best: 0")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each run.")] = 350,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches in an epoch.", show_default="50")] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Of all chance but the folds, which are always the same.")] = 0,
    preset: Annotated[
        Literal["default", "best", "paper", "sagpool"],
        typer.Option(
            help="The model of fit, the most accurate one found, as the paper's code, or trained as SAGPool; sets "
            "defaults."
        ),
    ] = "default",
    reference: Annotated[
        str | None, typer.Option(help="The pooling to compare with.", show_default="the first first-order one")
    ] = None,
    device: DeviceOption = "auto",
    workers: WorkersOption = None,
    executor: ExecutorOption = "local",
    address: AddressOption = None,
    runs: RunsOption = Path("runs"),
    output: FiguresOption = None,
    as_json: JsonOption = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the curves of the first protocol: .svg or .png.")
    ] = None,
    root: RootOption = None,
    smiles_column: SmilesColumnOption = None,
    label_column: LabelColumnOption = None,
    on_error: OnErrorOption = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
) -> None:
    """Cross-validate poolings on a data set: all folds and settings side by side.

    A list is given with commas. What was interrupted goes on where it was when the same command is given again; what
    is finished is not trained again.
    """
    from sopool.experiments.evaluation import Evaluator, Request, make_grid
    from sopool.models.presets import PRESETS
    from sopool.training.runs.store import RunStore

    pools = names("--pool", pool)
    protocols = names("--protocol", protocol)
    recipe = PRESETS[preset]
    own = recipe.setting
    grid = make_grid(
        [own.hidden] if hidden is None else whole_numbers("--hidden", hidden),
        [own.batch_size] if batch_size is None else whole_numbers("--batch-size", batch_size),
        [own.lr] if lr is None else numbers("--lr", lr),
        [own.dropout] if dropout is None else numbers("--dropout", dropout),
    )
    request = Request(
        pools,
        protocols,
        gnn or recipe.gnn,
        grid,
        epochs,
        folds,
        seed,
        steps or recipe.steps,
        preset,
        blocks,
        head,
        block_readout,
        {} if pool_options is None else settings("--pool-options", pool_options),
    )
    request.check()
    _check_reference(reference, pools)
    files = [*source_files(source, root), *stored_files(runs, output, plot)]
    check_figures(output, *files)
    if plot:
        _check_plot(plot, files)
    trained_by = training_executor(executor, address)
    place = training_device(device, executor)
    store = load_source(source, root, smiles_column, label_column, on_error, max_atoms)

    evaluator = Evaluator(store, request, RunStore(runs))
    _say_divided(evaluator)
    found, tally = train(evaluator, place, workers, trained_by)
    said = summary(tally, runs)
    console = output_console(stderr=as_json)
    if not as_json:
        show_results(found, reference, console, _how(evaluator))
    print_copies_note(store)
    write_figures(found.to_json(), output, as_json)
    if plot:
        from sopool.report.figures.curves import plot_curves

        plot_curves(found.reported_runs(found.results()[0].outcome.protocol), plot)
        said += f" The curves are in {plot}."
    console.print(said)


def _check_reference(wanted: str | None, pools: list[str]) -> None:
    if wanted is not None and wanted not in pools:
        raise SettingError(f"--reference {wanted} is not among the poolings to evaluate: {', '.join(pools)}.")


def _check_plot(path: Path, files: list[str | Path]) -> None:
    from sopool.report.figures.curves import check_picture

    check_file(path, *files)
    check_picture(path)
    if find_spec("matplotlib") is None:
        raise MissingPackageError("drawing needs matplotlib: pip install 'sopool[report]', or leave --plot out.", path)


def _how(evaluator: "Evaluator") -> list[str]:
    """What the models were trained with, and which pooling was given which options."""
    request = evaluator.request
    said = [f"Preset {request.preset}, epochs {request.epochs}, seed {request.seed}."]
    if request.pool_options:
        each = [(pool, [f"{name}={value}" for name, value in own.items()]) for pool, own in evaluator.options.items()]
        said.append("Options: " + "; ".join(f"{pool} {', '.join(own) or 'none'}" for pool, own in each) + ".")
    return said


def _say_divided(evaluator: "Evaluator") -> None:
    """By the number of nodes, which the name of a pooling does not tell; who asked for it knows."""
    from sopool.nn.aggr.normalize import DIVIDED

    each = evaluator.models.items()
    divided = [pool for pool, model in each if model.pool_options.get("normalize") in DIVIDED.values()]
    if divided and "normalize" not in evaluator.request.pool_options:
        print_message(
            "note",
            f"{', '.join(divided)}: divided by the number of nodes, since nodes have neither labels nor attributes. "
            "--pool-options normalize=none (or matrix-sqrt) leaves that out.",
        )
