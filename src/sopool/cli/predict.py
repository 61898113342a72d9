"""``sopool predict``."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from sopool._files.atomic import is_stream, whole_file
from sopool._runtime.packages import require
from sopool.cli.loading import load_model_for, own_columns, shown_source, source_files
from sopool.cli.options import (
    DATA,
    MAX_ATOMS,
    IdColumnOption,
    MaxAtomsOption,
    ModelArgument,
    RootOption,
    SmilesColumnOption,
    StreamsArgument,
    TruthColumnsOption,
)
from sopool.cli.output import STDIN, check_target, error_console, format_of, is_stdout, open_target, print_message
from sopool.errors import DataError, OnError, SettingError

if TYPE_CHECKING:
    from sopool.data.formats.parquet import Kind, ParquetTable
    from sopool.data.formats.rows import BadRow, RowOptions
    from sopool.data.names import Needed
    from sopool.estimator import GraphEstimator
    from sopool.estimator.streaming import Count, Format

SHOWN = 10
"""The number of unreadable rows that get a message of their own."""


def predict(
    model: ModelArgument,
    source: StreamsArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A .csv, .jsonl or .parquet file to write; - is standard output."
        ),
    ] = Path("-"),
    label_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Column or property with the true class or number; prints scores."),
    ] = None,
    target_columns: TruthColumnsOption = None,
    form: Annotated[
        Literal["csv", "jsonl", "parquet"] | None,
        typer.Option("--format", help="Output format.", show_default="by file name, else csv"),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="Device to compute on: auto, cpu, cuda or, e.g., cuda:1.")
    ] = "auto",
    smiles_column: SmilesColumnOption = None,
    id_column: IdColumnOption = None,
    drop_input: Annotated[
        bool, typer.Option("--drop-input", help="Write only the row, the id and the predictions.")
    ] = False,
    on_error: Annotated[
        OnError, typer.Option(help="Skip rows that cannot be read, or stop with an error.", rich_help_panel=DATA)
    ] = "skip",
    max_atoms: MaxAtomsOption = MAX_ATOMS,
    root: RootOption = None,
) -> None:
    """Predict graphs with a saved model.

    Files of any size are processed in chunks. Each output row has the row number, all columns of the input (or the id,
    if it is not a table), the predicted class, labels or numbers, the probability of each class or label, an
    uncertainty (how far the networks of the ensemble disagree), and in_training: whether the model was trained on the
    graph. Columns that the model was trained on are found by their names; where the true values are known, scores are
    printed at the end. Of several files, which must have the same columns, each row also has the name of its file.
    """
    from sopool._runtime.out_of_memory import advise
    from sopool.data.formats.rows import row_options
    from sopool.data.sources.stream import stream_graphs
    from sopool.estimator.streaming import FORMATS, Count, Writer, predict_stream

    check_target(output, model, *source_files(source, root))
    chosen = form or format_of(output, *FORMATS)
    if chosen == "parquet":
        require("writing Parquet files", "pyarrow")
        if is_stdout(output):
            raise SettingError("--format parquet needs a file to write to, e.g. -o predictions.parquet.")
    estimator = load_model_for(model, source, device)
    columns = own_columns(estimator, target_columns)
    count = Count()
    start = time.monotonic()
    fields = estimator.ensemble_.fields
    also = () if estimator.seen_graphs_ is None else estimator.seen_graphs_.fields
    options = row_options(
        smiles_column,
        label_column,
        columns,
        max_atoms,
        id_column=id_column,
        training=estimator.columns_,
        keep=not drop_input,
    )
    if len(source) > 1:
        _check_columns(source, fields, options)
    chunks = chain.from_iterable(stream_graphs(one, fields, options, root, also) for one in source)
    smaller = "Remove graphs that are too large."
    with advise(f"to read {shown_source(source)}", lambda: smaller), _opened(output, chosen) as file:
        kinds = _input_kinds(source) if chosen == "parquet" else None
        writer = Writer(file, chosen, estimator, len(source) > 1, kinds)
        predict_stream(estimator, chunks, count, _refuser(on_error), writer.write)
        _check_any(count, source)  # before the file takes the place of another
    _conclude(count, time.monotonic() - start, output, estimator)


@contextmanager
def _opened(output: Path, form: "Format") -> "Iterator[TextIO | ParquetTable]":
    """Open the file to write predictions to."""
    from sopool.data.formats.parquet import ParquetTable

    if form == "parquet":
        with whole_file(output) as temporary, ParquetTable(temporary) as table:
            yield table
        return
    with open_target(output) as file:
        yield file


def _input_kinds(source: list[str]) -> "dict[str, Kind]":
    """Return the kinds of the values of the input's columns; all but those of Parquet files are text."""
    from sopool.data.formats.kinds import suffix_of
    from sopool.data.formats.parquet import column_kinds, merged_kinds

    return merged_kinds([column_kinds(one) if suffix_of(Path(one)) == ".parquet" else {} for one in source])


