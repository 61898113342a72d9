"""``sopool fit``."""

import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from reprlib import repr as show
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sopool._runtime.visible import on_one_line
from sopool.cli.console import out, tell
from sopool.cli.loading import load_source, say_copies, source_files
from sopool.cli.options import (
    LIST,
    MAX_ATOMS,
    Device,
    LabelColumn,
    MaxAtoms,
    Root,
    SmilesColumn,
    Source,
    WhenUnreadable,
    names,
    settings,
    whole_numbers,
)
from sopool.cli.output import say
from sopool.cli.progress import Tally, training_progress
from sopool.cli.target import check_file
from sopool.cli.training import choose_device

if TYPE_CHECKING:
    import numpy as np

    from sopool.data.graphs import PackedGraphs
    from sopool.estimator import FitProgress
    from sopool.estimator.estimate import Estimate, Watch
    from sopool.training.protocols.metrics import Scores
    from sopool.training.trainer import Report

MEANING = (
    "The estimate above is of models made in the same way from a part of the graphs, each tested on the others; the "
    "model in the file has seen all of them, and none is left to test it on. Expect of it what the estimate says."
)
NO_ESTIMATE = "How good it is was not estimated: --folds 5 does."
MANY_CLASSES = 10
"""With more classes than this, each should have more than two graphs on average; small examples may have fewer."""
FAR = 0.1
UNBALANCED = (
    "balanced accuracy is far below accuracy: graphs of rare classes are taken for common ones. With --class-weight "
    "balanced all classes count alike in training, which finds more of the rare ones and may cost accuracy."
)


def fit(
    source: Source,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")],
    pool: Annotated[
        str, typer.Option(metavar=LIST, help="How node vectors become a graph vector. Several: the best is chosen.")
    ] = "sopool-bimap",
    pool_options: Annotated[
        str | None, typer.Option(metavar=LIST, help="Its options, such as rank=16,normalize=sqrt.")
    ] = None,
    gnn: Annotated[str, typer.Option(help="The message-passing layers, such as gin-0; gine hears bonds.")] = "gin-0",
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
    device: Device = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes to estimate in on a CPU.", show_default="one for each core")
    ] = None,
    root: Root = None,
    smiles_column: SmilesColumn = None,
    label_column: LabelColumn = None,
    on_error: WhenUnreadable = "skip",
    max_atoms: MaxAtoms = MAX_ATOMS,
) -> None:
    """Train a classifier on graphs with labels: first an honest estimate of how good it is, then the model itself.

    The estimate is by cross-validation around everything that is chosen: epochs and, where several are given, pooling
    and width are chosen on training graphs only, and each graph is predicted by models that have not seen it. Then the
    model is trained on all graphs.
    """
    from sopool._runtime.out_of_memory import advise
    from sopool._runtime.threads import cores
    from sopool.errors import DataError
    from sopool.estimator import GraphClassifier
    from sopool.estimator.estimate import INNER_FOLDS, check_settings, fits_of, searched
    from sopool.estimator.validation import own_labels
    from sopool.report.terminal.estimates import estimate_table, no_better

    check_file(output, *source_files(source, root))
    if folds == 1:
        raise DataError("--folds 1: at least 2 are needed, one to test and one to train; 0 leaves the estimate out.")
    grid: dict[str, list[Any]] = {"pool": names("--pool", pool), "hidden": whole_numbers("--hidden", hidden)}
    place = choose_device(device)
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
    console = out()
    if store.labels is None:
        missing = "no graph has a label to learn from" if len(store) else "there are no graphs in it"
        raise DataError(f"{missing}.", source)
    labels = own_labels(store)
    model = searched(one, grid)
    check_settings(one, grid, store)
    check_classes(labels.tolist(), folds, INNER_FOLDS if fits_of(model) > 1 else 1)
    console.print(f"{on_one_line(store.name)}: {len(store):,} graphs of {_classes(labels.tolist())}")
    networks = (folds + 1) * fits_of(model) * models
    work = Work(store, labels, Tally(networks * epochs, networks, unit="networks"))
    figures, meaning = None, NO_ESTIMATE
    if folds:
        with advise("to train", partial(_advice, store, one.batch_size)):
            found = work.estimate(model, folds, (workers or cores()) if place == "cpu" else 1)
        figures = found.to_json()
        console.print(estimate_table(figures))
        meaning = f"{MEANING} {no_better(figures, class_weight is not None)}".rstrip()
        if class_weight is None and (found.mean("accuracy") or 0) - (found.mean("balanced_accuracy") or 1) > FAR:
            say("note", UNBALANCED)
        say_copies(store)
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
    labels: "np.ndarray"
    tally: Tally

    def estimate(self, model: Any, folds: int, workers: int) -> "Estimate":
        """By cross-validation, with a line for each fold that is done."""
        from sopool._runtime.processes import WorkerDiedError
        from sopool.estimator.estimate import estimate
        from sopool.training.trainer import Progress

        done = 0

        def tell_of(scores: "Scores") -> None:
            nonlocal done
            done += 1
            told = f"fold {done} of {folds}: accuracy {100 * scores['accuracy']:.1f} %"
            tell(f"{told} ({self.tally.elapsed:,.0f} s)")
            report(Progress(0, 0, where=f"{done} of {folds} folds"))

        with training_progress(self.tally) as report:
            report(Progress(0, 0, where=f"0 of {folds} folds"))
            try:
                return estimate(model, self.store, self.labels, folds, workers, tell_of, _watch(report))
            except WorkerDiedError as error:
                say("error", str(error))
                raise typer.Exit(1) from error

    def fit(self, model: Any) -> Any:
        """On all graphs."""
        from sopool.estimator.estimate import quiet, watched
        from sopool.training.trainer import Progress

        with training_progress(self.tally) as report, quiet():
            report(Progress(0, 0, where="the model itself"))
            return watched(model, _watch(report)).fit(self.store, self.labels)


