"""``sopool fit``."""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sopool._runtime.visible import on_one_line
from sopool.cli.loading import load_source, print_copies_note, source_files
from sopool.cli.options import (
    LIST,
    MAX_ATOMS,
    DeviceOption,
    LabelColumnOption,
    MaxAtomsOption,
    OnErrorOption,
    RootOption,
    SmilesColumnOption,
    SourceArgument,
    names,
    settings,
    whole_numbers,
)
from sopool.cli.output import check_file, output_console, print_message, print_progress
from sopool.cli.progress import Tally, training_progress
from sopool.cli.training import training_device
from sopool.errors import DataError, SettingError

if TYPE_CHECKING:
    from sopool.data.graphs import PackedGraphs
    from sopool.estimator import FitProgress
    from sopool.estimator.estimate import Estimate, OnEpoch
    from sopool.estimator.validation import LabelledGraphs
    from sopool.training.protocols.metrics import Scores
    from sopool.training.trainer import Report

MEANING = (
    "The estimate above is of models made in the same way from a part of the graphs, each tested on the others; the "
    "model in the file has seen all of them, and none is left to test it on. Expect of it what the estimate says."
)
NO_ESTIMATE = "How good it is was not estimated: --folds 5 does."
UNBALANCED = (
    "balanced accuracy is far below accuracy: graphs of rare classes are taken for common ones. With --class-weight "
    "balanced all classes count alike in training, which finds more of the rare ones and may cost accuracy."
)


def fit(
    source: SourceArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")],
    pool: Annotated[
        str, typer.Option(metavar=LIST, help="How node vectors become a graph vector. Several: the best is chosen.")
    ] = "sopool-bimap",
    pool_options: Annotated[
        str | None, typer.Option(metavar=LIST, help="Its options, such as rank=16,normalize=sqrt.")
    ] = None,
    gnn: Annotated[
        str, typer.Option(help="Message-passing layers, e.g. gin-0; gine also uses edge labels (bond types).")
    ] = "gin-0",
    hidden: Annotated[str, typer.Option(metavar=LIST, help="Their width. Several: the best is chosen.")] = "32",
    models: Annotated[int, typer.Option(min=1, help="Networks that are trained side by side and vote.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Rounds of training at most.")] = 100,
    class_weight: Annotated[
        Literal["balanced"] | None, typer.Option(help="balanced: rare classes count as much as common ones.")
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Of the cross-validation that estimates the accuracy; 0 leaves it out.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of all chance.")] = 0,
    device: DeviceOption = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes to estimate in on a CPU.", show_default="one for each core")
    ] = None,
    root: RootOption = None,
    smiles_column: SmilesColumnOption = None,
    label_column: LabelColumnOption = None,
    on_error: OnErrorOption = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
) -> None:
    """Train a classifier on graphs with labels: first an honest estimate of how good it is, then the model itself.

    The estimate is by cross-validation around everything that is chosen: epochs and, where several are given, pooling
    and width are chosen on training graphs only, and each graph is predicted by models that have not seen it. Then the
    model is trained on all graphs.
    """
    from sopool._runtime.out_of_memory import advise
    from sopool._runtime.threads import cores
    from sopool.estimator import GraphClassifier
    from sopool.estimator.estimate import check_classes, check_grid, fits_of, least_of_class, searched
    from sopool.estimator.validation import label_graphs
    from sopool.report.grids.estimates import estimate_grid, no_better

    check_file(output, *source_files(source, root))
    if folds == 1:
        raise SettingError("--folds 1: at least 2 are needed, one to test and one to train; 0 leaves the estimate out.")
    grid: dict[str, list[Any]] = {"pool": names("--pool", pool), "hidden": whole_numbers("--hidden", hidden)}
    place = training_device(device)
    one = GraphClassifier(
        pool_options=None if pool_options is None else settings("--pool-options", pool_options),
        gnn=gnn,
        n_models=models,
        epochs=epochs,
        class_weight=class_weight,
        device=place,
        random_state=seed,
    )
    store = load_source(source, root, smiles_column, label_column, on_error, max_atoms)
    console = output_console()
    if store.labels is None:
        missing = "no graph has a label to learn from" if len(store) else "there are no graphs in it"
        raise DataError(f"{missing}.", source)
    labelled = label_graphs(store)
    model = searched(one, grid)
    check_grid(one, grid, store)
    check_classes(labelled, folds, least_of_class(model), _flag)
    console.print(f"{on_one_line(store.name)}: {len(store):,} graphs of {_classes(labelled)}")
    networks = (folds + 1) * fits_of(model) * models
    work = Work(store, Tally(networks * epochs, networks, unit="networks"))
    figures = None
    meaning = NO_ESTIMATE
    if folds:
        with advise("to train", partial(_advice, store, one.batch_size)):
            found = work.estimate(model, folds, (workers or cores()) if place == "cpu" else 1)
        figures = found.to_json()
        console.print(estimate_grid(figures))
        meaning = f"{MEANING} {no_better(figures, class_weight is not None)}".rstrip()
        if class_weight is None and found.misses_rare_classes:
            print_message("note", UNBALANCED)
        print_copies_note(store)
    start = time.monotonic()
    with advise("to train", partial(_advice, store, one.batch_size)):
        trained = work.fit(model)
    final: GraphClassifier = getattr(trained, "best_estimator_", trained)
    if figures is not None:
        final.about_["estimate"] = figures
    final.save(output)
    chosen = "".join(f" {name} {value}," for name, value in getattr(trained, "best_params_", {}).items())
    what = f"{models} network{'s' * (models > 1)} trained on all {len(store):,} graphs"
    seconds = f"{time.monotonic() - start:,.0f} s"
    console.print(f"The model:{chosen} {what} in {seconds}, in {output}. {meaning}")


