"""``sopool demo``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sopool.cli.loading import stored_files
from sopool.cli.output import check_file, output_console, print_message
from sopool.cli.training import show_results, summary, train, training_device, training_executor
from sopool.errors import MissingPackageError

if TYPE_CHECKING:
    from sopool.experiments.results import EvaluationResults

FOLDER = Path("sopool-demo")
POOLS = ("sopool-bimap", "sum-avg")
HIDDEN = (16, 32)
EPOCHS, STEPS = 20, 25
NEXT = "sopool evaluate MUTAG --pool sopool-bimap,sum-avg --protocol fair,per-fold-max"


def demo(
    runs: Annotated[Path, typer.Option(metavar="DIR", help="Folder in which the runs are stored.")] = FOLDER / "runs",
    plot: Annotated[
        Path, typer.Option(metavar="FILE", help="A .svg or .png file for the plot of the learning curves.")
    ] = FOLDER / "curves.svg",
) -> None:
    """Compare second-order pooling with a plain sum on MUTAG, in about a minute on two cores."""
    from sopool.data.sources.boxed import load_boxed
    from sopool.experiments.evaluation import Evaluator, Request, make_grid
    from sopool.report.figures.curves import check_picture
    from sopool.training.runs.store import RunStore

    if plot.parent == FOLDER:
        FOLDER.mkdir(exist_ok=True)
    check_file(plot, *stored_files(runs, plot))
    check_picture(plot)
    store = load_boxed("MUTAG")
    grid = make_grid(HIDDEN, (32,), (0.01,), (0.5,))
    evaluator = Evaluator(store, Request(POOLS, ("fair",), settings=grid, epochs=EPOCHS, steps=STEPS), RunStore(runs))
    console = output_console()
    count = evaluator.total_epochs // EPOCHS
    console.print(
        f"MUTAG: {len(store)} molecules, to be classified as mutagenic or not. The demo compares a GIN with bilinear "
        f"second-order pooling (sopool-bimap) with a GIN that sums the node vectors (sum-avg). It uses 10 folds, width "
        f"{HIDDEN[0]} or {HIDDEN[1]}, epoch and width selected on held-out training graphs, and 3 final runs per fold: "
        f"{count} runs of {EPOCHS} epochs.\n",
    )
    found, tally = train(evaluator, training_device("auto"), None, training_executor())
    show_results(found, POOLS[1], console)
    console.print(f"\n{meaning(found)}\n\n{summary(tally, runs)}{_draw(found, plot)}\nTry next: {NEXT}")


def meaning(results: "EvaluationResults") -> str:
    """Explain the results and their limits."""
    from sopool.report.grid import interval_words, points

    ((_, _, found),) = results.compare(POOLS[1])
    verdict = "which includes 0: the difference is not statistically significant"
    if found.clear:
        verdict = f"which does not include 0: {POOLS[0] if found.difference > 0 else POOLS[1]} is better here"
    return (
        f"What this means: {POOLS[0]} differs from {POOLS[1]} by {points(found.difference)} points, with a 95 % "
        f"confidence interval from {interval_words(found)}, {verdict}. A test fold has 18 or 19 molecules, so a single "
        f"molecule changes its accuracy by more than 5 points. The training is short: {EPOCHS} epochs of {STEPS} "
        "batches, while the paper uses 350 epochs of 50. No test fold was used to select the epoch or the width."
    )


def _draw(results: "EvaluationResults", path: Path) -> str:
    from sopool.report.figures.curves import plot_curves

    try:
        plot_curves(results.reported_runs("fair"), path)
    except MissingPackageError as error:
        print_message("note", f"the learning curves were not plotted: {error}")
        return ""
    return f" The learning curves are in {path}."
