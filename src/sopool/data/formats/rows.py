"""Graphs of a text, one after the other as they are read: what is wrong with one does not keep the next from coming."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from sopool.data.formats.csv import CsvRow, csv_header, csv_rows
from sopool.data.formats.json_graph import graph_of_line
from sopool.data.formats.lines import SHOWN, Line, not_blank
from sopool.data.formats.molecules import (
    LABEL_NAMES,
    SMILES_NAMES,
    Record,
    csv_record,
    find_name,
    find_property,
    graph_of_record,
    no_label,
    sdf_molecule,
)
from sopool.data.formats.rdkit import from_sdf, from_smiles, rdkit_module
from sopool.data.formats.sdf import SdfRecord, sdf_properties, sdf_records
from sopool.data.pack import Graph, Label
from sopool.errors import DataError

ID_NAMES = ("id", "name")
Lines = Iterable[Line]


class Row(NamedTuple):
    """One graph, or why it is none."""

    number: int
    """From 1: the line of a text, the record of an SDF file."""
    text: str
    """The beginning of what was read."""
    size: int
    """How many characters were read."""
    name: Label | None = None
    label: Label | None = None
    graph: Graph | None = None
    problem: str = ""


def json_rows(lines: Lines) -> Iterator[Row]:
    """Of JSON lines. Ids are not compared: that would take memory for all of them."""
    for line in lines:
        if not line.blank:
            text = line.text.strip()[:SHOWN]
            size = len(line.text)
            try:
                name, graph = graph_of_line(line)
            except DataError as error:
                yield Row(line.number, text, size, problem=str(error))
            else:
                yield Row(line.number, text, size, name, graph.label, graph)


def text_rows(
    lines: Lines, path: str | Path, smiles_column: str | None, label_column: str | None, max_atoms: int
) -> Iterator[Row]:
    """By the first line that is not blank: an object of JSON, names of columns, or a SMILES that may have a name."""
    every = iter(lines)
    head = not_blank(every)
    first = "" if head is None else head.text.strip()
    every = every if head is None else chain((head,), every)
    if first.startswith("{"):
        return json_rows(every)
    cells = [cell.strip(' "').lower() for cell in re.split("[,;\t]", first)]
    if smiles_column or any(cell in SMILES_NAMES for cell in cells):
        return molecule_rows(every, path, smiles_column, label_column, max_atoms)
    return _molecules((_bare(line) for line in every if not line.blank), partial(from_smiles, max_atoms=max_atoms))


def molecule_rows(
    lines: Lines, path: str | Path, smiles_column: str | None, label_column: str | None, max_atoms: int
) -> Iterator[Row]:
    """Of a CSV with a column of SMILES; a column of labels and one of ids are taken where they are there."""
    rows = csv_rows(iter(lines), path)
    header = csv_header(rows, path)
    smiles_at = find_name(header, smiles_column, SMILES_NAMES, "smiles_column", path)
    known = [name.lower() for name in header]
    labelled = label_column is not None or any(name in known for name in LABEL_NAMES)
    label_at = find_name(header, label_column, LABEL_NAMES, "label_column", path) if labelled else None
    id_at = next((known.index(name) for name in ID_NAMES if name in known), None)

    def read(row: CsvRow) -> tuple[Record, str | None]:
        record = csv_record(row, len(header), smiles_at, smiles_at if label_at is None else label_at)
        named = id_at is not None and id_at < len(row.cells) and not row.problem
        return (record if labelled else record._replace(label=None)), row.cells[id_at or 0] if named else None

    return _molecules(map(read, rows), partial(from_smiles, max_atoms=max_atoms))


def sdf_rows(path: str | Path, label_property: str | None, max_atoms: int) -> Iterator[Row]:
    """Of an SDF file, with the title of each record as its id."""
    wanted = LABEL_NAMES if label_property is None else (find_property(path, label_property),)

    def read(record: SdfRecord) -> tuple[Record, str]:
        given = sdf_properties(record.text)
        found = {name.lower(): value for name, value in given.items()} | given
        return sdf_molecule(record, next((found[name] for name in wanted if name in found), None)), record.title

    return _molecules(map(read, sdf_records(path)), partial(from_sdf, max_atoms=max_atoms))


def _bare(line: Line) -> tuple[Record, str | None]:
    """A line with a SMILES, and perhaps a name after it."""
    smiles, *name = line.text.strip().split(maxsplit=1) or [""]
    return Record(line.number, smiles, smiles, None, line.problem), name[0] if name else None


def _molecules(records: Iterable[tuple[Record, str | None]], parse: Callable[[Any, str], Any]) -> Iterator[Row]:
    chem = rdkit_module("Chem")
    for record, name in records:
        text = record.text[:SHOWN]
        size = len(record.source) + len(name or "") + len(record.label or "")
        try:
            with rdkit_module("rdBase").BlockLogs():
                graph = graph_of_record(chem, record, parse, labelled=False)
        except DataError as error:
            yield Row(record.row, text, size, name or None, problem=str(error))
        else:
            label = None if no_label(record.label) else record.label
            yield Row(record.row, text, size, name or None, label, graph)