@dataclass(frozen=True)
class Work:
    """What there is to train on, with progress over all of it."""

    store: "PackedGraphs"
    tally: Tally

    def estimate(self, model: Any, folds: int, workers: int) -> "Estimate":
        """By cross-validation, with a line for each fold that is done."""
        from sopool._runtime.processes import WorkerDiedError
        from sopool.estimator.estimate import estimate
        from sopool.training.trainer import TrainingProgress

        done = 0

        def tell_of(scores: "Scores") -> None:
            nonlocal done
            done += 1
            told = f"fold {done} of {folds}: accuracy {100 * scores['accuracy']:.1f} %"
            print_progress(f"{told} ({self.tally.elapsed:,.0f} s)")
            report(TrainingProgress(0, 0, where=f"{done} of {folds} folds"))

        with training_progress(self.tally) as report:
            report(TrainingProgress(0, 0, where=f"0 of {folds} folds"))
            try:
                return estimate(model, self.store, folds, workers, tell_of, _on_epoch(report))
            except WorkerDiedError as error:
                print_message("error", str(error))
                raise typer.Exit(1) from error

    def fit(self, model: Any) -> Any:
        """On all graphs."""
        from sopool.estimator.estimate import fit_labelled, quiet, with_callback
        from sopool.training.trainer import TrainingProgress

        with training_progress(self.tally) as report, quiet():
            report(TrainingProgress(0, 0, where="the model itself"))
            return fit_labelled(with_callback(model, _on_epoch(report)), self.store)


def _advice(store: "PackedGraphs", batch: int) -> str:
    """Say what helps where there is not enough memory to train."""
    from sopool._runtime.out_of_memory import oversized

    smaller = "Take a smaller --hidden or rank, or fewer --models or --workers."
    return oversized(store.sizes, batch) or smaller


def _flag(name: str, value: object = None) -> str:
    """Name an argument in a message, with a value or without, as the command line has it."""
    flag = f"--{name.replace('_', '-')}"
    return flag if value is None else f"{flag} {value}"


def _classes(labelled: "LabelledGraphs") -> str:
    """All that were found, with how many graphs each has: one that is none, such as N/A, is seen so."""
    from sopool.report.terminal.inspection import class_shares

    each = list(zip(labelled.classes.tolist(), labelled.counts.tolist(), strict=True))
    return f"{len(each):,} class{'es' * (len(each) > 1)}.\nclasses  {class_shares(each)}"


def _on_epoch(report: "Report") -> "OnEpoch":
    """Return what tells the display of the epochs of ensembles; models that stop early have nothing left to do."""
    from sopool.training.trainer import TrainingProgress

    def tell_of(epoch: "FitProgress") -> None:
        report(TrainingProgress(epoch.training, 1, epoch.validation_accuracy))
        if epoch.finished:
            report(TrainingProgress(epoch.finished, epoch.epochs - epoch.epoch, finished=epoch.finished))

    return tell_of
