"""Predict a stream of graphs in chunks, so that memory use does not depend on the number of graphs."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Literal, NamedTuple, TextIO, get_args

from sopool._runtime.out_of_memory import advise
from sopool._runtime.threads import one_threaded_pool, threads
from sopool.data.formats.rows import BadRow
from sopool.data.names import reads, whole_number
from sopool.data.pack import Label
from sopool.data.sources.stream import NO_NODES, GraphChunk
from sopool.estimator.classifier import GraphClassifier
from sopool.estimator.ensemble import largest_number, overflow_reason, overflows

Format = Literal["csv", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)
DIGITS = 6
SHOWN = 11
"""The number of unknown labels to keep: one more than is shown, to know whether there are more."""


class Predicted(NamedTuple):
    """The prediction for one graph."""

    row: int
    id: Label | None
    label: Label | None
    """The true label, if the source has one."""
    prediction: Any
    probabilities: list[float]
    uncertainty: float


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
    labelled: int = 0
    labelled_nodes: int = 0
    """Nodes of graphs that have a label."""
    correct: int = 0
    foreign: int = 0
    """Labels that are not one of the model's classes."""
    strangers: dict[Label, None] = field(default_factory=dict)
    """Some of these labels, in order of appearance."""

    @property
    def accuracy(self) -> float | None:
        """The accuracy on graphs with a label; None if no label is one of the model's classes."""
        return self.correct / self.labelled if self.labelled > self.foreign else None


def predict_stream(
    model: GraphClassifier,
    chunks: Iterable[GraphChunk],
    count: Count,
    report_bad_row: Callable[[BadRow], None],
    write: Callable[[list[Predicted]], None],
) -> None:
    """Predict and ``write`` each chunk while the next one is read.

    One thread reads, another predicts.

    Args:
        model: The fitted classifier.
        chunks: The graphs, in chunks.
        count: The totals to update.
        report_bad_row: Called with each row that cannot be predicted.
        write: Called with the predictions of each chunk.
    """
    with threads(1) as cores, one_threaded_pool(1) as other:
        before: Future[None] | None = None
        for chunk in chunks:
            if before is not None:
                before.result()
            for one in chunk.bad:
                count.bad += 1
                report_bad_row(one)
            before = other.submit(_predict_chunk, model, chunk, cores, count, report_bad_row, write)
        if before is not None:
            before.result()


def _predict_chunk(
    model: GraphClassifier,
    chunk: GraphChunk,
    cores: int,
    count: Count,
    report_bad_row: Callable[[BadRow], None],
    write: Callable[[list[Predicted]], None],
) -> None:
    """Predict one chunk, update the totals and write the predictions.

    A label is correct if its text equals that of the prediction. If the classes are numbers, 01 and 1.0 equal 1, as
    they do when a model is fitted on a file.
    """
    if chunk.graphs is None:
        return
    with advise("to predict", partial(_largest_row, chunk)):
        features = model.ensemble_.encode(chunk.graphs)
        scores = model.ensemble_.scores(chunk.graphs, features, cores)
        found = model.combine(scores)
    left_out = {graph: (largest_number(chunk.graphs[graph]), overflow_reason("scores")) for graph in overflows(scores)}
    left_out |= dict.fromkeys(chunk.graphs.empty, ("0 nodes", NO_NODES))
    for graph, why in sorted(left_out.items()):
        count.bad += 1
        report_bad_row(BadRow(chunk.rows[graph], *why))
    values = (found.labels.tolist(), found.probabilities.tolist(), found.uncertainty.tolist())
    rows = enumerate(zip(chunk.rows, chunk.ids, chunk.labels, *values, strict=True))
    made = [Predicted(*row) for graph, row in rows if graph not in left_out]
    known = [row for row in made if row.label is not None]
    count.graphs += len(made)
    count.nodes += chunk.graphs.num_nodes
    count.unknown += features.unknown
    count.edges += chunk.graphs.num_edges
    count.unknown_edges += model.ensemble_.unknown_edges(chunk.graphs)
    count.labelled += len(known)
    sizes = zip(chunk.graphs.sizes.tolist(), chunk.labels, strict=True)
    count.labelled_nodes += sum(size for size, label in sizes if label is not None)
    classes = model.classes_.tolist()
    numbers = not any(isinstance(name, str) for name in classes)
    texts = set(map(reads, classes))
    count.correct += sum(_read(row.label, numbers) == reads(row.prediction) for row in known)
    foreign = [row.label for row in known if row.label is not None and _read(row.label, numbers) not in texts]
    foreign = [str(label) if isinstance(label, list) else label for label in foreign]
    count.foreign += len(foreign)
    count.strangers |= dict.fromkeys(islice(dict.fromkeys(foreign), SHOWN - len(count.strangers)))
    write(made)


def _largest_row(chunk: GraphChunk) -> str:
    """Name the largest graph of a chunk and advise to leave it out."""
    assert chunk.graphs is not None
    graph = int(chunk.graphs.sizes.argmax())
    return f"Row {chunk.rows[graph]} has {int(chunk.graphs.sizes[graph]):,} nodes: leave it out, or use more memory."


def _read(label: Label | None, numbers: bool) -> str:
    text = reads(label)
    number = whole_number(text) if numbers else None
    return text if number is None else str(number)


class Writer:
    """Write predictions as CSV or as JSON lines."""

    def __init__(self, file: TextIO, form: Format, classes: Sequence[Any]) -> None:
        self._file = file
        self._form = form
        self._classes = [str(name) for name in classes]
        self._table = csv.writer(file, lineterminator="\n")
        self._begun = False

    def write(self, rows: Iterable[Predicted]) -> None:
        """Write a line for each prediction, and the CSV header before the first one.

        Nothing is written if there are no predictions at all.
        """
        for row in rows:
            if not self._begun:
                self._begin()
            shares = [round(share, DIGITS) for share in row.probabilities]
            spread = None if math.isnan(row.uncertainty) else round(row.uncertainty, DIGITS)
            if self._form == "csv":
                self._table.writerow([row.row, row.id, row.prediction, *shares, spread])
                continue
            record = {"row": row.row} | ({} if row.id is None else {"id": row.id}) | {"prediction": row.prediction}
            record |= {"probabilities": dict(zip(self._classes, shares, strict=True)), "uncertainty": spread}
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._file.flush()

    def _begin(self) -> None:
        """Write the CSV header."""
        self._begun = True
        if self._form == "csv":
            names = [f"probability_{name}" for name in self._classes]
            self._table.writerow(["row", "id", "prediction", *names, "uncertainty"])
