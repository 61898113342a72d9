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
    runs: Annotated[Path, typer.Option(help="The folder where its runs are kept.")] = FOLDER / "runs",
    plot: Annotated[Path, typer.Option(metavar="FILE", help="The picture of the curves.")] = FOLDER / "curves.svg",
) -> None:
    """Second-order pooling against a plain sum on MUTAG, honestly compared: about a minute on two cores."""
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
        f"MUTAG: {len(store)} molecules, which of them make bacteria mutate? A GIN with bilinear second-order pooling "
        f"(sopool-bimap) against one that adds node vectors up (sum-avg): 10 folds, hidden {HIDDEN[0]} or {HIDDEN[1]}, "
        f"epoch and width chosen on held-out graphs, 3 final runs for each fold. {count} runs of {EPOCHS} epochs.\n",
    )
    found, tally = train(evaluator, training_device("auto"), None, training_executor())
    show_results(found, POOLS[1], console)
    console.print(f"\n{meaning(found)}\n\n{summary(tally, runs)}{_draw(found, plot)}\nTry next: {NEXT}")


def meaning(results: "EvaluationResults") -> str:
    """Say what the figures mean, and what they do not."""
    from sopool.report.grid import interval_words, points

    ((_, _, found),) = results.compare(POOLS[1])
    verdict = "which includes 0: neither is shown to be better"
    if found.clear:
        verdict = f"which does not include 0: {POOLS[0] if found.difference > 0 else POOLS[1]} is better here"
    return (
        f"What this means: {POOLS[0]} differs from {POOLS[1]} by {points(found.difference)} points, with a 95 % "
        f"interval from {interval_words(found)}, {verdict}. A test fold has 18 or 19 molecules, so one of them "
        f"is more than 5 points of its accuracy; and {EPOCHS} epochs of {STEPS} batches are few, the paper trains "
        "350 of 50. The figures are honest for so short a training: no test fold had a say in what was chosen."
    )


def _draw(results: "EvaluationResults", path: Path) -> str:
    from sopool.report.figures.curves import plot_curves

    try:
        plot_curves(results.reported_runs("fair"), path)
    except MissingPackageError as error:
        print_message("note", f"no picture of the curves: {error}")
        return ""
    return f" The curves are in {path}."
