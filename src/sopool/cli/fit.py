"""``sopool fit``."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sopool._files.atomic import is_stream
from sopool._runtime.visible import on_one_line
from sopool.cli.config_file import config_text
from sopool.cli.loading import Reader, print_copies_note, shown_source, source_files
from sopool.cli.options import (
    LIST,
    MAX_ATOMS,
    MODEL,
    TRAINING,
    DescriptorsOption,
    DeviceOption,
    FeaturesOption,
    LabelColumnOption,
    LossOption,
    MaxAtomsOption,
    MetricOption,
    MetricsOption,
    OnErrorOption,
    RootOption,
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
    with_flags,
)
from sopool.cli.output import check_file, output_console, print_message, print_progress
from sopool.cli.progress import Tally, training_progress
from sopool.cli.splitting import (
    CopiesOption,
    FoldSeedOption,
    SplitsOption,
    TestOption,
    load_divided,
    train_test,
    without_test,
)
from sopool.cli.training import shown_metrics, task_line, training_device
from sopool.errors import DataError, SettingError

if TYPE_CHECKING:
    import numpy as np

    from sopool.data.graphs import PackedGraphs
    from sopool.estimator import FitProgress, GraphEstimator
    from sopool.estimator.estimate import Estimate, OnEpoch
    from sopool.estimator.truth import KnownGraphs
    from sopool.training.trainer import Report

MEANING = (
    "The estimate comes from {how}. The saved model was trained on all graphs, so no test data is left for it; expect "
    "similar {what} on {new}."
)
TESTED = "The estimate is for {new}, which the saved model was not trained on."
NO_ESTIMATE = "There is no estimate of its {what}; use, e.g., --folds 5 for one."
WHAT: dict[str, str] = {"classification": "accuracy", "multi-label": "accuracy", "regression": "errors"}
OR_OWN = "{}; that of --system"
OF_POOLINGS = ("pool", "pool_options", "gnn", "layers", "dropout")
"""Options that are not for the network of a system."""
UNBALANCED = (
    "balanced accuracy is far below accuracy, so many graphs of rare classes are misclassified. With --class-weight "
    "balanced all classes have the same weight in training, which finds more graphs of rare classes but may lower "
    "accuracy."
)


def fit(
    context: typer.Context,
    source: SourceArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to save the model to.")],
    label_column: LabelColumnOption = None,
    target_columns: TargetColumnsOption = None,
    task: TaskOption = None,
    metric: MetricOption = None,
    metrics: MetricsOption = None,
    loss: LossOption = None,
    pool: Annotated[
        str,
        typer.Option(
            metavar=LIST, help="Pooling that turns node vectors into a graph vector; of several, the best is selected."
        ),
    ] = "sopool-bimap",
    system: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Network of a trained system, e.g. dgcnn, with its own recipe, in place of layers and pooling; sopool "
            "systems lists them.",
        ),
    ] = None,
    class_weight: Annotated[
        Literal["balanced"] | None,
        typer.Option(help="Give rare classes the same weight as common ones.", rich_help_panel=TRAINING),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Folds of the cross-validation that estimates the accuracy; 0 skips it."),
    ] = 5,
    fold_seed: FoldSeedOption = 0,
    gnn: Annotated[
        str,
        typer.Option(
            metavar=LIST,
            help="Message-passing layers, e.g. gin-0; gine also uses edge labels (bond types). Of several values of "
            "this and the other lists, the best combination is selected.",
            rich_help_panel=MODEL,
        ),
    ] = "gin-0",
    hidden: Annotated[
        str | None,
        typer.Option(
            metavar=LIST, help="Width of the hidden layers.", show_default=OR_OWN.format(32), rich_help_panel=MODEL
        ),
    ] = None,
    layers: Annotated[
        str, typer.Option(metavar=LIST, help="Number of message-passing layers.", rich_help_panel=MODEL)
    ] = "4",
    dropout: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Dropout rate.", show_default="0.5; regression: 0", rich_help_panel=MODEL),
    ] = None,
    pool_options: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Options of the pooling, e.g. rank=16,normalize=sqrt.", rich_help_panel=MODEL),
    ] = None,
    system_options: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Options of the network of --system, e.g. k=20.", rich_help_panel=MODEL),
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Select among the settings of the grid of --system, which is slower; otherwise its first one is used.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    models: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of networks in the ensemble.", rich_help_panel=MODEL)
    ] = 5,
    batch_size: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Graphs per batch.", show_default=OR_OWN.format(32), rich_help_panel=TRAINING),
    ] = None,
    lr: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Learning rate.", show_default=OR_OWN.format(0.01), rich_help_panel=TRAINING),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            help="Calibrate probabilities on the test folds, where that lowers the log loss.",
            rich_help_panel=TRAINING,
        ),
    ] = True,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Maximum number of epochs, which are passes over the graphs.",
            show_default="100, fewer for more than 6,400 graphs; those of --system",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Random seed.", rich_help_panel=TRAINING)
    ] = 0,
    device: DeviceOption = "auto",
    workers: WorkersOption = None,
    smiles_column: SmilesColumnOption = None,
    on_error: OnErrorOption = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    features: FeaturesOption = None,
    descriptors: DescriptorsOption = None,
    root: RootOption = None,
    split: SplitsOption = None,
    test: TestOption = None,
    keep_copies: CopiesOption = False,
) -> None:
    """Train a model, estimate its accuracy or its errors and save it to a file.

    It predicts a class, several labels that are 0 or 1, or one or several numbers, of which some may be missing. Nested
    cross-validation estimates how good it is: the number of epochs and, of several poolings, widths, learning rates and
    so on, the best combination are selected on training graphs only. Then the model is trained on all graphs and saved.

    With --system the model is the network of a paper, such as dgcnn, trained by its own recipe unless options say
    otherwise.

    If the command is interrupted, run it again to continue.
    """
    from sopool._runtime.out_of_memory import advise
    from sopool._runtime.threads import cores
    from sopool.data.sources.catalogue import training_columns
    from sopool.estimator.estimate import check_grid, fits_of, searched
    from sopool.estimator.fitting import training_of
    from sopool.estimator.truth import learned_by_task
    from sopool.report.grids.estimates import calibration_grid, estimate_grid, no_better, usual_metrics

    check_file(output, *source_files(source, root), *([] if test is None else [test]))
    _tell_of_replaced(output)
    if folds == 1:
        raise SettingError("--folds 1: cross-validation needs at least 2 folds. Use 2 or more, or 0 for no estimate.")
    shown_metrics(metrics, task)  # before the graphs are read, which may take long
    own_options = None if system_options is None else settings("--system-options", system_options)
    grid = _grid(pool=pool, gnn=gnn, hidden=hidden, layers=layers, dropout=dropout, batch_size=batch_size, lr=lr)
    grid = _grid_for(system, own_options, search, grid, context, source)
    place = training_device(device)
    given: dict[str, Any] = {
        "pool_options": None if pool_options is None else settings("--pool-options", pool_options),
        "system": system,
        "system_options": own_options,
        "n_models": models,
        "metric": metric,
        "device": place,
        "random_state": seed,
        "checkpoints": None if is_stream(output) else work_folder(output),
    }
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
    kinds_of_split = [None] if split is None else names("--split", split)
    stores = [load_divided(reader, source, kind, test, keep_copies) for kind in kinds_of_split]
    store = stores[0]
    console = output_console()
    if store.labels is None and store.targets is None:
        missing = "no graph has a label to train on" if len(store) else "there are no graphs in it"
        raise DataError(f"{missing}.", shown_source(source))
    divided = [learned_by_task(one, task) for one in stores]
    known = divided[0]
    one = _estimator(known, loss, class_weight, given)
    usual = training_of(one.set_params(epochs=epochs), len(without_test(known.store)))
    epochs = usual["epochs"]
    model = searched(one.set_params(epochs=epochs), grid)
    check_grid(one, grid, known)
    advice = partial(_advice, known.graphs, max(grid.get("batch_size", [usual["batch_size"]])))
    objective = known.objective(metric, loss)
    shown = shown_metrics(metrics, objective.task) or usual_metrics(objective)
    counts = [_check(each, folds, fold_seed, model) for each in divided]
    _describe(store, known)
    store = known.graphs
    networks = (sum(counts) + 1) * fits_of(model) * models
    tally = Tally(networks * epochs, networks, unit="networks", metric=objective.metric)
    found: list[Estimate] = []
    with _kept_in(output):
        for each, count in zip(divided, counts, strict=True) if folds else ():
            with advise("to train", advice):
                work = Work(each.graphs, tally)
                used = (workers or cores()) if place == "cpu" else 1
                found.append(work.estimate(model, count, used, fold_seed, calibrate and not found))
            console.print(estimate_grid(found[-1], shown))
            if found[-1].calibration is not None:
                console.print()
                console.print(calibration_grid(found[-1].calibration))
        meaning = NO_ESTIMATE
        if found:
            meaning = f"{_meaning(found)} {no_better(found[0], class_weight is not None)}".rstrip()
            if class_weight is None and found[0].misses_rare_classes:
                print_message("note", UNBALANCED)
            print_copies_note(store)
        start = time.monotonic()
        with advise("to train", advice):
            store = without_test(store)
            trained = Work(store, tally).fit(model)
        final = getattr(trained, "best_estimator_", trained)
        final.about_["config"] = config_text(context)
        final.about_["searched"] = _searched(grid)
        if found:
            final.about_["estimate"] = found[0].to_json()
            if found[0].temperature is not None:
                final.temperature_ = found[0].temperature
        columns = training_columns(source, smiles_column, label_column, column_names(target_columns))
        final.about_["columns"] = columns.to_json()
        final.save(output)
    seconds = f"{max(1, time.monotonic() - start):,.0f} s"
    what = f"{models} network{'s' * (models > 1)} on all {len(store):,} graphs in {seconds}"
    best = dict(getattr(trained, "best_params_", {}))
    best |= best.pop("system_options", {})
    chosen = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in best.items())
    selected = f" Selected: {chosen}." if chosen else ""
    meaning = meaning.replace("{what}", WHAT[known.task])
    console.print(f"Trained {what} and saved the model to {output}.{selected} {meaning}")


def _tell_of_replaced(output: Path) -> None:
    """Warn that an older model will be replaced; raise ``DataError`` for any other file, which may be a mistake."""
    from sopool.estimator import load_model

    if not output.is_file() or not output.stat().st_size:
        return
    try:
        data = load_model(output, "cpu").trained_on_
    except DataError as error:
        raise DataError(
            f"{error} It would be overwritten: write the model to another file, or delete this one."
        ) from error
    print_message(
        "warning",
        f"{output} holds a model of {data.get('graphs', 0):,} graphs ({data.get('name', 'graphs')}), which the new one "
        "replaces when training ends. To keep it, interrupt this command and give another --output.",
    )


SEARCHED: dict[str, Callable[[str, str], list[Any]]] = {
    "pool": names,
    "gnn": names,
    "hidden": whole_numbers,
    "layers": whole_numbers,
    "dropout": numbers,
    "batch_size": whole_numbers,
    "lr": numbers,
}
"""How each option is read whose values a search may choose from."""


def _grid(**given: str | None) -> dict[str, list[Any]]:
    """Return the values of each setting to choose from; those of options that are not given are left out."""
    return {name: SEARCHED[name](_flag(name), text) for name, text in given.items() if text is not None}


def _grid_for(
    system: str | None,
    options: dict[str, Any] | None,
    search: bool,
    grid: dict[str, list[Any]],
    context: typer.Context,
    source: Sequence[str],
) -> dict[str, list[Any]]:
    """Return the settings to choose from, those of layers and a pooling or those of a system's network."""
    from sopool.estimator.estimate import system_grid

    if system is not None:
        _check_system(system, context, source)
        given = {name: values for name, values in grid.items() if name not in OF_POOLINGS}
        return (system_grid(system, options) if search else {}) | given
    if options is not None or search:
        flag = "--search" if search else "--system-options"
        raise SettingError(f"{flag} is for the network of a system: add, e.g., --system dgcnn.")
    return grid


