"""Read the records of SDF files and their properties."""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from sopool.data.formats import limits
from sopool.data.formats.lines import SHOWN, TextLine, read_lines, too_long
from sopool.data.formats.molecule_rows import (
    LABEL_NAMES,
    LabelColumns,
    MoleculeText,
    check_not_predicted,
    find_name,
    find_names,
    molecule_rows,
    trained_columns,
)
from sopool.data.formats.rdkit import from_sdf
from sopool.data.formats.rows import Cells, GraphRow, RowOptions, TrainingColumns

PROPERTY = re.compile(r">.*<([^<>]+)>")


class SdfRecord(NamedTuple):
    """The text of a record, or its beginning and the reason why it cannot be used."""

    number: int
    """The record number, from 1."""
    text: str
    problem: str = ""

    @property
    def title(self) -> str:
        """The first line, which is the name of the molecule."""
        return self.text.partition("\n")[0].strip()


def sdf_rows(path: str | Path, options: RowOptions) -> Iterator[GraphRow]:
    """Read the molecules of an SDF file, with a property as label and the title as id."""
    columns, label_of = _label_reader(path, options)
    numbers_of = _number_reader(path, options, columns)
    id_of = _id_reader(path, options)
    cells_of = _cells_reader(path, options)
    split = options.split.column if options.split is not None else ""

    def molecule(record: SdfRecord) -> MoleculeText:
        text = record.text
        part = sdf_properties(text).get(split) if split else None
        return MoleculeText(
            record.number,
            record.title,
            text,
            label_of(text),
            id_of(record),
            record.problem,
            numbers_of(text),
            part,
            cells_of(record),
        )

    molecules = map(molecule, sdf_records(path))
    return molecule_rows(molecules, from_sdf, options, columns)


def sdf_training_columns(path: str | Path, options: RowOptions) -> TrainingColumns:
    """Return the properties of an SDF file that :func:`sdf_rows` reads what is predicted from."""
    return _label_reader(path, options)[0].read_with(None)


def _label_reader(path: str | Path, options: RowOptions) -> tuple[LabelColumns, Callable[[str], Any]]:
    """Return the properties with the label, and a function that returns the label of a record's text, or None."""
    given = options.target_columns or options.label_column is not None
    own: list[str | None]
    if options.labels == "ignored":
        return LabelColumns(), lambda _: None
    if not given and options.training.predicted:
        names = sdf_property_names(path)
        found, columns = trained_columns(names, options.training)
        own = [None if at is None else names[at] for at in found]
    elif options.labels == "optional" and not given:
        return LabelColumns(), lambda record: LabelColumns().cells([_usual_label(record)])
    else:
        names = sdf_property_names(path)
        if options.target_columns:
            at = find_names(names, options.target_columns, path)
        else:
            at = [find_name(names, options.label_column, LABEL_NAMES, "label_property", path)]
        own = [names[place] for place in at]
        columns = LabelColumns([names[place] for place in at], bool(options.target_columns), path)

    def label_of(record: str) -> Any:
        properties = sdf_properties(record)
        return columns.cells([None if name is None else properties.get(name) for name in own])

    return columns, label_of


def _id_reader(path: str | Path, options: RowOptions) -> Callable[[SdfRecord], str | None]:
    """Return a function that returns the id of a record: a property, or its title."""
    if options.id_column is None:
        return lambda record: record.title
    names = sdf_property_names(path)
    name = names[find_name(names, options.id_column, (), "id_column", path)]
    return lambda record: sdf_properties(record.text).get(name)


def _cells_reader(path: str | Path, options: RowOptions) -> Callable[[SdfRecord], Cells | None]:
    """Return a function that returns the title and all properties of a record, if they are kept."""
    if not options.keep:
        return lambda _: None
    properties = sdf_property_names(path)
    names = ("id" if options.id_column is None else "title", *properties)

    def cells_of(record: SdfRecord) -> Cells:
        own = sdf_properties(record.text)
        return Cells(names, (record.title or None, *map(own.get, properties)))

    return cells_of


def _number_reader(path: str | Path, options: RowOptions, columns: LabelColumns) -> Callable[[str], list[str | None]]:
    """Return a function that returns the properties of a record's text with numbers given beside the molecule."""
    if not options.graph_columns:
        return lambda _: []
    names = sdf_property_names(path)
    kept = [names[at] for at in find_names(names, options.graph_columns, path, "graph_columns")]
    check_not_predicted(kept, columns, path)

    def numbers_of(record: str) -> list[str | None]:
        properties = sdf_properties(record)
        return [properties.get(name) for name in kept]

    return numbers_of


def sdf_property_names(path: str | Path) -> list[str]:
    """Return the names of the properties of all records, in the order in which they occur first."""
    return list({name: None for record in sdf_records(path) for name in sdf_properties(record.text)})


def _usual_label(record: str) -> str | None:
    properties = sdf_properties(record)
    found = {name.lower(): value for name, value in properties.items()} | properties
    return next((found[name] for name in LABEL_NAMES if name in found), None)


def sdf_records(path: str | Path) -> Iterator[SdfRecord]:
    """Yield the records of a file; only the beginning of one that is too long is kept."""
    record = _Lines()
    number = 1
    for line in read_lines(path, errors="replace"):
        if line.text.startswith("$$$$") and not line.problem:
            yield record.finish(number)
            number += 1
            record = _Lines()
        else:
            record.add(line)
    if not record.blank:
        yield record.finish(number)


class _Lines:
    """The lines of the current record."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.size = 0
        self.blank = True
        self.too_long = False

    def add(self, line: TextLine) -> None:
        self.blank = self.blank and line.blank
        self.size += len(line.text)
        if not self.too_long and (line.problem or self.size > limits.MAX_LINE):
            self.too_long = True
            self.texts = ["\n".join(self.texts)[:SHOWN] or line.text[:SHOWN]]
        if not self.too_long:
            self.texts.append(line.text.rstrip("\r\n"))

    def finish(self, number: int) -> SdfRecord:
        problem = too_long("record", "Look for missing line ends and missing lines $$$$.") if self.too_long else ""
        return SdfRecord(number, "\n".join(self.texts), problem)


def sdf_properties(record: str) -> dict[str, str]:
    """Return the properties after the molecule: lines such as ``> <NAME>``, each with a value up to a blank line."""
    lines = iter(record.partition("\nM  END")[2].split("\n"))
    headers = (PROPERTY.match(line) for line in lines)
    return {header[1]: "\n".join(takewhile(str.strip, lines)).strip() for header in headers if header}