def _check_columns(source: list[str], fields: "Mapping[str, Needed]", options: "RowOptions") -> None:
    """Raise if a file among several has other columns than the first one; pipes are checked as they are read."""
    from sopool.data.sources.stream import columns_of
    from sopool.estimator.streaming import column_order

    first = None
    for one in source:
        place = Path(one)
        if one == STDIN or (place.exists() and is_stream(place)):
            continue
        here = columns_of(one, fields, options)
        if here is not None:
            first = first or (one, here)
            column_order(here, one, *first[::-1])


def _refuser(on_error: OnError) -> "Callable[[str | Path, BadRow], None]":
    from sopool.data.sources.stream import place_of

    said = 0

    def report_bad_row(source: str | Path, bad: "BadRow") -> None:
        nonlocal said
        error = place_of(source).error(bad.row, f"{bad.reason} Found {bad.text[:60]!r}.")
        if on_error == "raise":
            raise error
        said += 1
        if said <= SHOWN:
            print_message("warning", f"skipped: {error}")
        elif said == SHOWN + 1:
            print_message("warning", "further skipped rows are not listed; --on-error raise stops at the first one.")

    return report_bad_row


def _check_any(count: "Count", source: list[str]) -> None:
    from sopool.data.sources.stream import place_of

    if not count.graphs:
        bad = f"none of the {count.bad:,} rows can be read." if count.bad > 1 else "the only row cannot be read."
        raise DataError(
            bad if count.bad else "there are no graphs to predict.",
            ", ".join(str(place_of(one).path) for one in source),
        )


def _conclude(count: "Count", seconds: float, output: Path, estimator: "GraphEstimator") -> None:
    from sopool.estimator.validation import unknown_messages

    where = "" if is_stdout(output) else f" The predictions are in {output}."
    skipped = f", {count.bad:,} row{'s' * (count.bad > 1)} skipped," if count.bad else ""
    speed = count.graphs / max(seconds, 1e-9)
    graphs = f"{count.graphs:,} graph{'s' * (count.graphs > 1)}"
    print_message("note", f"predicted {graphs}{skipped} in {seconds:,.1f} s, {speed:,.0f} per second.{where}")
    for message in unknown_messages((count.unknown, count.nodes), (count.unknown_edges, count.edges)):
        print_message("note", message)
    if estimator.target_names_:
        _tell_of_targets(count, estimator)
    else:
        _tell_of_classes(count, estimator)
    _tell_of_seen(count)


def _tell_of_seen(count: "Count") -> None:
    """Print how many of the graphs the model was trained on, which it predicts better than new ones."""
    if not count.seen:
        return
    scored = count.accuracy is not None or count.known is not None
    seen, total = (count.seen_labelled, count.labelled) if scored else (count.seen, count.graphs)
    if not seen:
        return
    were = f"{seen:,} of {total:,} {'labelled ' * scored}graphs {'were' if seen > 1 else 'was'} in the training data"
    if scored:
        so = "scores on them are too good for new graphs. See the estimate that sopool fit prints"
        print_message("warning", f"{were}: {so}.")
    else:
        print_message("note", f"{were}.")


def _tell_of_classes(count: "Count", estimator: "GraphEstimator") -> None:
    """Print the accuracy, and which labels are not classes of the model."""
    from sopool.estimator.validation import foreign_message

    if count.foreign:
        message = foreign_message(count.strangers, count.foreign, count.labelled, estimator.objective_.names)
        so = "They count as wrong" if count.accuracy is not None else "No accuracy can be computed"
        print_message("warning", f"{message} {so}. Use --label-column to name another column or property.")
    if count.accuracy is not None:
        share = f"{count.correct:,} of {count.labelled:,} predictions are correct"
        print_message("note", f"accuracy {100 * count.accuracy:.1f} %: {share}.")


def _tell_of_targets(count: "Count", estimator: "GraphEstimator") -> None:
    """Print the scores of each target, and which labels are not values of the model's targets."""
    from sopool.estimator.validation import listing
    from sopool.report.grids.estimates import scores_grid, usual_metrics
    from sopool.report.scores import score_text, title_of

    objective = estimator.objective_
    targets = estimator.target_names_
    if count.foreign:
        kind = "0 or 1" if objective.task == "multi-label" else "a number"
        needed = kind if len(targets) == 1 else f"{len(targets)} values, each {kind} or missing"
        print_message(
            "warning",
            f"{count.foreign:,} of {count.labelled:,} labels are not scored: {listing(list(count.strangers))}. "
            f"Expected for each graph {needed}. Name the columns of the targets with --target-columns.",
        )
    if count.known is None:
        return
    outputs, truth = count.known
    each = objective.score_targets(outputs, truth, usual_metrics(objective))
    known = (truth == truth).sum(0).tolist()
    if len(targets) > 1:
        error_console().print(scores_grid(objective, each, known))
        return
    scores = [f"{title_of(name)} {score_text(name, one)}" for name, (one,) in each.items() if one is not None]
    print_message("note", f"{', '.join(scores) or 'no score can be computed'} on {known[0]:,} known values.")
