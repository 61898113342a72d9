"""``sopool fit``."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape

from sopool.cli.loading import load_source
from sopool.cli.options import (
    Device,
    LabelColumn,
    Root,
    SmilesColumn,
    Source,
    WhenUnreadable,
    names,
    settings,
    whole_numbers,
)
from sopool.cli.output import check_target, out
from sopool.cli.training import choose_device

if TYPE_CHECKING:
    from sopool.data.store import PackedGraphs
    from sopool.estimator.estimate import Estimate

MEANING = (
    "The estimate above is of models made in the same way from a part of the graphs, each tested on the others; the "
    "model in the file has seen all of them, and none is left to test it on. Expect of it what the estimate says."
)
NO_ESTIMATE = "How good it is was not estimated: --folds 5 does."


def fit(
    source: Source,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")],
    pool: Annotated[str, typer.Option(help="How node vectors become a graph vector. Several: the best is chosen.")] = (
        "sopool-bimap"
    ),
    pool_options: Annotated[str | None, typer.Option(help="Its options, such as rank=16,normalize=sqrt.")] = None,
    gnn: Annotated[str, typer.Option(help="The message-passing layers, such as gin-0; gine hears bonds.")] = "gin-0",
    hidden: Annotated[str, typer.Option(help="Their width. Several: the best is chosen.")] = "32",
    models: Annotated[int, typer.Option(min=1, help="Networks that are trained side by side and vote.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Rounds of training at most.")] = 100,
    class_weight: Annotated[
        Literal["balanced"] | None, typer.Option(help="balanced: rare classes count as much as common ones.")
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Of the cross-validation that estimates the accuracy; 0 leaves it out.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of all chance.")] = 0,
    device: Device = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes to estimate in on a CPU.", show_default="one for each core")
    ] = None,
    root: Root = None,
    smiles_column: SmilesColumn = None,
    label_column: LabelColumn = None,
    on_error: WhenUnreadable = "skip",
) -> None:
    """Train a classifier on graphs with labels: first an honest estimate of how good it is, then the model itself.

    The estimate is by cross-validation around everything that is chosen: epochs and, where several are given, pooling
    and width are chosen on training graphs only, and each graph is predicted by models that have not seen it. Then the
    model is trained on all graphs.
    """
    from sopool.data.errors import DataError
    from sopool.estimator import GraphClassifier
    from sopool.estimator.estimate import quiet, searched
    from sopool.estimator.inputs import own_labels

    check_target(output)
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
    store, console = load_source(source, root, smiles_column, label_column, on_error), out()
    labels, model = own_labels(store), searched(one, grid)
    _say(console, f"{store.name}: {len(store):,} graphs of {len(set(labels.tolist())):,} classes.")
    found = _estimate(model, store, labels, folds, workers or os.cpu_count() or 1, place, console) if folds else None
    start = time.monotonic()
    with quiet():
        model.fit(store, labels)
    final: GraphClassifier = getattr(model, "best_estimator_", model)
    if found is not None:
        final.about_["estimate"] = found.to_json()
    final.save(output)
    chosen = "".join(f" {name} {value}," for name, value in getattr(model, "best_params_", {}).items())
    networks = f"{models} network{'s' * (models > 1)}"
    trained = f"{networks} trained on all {len(store):,} graphs in {time.monotonic() - start:,.0f} s"
    _say(console, f"The model:{chosen} {trained}, in {output}. {MEANING if found else NO_ESTIMATE}")


def _estimate(
    model: Any,
    store: "PackedGraphs",
    labels: Any,
    folds: int,
    workers: int,
    place: str,
    console: Console,
) -> "Estimate":
    """With a line for each fold that is done."""
    from sopool.estimator.estimate import estimate
    from sopool.report.estimates import estimate_table

    start, done = time.monotonic(), 0

    def report(scores: Any) -> None:
        nonlocal done
        done += 1
        seconds = time.monotonic() - start
        print(f"fold {done} of {folds}: accuracy {100 * scores['accuracy']:.1f} % ({seconds:,.0f} s)", file=sys.stderr)

    found = estimate(model, store, labels, folds, workers if place == "cpu" else 1, report)
    console.print(estimate_table(found.to_json()))
    return found


def _say(console: Console, text: str) -> None:
    console.print(escape(text), highlight=False)
