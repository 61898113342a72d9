"""Predict a stream of graphs in chunks, so that memory use does not depend on the number of graphs."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO, get_args

import numpy as np

from sopool._runtime.out_of_memory import advise
from sopool._runtime.threads import one_threaded_pool, threads
from sopool.data.formats.parquet import Kind, ParquetTable
from sopool.data.formats.rows import BadRow, Cells
from sopool.data.names import number_in, reads, whole_number
from sopool.data.pack import Label
from sopool.data.sources.stream import ID_ONLY, NO_NODES, GraphChunk
from sopool.data.targets import GraphLabel, is_missing
from sopool.errors import DataError
from sopool.estimator.base import GraphEstimator
from sopool.estimator.ensemble import largest_number, overflow_reason, overflows
from sopool.models.presets import refused_graphs

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
KINDS: dict[str, Kind] = {"file": str, "row": int, "in_training": bool}
"""The kinds of the columns that are neither of the input nor numbers."""
DIGITS = 6
"""The decimals of a probability."""
SIGNIFICANT = 9
"""The significant digits of a number."""
TAKEN = "input_"
"""The prefix of columns of the input whose names are taken."""
SHOWN = 11
"""The number of unknown labels to keep: one more than is shown, to know whether there are more."""


class Predicted(NamedTuple):
    """The prediction for one graph."""

    source: str
    """The name or path of the source."""
    row: int
    id: Label | None
    cells: Cells | None
    """The whole row, if rows are kept and the source has columns."""
    label: GraphLabel | None
    """The true label or targets, if the source has any."""
    prediction: Any
    """The predicted class, or the list of the predicted labels or numbers."""
    probabilities: list[float] | None
    """The probability of each class, or that each label is 1; None for numbers."""
    uncertainty: Any
    """The uncertainty of the class, or the list of those of the labels or numbers; NaN for a single model."""
    in_training: bool | None
    """Whether the model was trained on the graph; None if it does not know."""


@dataclass
class Count:
    """The totals of a stream."""

    graphs: int = 0
    bad: int = 0
    nodes: int = 0
    unknown: int = 0
    """Nodes with a label or degree that no training graph has."""
    edges: int = 0
    unknown_edges: int = 0
    seen: int = 0
    """Graphs that the model was trained on."""
    labelled: int = 0
    seen_labelled: int = 0
    """Graphs with a label that the model was trained on."""
    correct: int = 0
    foreign: int = 0
    """Labels that are not one of the model's classes, or not values of its targets."""
    strangers: dict[Label, None] = field(default_factory=dict)
    """Some of these labels, in order of appearance."""
    outputs: list[np.ndarray] = field(default_factory=list)
    """The outputs for graphs with known targets ``[n, T]`` each, see :meth:`GraphEstimator.outputs`."""
    truth: list[np.ndarray] = field(default_factory=list)
    """The known targets of these graphs ``[n, T]`` each, NaN for missing ones."""

    @property
    def accuracy(self) -> float | None:
        """The accuracy on graphs with a label; None if no label is one of the model's classes."""
        return self.correct / self.labelled if self.labelled > self.foreign and not self.truth else None

    @property
    def known(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The outputs and the targets of all graphs with known targets; None if there are none."""
        return (np.concatenate(self.outputs), np.concatenate(self.truth)) if self.truth else None


def predict_stream(
    model: GraphEstimator,
    chunks: Iterable[GraphChunk],
    count: Count,
    report_bad_row: Callable[[str | Path, BadRow], None],
    write: Callable[[list[Predicted]], None],
) -> None:
    """Predict and ``write`` each chunk while the next one is read.

    One thread reads, another predicts.

    Args:
        model: The fitted estimator.
        chunks: The graphs, in chunks.
        count: The totals to update.
        report_bad_row: Called with the source and each row that cannot be predicted.
        write: Called with the predictions of each chunk.
    """
    with threads(1) as cores, one_threaded_pool(1) as other:
        before: Future[None] | None = None
        for chunk in chunks:
            if before is not None:
                before.result()
            for one in chunk.bad:
                count.bad += 1
                report_bad_row(chunk.source, one)
            before = other.submit(_predict_chunk, model, chunk, cores, count, report_bad_row, write)
        if before is not None:
            before.result()


def _predict_chunk(
    model: GraphEstimator,
    chunk: GraphChunk,
    cores: int,
    count: Count,
    report_bad_row: Callable[[str | Path, BadRow], None],
    write: Callable[[list[Predicted]], None],
) -> None:
    """Predict one chunk, update the totals and write the predictions."""
    chunk, refused = _without_refused(model, chunk)
    for one in refused:
        count.bad += 1
        report_bad_row(chunk.source, one)
    if chunk.graphs is None:
        return
    with advise("to predict", partial(_largest_row, chunk)):
        features = model.ensemble_.encode(chunk.graphs)
        scores = model.ensemble_.scores(chunk.graphs, features, cores)
        found = model.ensemble_.combine(scores)
    left_out = {graph: (largest_number(chunk.graphs[graph]), overflow_reason("scores")) for graph in overflows(scores)}
    left_out |= dict.fromkeys(chunk.graphs.empty, ("0 nodes", NO_NODES))
    for graph, why in sorted(left_out.items()):
        count.bad += 1
        report_bad_row(chunk.source, BadRow(chunk.rows[graph], *why))
    predicted = (
        found.predicted if model.target_names_ else np.asarray(model.objective_.names, dtype=object)[found.predicted]
    )
    shares = [None] * len(predicted) if found.probabilities is None else found.probabilities.tolist()
    is_seen = model.seen_in_training(chunk.graphs).tolist()
    told = is_seen if model.seen_graphs_ is not None else [None] * len(predicted)
    values = (predicted.tolist(), shares, found.uncertainty.tolist(), told)
    rows = enumerate(zip(chunk.rows, chunk.ids, chunk.cells, chunk.labels, *values, strict=True))
    kept = {graph: Predicted(str(chunk.source), *row) for graph, row in rows if graph not in left_out}
    known = {graph: row for graph, row in kept.items() if _is_known(row.label)}
    count.graphs += len(kept)
    count.nodes += chunk.graphs.num_nodes
    count.unknown += features.unknown
    count.edges += chunk.graphs.num_edges
    count.unknown_edges += model.ensemble_.unknown_edges(chunk.graphs)
    count.labelled += len(known)
    count.seen += sum(is_seen[graph] for graph in kept)
    count.seen_labelled += sum(is_seen[graph] for graph in known)
    if model.target_names_:
        _count_targets(model, known, model.objective_.joint(found), count)
    else:
        _count_classes(model, list(known.values()), count)
    write(list(kept.values()))


def _without_refused(model: GraphEstimator, chunk: GraphChunk) -> tuple[GraphChunk, list[BadRow]]:
    """Return a chunk without the graphs that the system of a model refuses, and these rows."""
    system = model.config_.system
    refused = refused_graphs(chunk.graphs, system) if system and chunk.graphs is not None else {}
    if not refused or chunk.graphs is None:
        return chunk, []
    bad = [BadRow(chunk.rows[at], f"{chunk.graphs[at].num_nodes:,} nodes", why) for at, why in refused.items()]
    kept = [at for at in range(len(chunk.graphs)) if at not in refused]
    lists: dict[str, Any] = {
        name: [getattr(chunk, name)[at] for at in kept] for name in ("rows", "ids", "cells", "labels")
    }
    return replace(chunk, graphs=chunk.graphs[kept] if kept else None, **lists), bad


def _is_known(label: GraphLabel | None) -> bool:
    """Return whether a source gives a label or at least one target."""
    return label is not None and not (isinstance(label, list | float) and is_missing(label))


def _count_classes(model: GraphEstimator, known: list[Predicted], count: Count) -> None:
    """Count the correct predictions.

    A label is correct if its text equals that of the prediction. If the classes are numbers, 01 and 1.0 equal 1, as
    they do when a model is fitted on a file.
    """
    classes = model.objective_.names
    numbers = not any(isinstance(name, str) for name in classes)
    texts = set(map(reads, classes))
    count.correct += sum(_read(row.label, numbers) == reads(row.prediction) for row in known)
    _note_foreign([row.label for row in known if _read(row.label, numbers) not in texts], count)


def _count_targets(model: GraphEstimator, known: dict[int, Predicted], outputs: np.ndarray, count: Count) -> None:
    """Keep the outputs and the true values of graphs with known targets, for the metrics at the end."""
    width = len(model.target_names_)
    values = {graph: _values(row.label, width, model.objective_.task == "multi-label") for graph, row in known.items()}
    read = {graph: one for graph, one in values.items() if one is not None}
    if read:
        count.outputs.append(outputs[list(read)])
        count.truth.append(np.array(list(read.values())))
    _note_foreign([known[graph].label for graph in values if graph not in read], count)


def _values(label: GraphLabel | None, width: int, binary: bool) -> list[float] | None:
    """Return the targets that a source gives, NaN for missing ones; None if they are not those of the model."""
    given = label if isinstance(label, list) else [label]
    read = [number_in(one) if isinstance(one, str) else one for one in given]
    if len(given) != width or any(one is not None and is_missing(one) for one in read):
        return None
    if any(value is None and not is_missing(text) for value, text in zip(read, given, strict=True)):
        return None
    if binary and any(one not in (0, 1) for one in read if one is not None):
        return None
    return [float("nan") if one is None else float(one) for one in read]


def _note_foreign(labels: Sequence[GraphLabel | None], count: Count) -> None:
    """Count labels that are not those of the model, and keep some of them."""
    count.foreign += len(labels)
    shown = (label if isinstance(label, str | int) else str(label) for label in labels)
    count.strangers |= dict.fromkeys(islice(dict.fromkeys(shown), SHOWN - len(count.strangers)))


def _largest_row(chunk: GraphChunk) -> str:
    """Name the largest graph of a chunk and advise to leave it out."""
    assert chunk.graphs is not None
    graph = int(chunk.graphs.sizes.argmax())
    return f"Row {chunk.rows[graph]} has {int(chunk.graphs.sizes[graph]):,} nodes: leave it out, or use more memory."


def _read(label: Any, numbers: bool) -> str:
    text = reads(label)
    number = whole_number(text) if numbers else None
    return text if number is None else str(number)


def column_order(here: Sequence[str], source: str, first: Sequence[str], first_source: str) -> list[int]:
    """Return the place of each column of the first source among those of a source; raise if they differ."""
    if here == first:
        return list(range(len(here)))
    if sorted(here) == sorted(set(first)):
        return [here.index(name) for name in first]
    lacks, more = (
        ", ".join(repr(name) for name in one if name not in other) for one, other in ((first, here), (here, first))
    )
    differ = " and ".join(filter(None, [lacks and f"lacks {lacks}", more and f"has {more}"]))
    raise DataError(
        f"it {differ or 'repeats columns'}, but several sources must have the same columns as the first one, "
        f"{first_source}. Use --drop-input to write no columns of the input.",
        source,
    )


class Writer:
    """Write predictions as CSV, JSON lines or Parquet, after the rows that they are for if these are kept.

    Columns of the input whose names are taken, by predictions or by other columns, get the prefix ``input_``.

    Args:
        file: The file to write to: a text file, or a Parquet file.
        form: ``"csv"``, ``"jsonl"`` or ``"parquet"``.
        model: The estimator whose predictions are written.
        several: Whether the rows are those of several sources, which the column ``file`` names. Default: False.
        kinds: The kinds of the values of the input's columns, for a Parquet file. Default: None, all are text.
    """

    def __init__(
        self,
        file: TextIO | ParquetTable,
        form: Format,
        model: GraphEstimator,
        several: bool = False,
        kinds: Mapping[str, Kind] | None = None,
    ) -> None:
        self._file = file
        self._form = form
        self._targets = model.target_names_
        self._numbers = model.objective_.task == "regression"
        self._names = [str(name) for name in model.objective_.names]
        self._predicts = _kind_of_classes(model)
        self._kinds = kinds or {}
        self._kept: list[str] = []
        """The names under which the cells of rows are written."""
        self._place = ["file", "row"] if several else ["row"]
        self._first: Predicted | None = None
        self._order: tuple[tuple[str, ...] | None, list[int]] | None = None
        """The names of the cells of the current source, and their order as in the first source."""

    def write(self, rows: Iterable[Predicted]) -> None:
        """Write a line for each prediction, and the names of the columns before the first one.

        Nothing is written if there are no predictions at all.
        """
        table: list[list[Any]] = []
        for row in rows:
            values = self._values(row)
            if self._first is None:
                self._begin(row, values)
            place = [row.source, row.row][-len(self._place) :]
            given = self._given(row)
            if self._form == "jsonl":
                self._write_json(row, place, given, values)
                continue
            cells = [
                one for value in values.values() for one in (value.values() if isinstance(value, dict) else [value])
            ]
            table.append([*place, *given, *cells])
        if isinstance(self._file, ParquetTable):
            self._file.write(table)
            return
        csv.writer(self._file, lineterminator="\n").writerows(table)
        self._file.flush()

    def _write_json(self, row: Predicted, place: list[Any], given: list[Any], values: dict[str, Any]) -> None:
        assert not isinstance(self._file, ParquetTable)
        if row.cells is None and row.id is None:
            given = []
        record = zip([*self._place, *self._kept], [*place, *given], strict=False)
        self._file.write(json.dumps(dict(record) | values, ensure_ascii=False) + "\n")

    def _given(self, row: Predicted) -> list[Any]:
        """Return the cells of a row in the order of the columns, or its id."""
        names = None if row.cells is None else row.cells.names
        if self._order is None or self._order[0] is not names:
            self._order = (names, self._columns_of(row))
        return [row.id] if row.cells is None else [row.cells.values[place] for place in self._order[1]]

    def _columns_of(self, row: Predicted) -> list[int]:
        """Return the order of the cells of a source; raise if its columns are not those of the first source."""
        assert self._first is not None
        here, first = (ID_ONLY if one.cells is None else one.cells.names for one in (row, self._first))
        return column_order(here, row.source, first, self._first.source)

    def _values(self, row: Predicted) -> dict[str, Any]:
        """Return what is written of a prediction, by the keys of JSON lines; several values are a dictionary."""
        seen = {} if row.in_training is None else {"in_training": row.in_training}
        if not self._targets:
            assert row.probabilities is not None
            return {
                "prediction": row.prediction,
                "probabilities": self._named(row.probabilities),
                "uncertainty": self._number(row.uncertainty),
            } | seen
        if self._numbers and len(self._targets) == 1:
            found = {"prediction": self._number(row.prediction[0]), "uncertainty": self._number(row.uncertainty[0])}
            return found | seen
        shares = {} if row.probabilities is None else {"probabilities": self._named(row.probabilities)}
        predicted = {"predictions": self._named(row.prediction)}
        return predicted | shares | {"uncertainty": self._named(row.uncertainty)} | seen

    def _named(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return values by the names of the classes or targets."""
        return dict(zip(self._names, map(self._number, values), strict=True))

    def _number(self, value: Any) -> Any:
        """Round a number: a probability to some decimals, another one to significant digits; None for NaN."""
        if value != value:
            return None
        return round(value, DIGITS) if not self._numbers else float(f"{value:.{SIGNIFICANT}g}")

    def _begin(self, row: Predicted, values: dict[str, Any]) -> None:
        """Choose the names of columns, and write them."""
        prefixes = {"predictions": "predicted", "probabilities": "probability"}
        names: list[str] = []
        kinds: list[Kind] = []
        for key, value in values.items():
            own = [f"{prefixes.get(key, key)}_{one}" for one in value] if isinstance(value, dict) else [key]
            names += own
            kinds += [self._predicts if key.startswith("prediction") else KINDS.get(key, float)] * len(own)
        self._first = row
        taken = {*self._place, *(values if self._form == "jsonl" else names)}
        given = ID_ONLY if row.cells is None else row.cells.names
        for name in given:
            while name in taken:
                name = f"{TAKEN}{name}"
            taken.add(name)
            self._kept.append(name)
        every = [*self._place, *self._kept, *names]
        if isinstance(self._file, ParquetTable):
            told = [KINDS.get(name, str) for name in self._place] + [self._kinds.get(name, str) for name in given]
            self._file.begin(every, [*told, *kinds])
        elif self._form == "csv":
            csv.writer(self._file, lineterminator="\n").writerow(every)


def _kind_of_classes(model: GraphEstimator) -> Kind:
    """Return the kind of the predictions: of classes, of labels that are 0 or 1, or of numbers."""
    if model.target_names_:
        return float if model.objective_.task == "regression" else int
    names = model.objective_.names
    kinds = {type(name) for name in names}
    if kinds == {int} and not all(-(2**63) <= name < 2**63 for name in names):
        return str
    return next((kind for kind in (bool, int, float) if kinds == {kind}), str)