def _searched(grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the values that there are several of, those of a system's options by the names of the options."""
    found = dict(grid)
    each = found.pop("system_options", [])
    found |= {name: list(dict.fromkeys(one[name] for one in each)) for name in (each[0] if each else ())}
    return {name: values for name, values in found.items() if len(values) > 1}


def _check_system(system: str, context: typer.Context, source: Sequence[str]) -> None:
    """Raise ``SettingError`` unless it is a trained system, and no option is given that its network does not have."""
    from sopool.experiments.systems import SYSTEMS, FixedSystem
    from sopool.models.network import network_of

    if isinstance(SYSTEMS.get(system), FixedSystem):
        raise SettingError(
            f"--system {system}: this is a fixed system, features or a kernel with a learner, not a model that can be "
            f"saved. Evaluate it with: sopool evaluate {' '.join(map(on_one_line, source))} --system {system}."
        )
    network_of(system)
    for name in OF_POOLINGS:
        given = context.get_parameter_source(name)
        if given is not None and given.name == "COMMANDLINE":
            raise SettingError(
                f"{_flag(name)} is for networks with a pooling, but --system {system} is a network of its own: leave "
                "one of the two out. Options of the system are given with --system-options."
            )


def _estimator(
    known: "KnownGraphs",
    loss: Literal["squared", "absolute", "huber"] | None,
    class_weight: Literal["balanced"] | None,
    given: dict[str, Any],
) -> "GraphEstimator":
    """Return the estimator for the task; raise ``SettingError`` for an option that is for another one."""
    from sopool.estimator import GraphClassifier, GraphRegressor

    if known.task != "regression":
        if loss is not None:
            raise SettingError(f"--loss {loss} is for regression, but the task is {known.task}: leave it out.")
        return GraphClassifier(**given, class_weight=class_weight)
    if class_weight is not None:
        raise SettingError(f"--class-weight {class_weight} is for classes, but the task is regression: leave it out.")
    return GraphRegressor(**given, loss=loss or "squared")


@dataclass(frozen=True)
class Work:
    """The graphs to train on, and the progress of all training."""

    store: "PackedGraphs"
    tally: Tally

    def estimate(self, model: Any, folds: int, workers: int, fold_seed: int, calibrate: bool) -> "Estimate":
        """Estimate the accuracy by cross-validation, and print a line for each finished fold."""
        from sopool._runtime.processes import WorkerDiedError
        from sopool.estimator.estimate import estimate
        from sopool.report.scores import score_text, title_of
        from sopool.training.trainer import TrainingProgress

        done = 0

        metric = self.tally.metric

        def tell_of(scores: "dict[str, float | None]") -> None:
            nonlocal done
            done += 1
            score = scores[metric]
            words = "cannot be computed" if score is None else score_text(metric, score)
            told = f"fold {done} of {folds}: {title_of(metric)} {words}"
            print_progress(f"{told} (after {self.tally.elapsed:,.0f} s)")
            report(TrainingProgress(0, 0, where=f"{done} of {folds} folds"))

        with training_progress(self.tally) as report:
            report(TrainingProgress(0, 0, where=f"0 of {folds} folds"))
            try:
                told = (tell_of, _on_epoch(report))
                return estimate(model, self.store, folds, workers, *told, fold_seed=fold_seed, calibrate=calibrate)
            except WorkerDiedError as error:
                print_message("error", with_flags(str(error)))
                raise typer.Exit(1) from error

    def fit(self, model: Any) -> Any:
        """Train the model on all graphs."""
        from sopool.estimator.estimate import fit_labelled, quiet, with_callback
        from sopool.training.trainer import TrainingProgress

        with training_progress(self.tally) as report, quiet():
            report(TrainingProgress(0, 0, where="final model"))
            return fit_labelled(with_callback(model, _on_epoch(report)), self.store)


def _advice(store: "PackedGraphs", batch: int) -> str:
    """Return advice for when there is not enough memory to train."""
    from sopool._runtime.out_of_memory import oversized

    smaller = "Use a smaller --hidden or rank, or fewer --models or --workers."
    return oversized(store.sizes, batch) or smaller


def _flag(name: str, value: object = None) -> str:
    """Format an argument, with or without a value, as an option of the command line."""
    flag = f"--{name.replace('_', '-')}"
    return flag if value is None else f"{flag} {value}"


def _meaning(found: "Sequence[Estimate]") -> str:
    """Say which new graphs the estimates are for; the model is trained with the split of the first one."""
    from sopool.data.division import new_graphs

    first = found[0]
    how = "cross-validation" if len(first.folds) > 1 else "one test set"
    kinds = [on_one_line(new_graphs(one.split)) for one in found]
    text = TESTED if first.split.startswith("test:") else MEANING
    others = [
        f" The estimate by the {on_one_line(one.split)} split is for {kind}."
        for one, kind in zip(found[1:], kinds[1:], strict=True)
    ]
    return text.replace("{how}", how).replace("{new}", kinds[0]) + "".join(others)


def _check(known: "KnownGraphs", folds: int, fold_seed: int, model: Any) -> int:
    """Return the number of folds; raise ``DataError`` if the true values or the split allow no training or estimate."""
    from sopool.data.division import Division
    from sopool.estimator.estimate import check_classes, estimate_folds, least_of_class

    if known.classes is not None:
        at_random = not Division.of(known.store).arrays
        check_classes(known.labelled, folds if at_random else 0, least_of_class(model), _flag)
    known.check()
    return len(estimate_folds(known, folds, fold_seed, model)) if folds else 0


def _describe(store: "PackedGraphs", known: "KnownGraphs") -> None:
    """Print the size of the data and what is learned, so that a wrong class such as N/A or a wrong task is noticed."""
    from rich.table import Table

    from sopool.report.terminal.inspection import class_shares

    console = output_console()
    table = Table.grid(padding=(0, 2, 0, 0))
    kinds = len(known.names)
    graphs = f"{on_one_line(store.name)}: {len(store):,} graphs"
    apart = train_test(store)
    if apart is not None:
        test = f"{apart.test.sum():,} test graphs ({on_one_line(apart.name)})"
        graphs = f"{on_one_line(store.name)}: {apart.train.sum():,} training graphs and {test}"
    of_classes = known.classes is not None
    console.print(f"{graphs} of {kinds:,} class{'es' * (kinds > 1)}." if of_classes else f"{graphs}.")
    for part, counts in _counts(known):
        values = list(zip(known.names, counts.tolist(), strict=True))
        if of_classes:
            table.add_row(f"classes{part}", class_shares(values))
        else:
            listed = "  ".join(f"{on_one_line(name)}: {count:,}" for name, count in values)
            table.add_row(f"known values{part}", listed)
    console.print(table)
    console.print(task_line(known.task, known.names))
    left = len(store) - len(known.store)
    if left:
        print_message(
            "note", f"{left:,} graph{'s' * (left > 1)} without any known target {'are' if left > 1 else 'is'} left out."
        )


def _counts(known: "KnownGraphs") -> list[tuple[str, "np.ndarray"]]:
    """Return the number of graphs of each class or target: of all graphs, or of those that train and that test."""
    apart = train_test(known.store)
    if apart is None:
        return [("", known.counts)]
    return [(", training", known.counts_of(apart.train)), (", test", known.counts_of(apart.test))]


def work_folder(output: Path) -> Path:
    """Return the folder beside the model in which training is kept until the model is saved."""
    return output.with_name(f"{output.name}.work")


@contextmanager
def _kept_in(output: Path) -> Iterator[None]:
    """Say how to continue if training is interrupted; delete what is kept of it at the end, or if it cannot succeed."""
    from sopool.training.runs.store import RunStore

    folder = work_folder(output)
    try:
        yield
    except KeyboardInterrupt:
        if folder.is_dir():
            print_message("note", f"training is kept in {folder}; run the same command again to continue.")
        raise
    except (DataError, SettingError):
        if folder.is_dir():
            RunStore(folder).discard()
        raise
    if folder.is_dir():
        RunStore(folder).discard()


def _on_epoch(report: "Report") -> "OnEpoch":
    """Return a callback that reports epochs; those that early stopping skips count as done."""
    from sopool.training.trainer import TrainingProgress

    def tell_of(epoch: "FitProgress") -> None:
        score = None if epoch.resumed else epoch.validation_score
        epochs = epoch.resumed or 1
        report(TrainingProgress(epoch.training, epochs, score, graphs=epoch.training * epoch.graphs))
        if epoch.finished:
            report(TrainingProgress(epoch.finished, epoch.epochs - epoch.epoch, finished=epoch.finished))

    return tell_of