def _advice(store: "PackedGraphs", batch: int) -> str:
    """Say what helps where there is not enough memory to train."""
    from sopool._runtime.out_of_memory import oversized

    smaller = "Take a smaller --hidden or rank, or fewer --models or --workers."
    return oversized(store.sizes, batch) or smaller


def check_classes(labels: list[Any], folds: int, needed: int) -> None:
    """Raise a ``DataError`` where so many graphs of each class are ``needed`` to train on and a fold leaves fewer."""
    from sopool.errors import DataError

    counts = Counter(labels)
    if MANY_CLASSES < len(counts) > len(labels) / 2:
        raise DataError(
            f"{len(counts):,} classes of {len(labels):,} graphs: these labels look like names or measurements, not "
            "classes, and regression is not available yet. --label-column names another column or property."
        )
    rare, count = counts.most_common()[-1]
    if count < folds:
        trains = needed <= count < len(labels)
        _check_folds(labels, folds, " --folds 0 trains without an estimate." if trains else "")
    if _left(count, folds) >= needed:
        return
    what = f"class {show(rare)} has {count} graph{'s' * (count > 1)}"
    what += f", of which --folds {folds} can leave {_left(count, folds)} to train on" if folds else ""
    more = next((more for more in range(folds + 1, count + 1) if folds and _left(count, more) >= needed), None)
    ways = [f"say --folds {more}"] if more else ["say --folds 0 (no estimate)"] if folds and count >= needed else []
    advice = ", or ".join([*ways, "add graphs to the class or leave it out"])
    raise DataError(f"{what}; at least {needed} are needed, some to train on and some to choose by: {advice}.")


def _check_folds(labels: list[Any], folds: int, way_out: str) -> None:
    """In the words of the folds themselves, and with the way out that only this command has."""
    from sopool.data.splits import stratified_folds
    from sopool.errors import DataError, UserError

    try:
        stratified_folds(labels, folds)
    except UserError as error:
        raise DataError(f"{error}{way_out}") from error


def _left(count: int, folds: int) -> int:
    """Of the graphs of a class, those to train on in the fold that tests most of them."""
    return count - -(-count // folds) if folds else count


def _classes(labels: list[Any]) -> str:
    """All that were found, with how many graphs each has: one that is none, such as N/A, is seen so."""
    from sopool.data.names import sort_names
    from sopool.report.terminal.datasets import class_shares

    counts = Counter(labels)
    each = [(name, counts[name]) for name in sort_names(labels)]
    return f"{len(each):,} class{'es' * (len(each) > 1)}.\nclasses  {class_shares(each)}"


def _watch(report: "Report") -> "Watch":
    """What tells the display of the epochs of ensembles; models that stop early have nothing left to do."""
    from sopool.training.trainer import Progress

    def watch(epoch: "FitProgress") -> None:
        report(Progress(epoch.training, 1, epoch.validation_accuracy))
        if epoch.finished:
            report(Progress(epoch.finished, epoch.epochs - epoch.epoch, finished=epoch.finished))

    return watch
