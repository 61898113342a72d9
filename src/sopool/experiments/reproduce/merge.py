"""Merge parts of a table that were run one after the other."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sopool.errors import UserError
from sopool.experiments.reproduce.paper.tables import PaperRow, read_tables
from sopool.experiments.reproduce.reproducer import across, compare_cells, empty_cell, mark
from sopool.experiments.reproduce.reproduction import Reproduction, TableCell, load_reproduction
from sopool.training.protocols.protocols import PROTOCOLS
from sopool.training.runs.layout import TABLE_FILES

KINDS = ("model", "random", "control", "system", "quoted")
"""The kinds of rows in the order in which they are shown."""


def read_reproductions(folder: Path) -> list[Reproduction]:
    """Return the readable tables of a folder, with parts of one table merged; warn about each unreadable file."""
    found = []
    for path in sorted(folder.glob(TABLE_FILES), key=lambda path: (path.stat().st_mtime_ns, path.name)):
        try:
            found.append(load_reproduction(path))
        except UserError as error:
            warnings.warn(f"{error} This table is left out.", stacklevel=2)
    return merge(found)


def merge(parts: Sequence[Reproduction]) -> list[Reproduction]:
    """Merge parts of the same table and training, in the order of the paper; later results replace earlier ones."""
    groups: dict[tuple[str, str], list[Reproduction]] = {}
    for one in parts:
        groups.setdefault((one.table, json.dumps(one.training, sort_keys=True)), []).append(one)
    return [_merged(groups[key]) for key in sorted(groups)]


def _merged(parts: Sequence[Reproduction]) -> Reproduction:
    last = parts[-1]
    if len(parts) == 1:
        return last
    rows = _rows(parts)
    datasets = _datasets(parts)
    cells = _cells(parts, rows, datasets)
    protocols = tuple(name for name in PROTOCOLS if any(name in one.protocols for one in parts))
    ran = {cell.dataset for cell in cells if cell.measured}
    reasons = {name: why for one in parts for name, why in one.not_run.items()}
    return replace(
        last,
        datasets=datasets,
        protocols=protocols,
        rows=rows,
        cells=cells,
        comparisons=tuple(compare_cells(rows, cells)),
        across=tuple(across(rows, cells, protocol) for protocol in protocols),
        notes=tuple(dict.fromkeys(note for one in parts for note in one.notes)),
        not_run={name: why for name, why in reasons.items() if name not in ran},
    )


def _datasets(parts: Sequence[Reproduction]) -> tuple[str, ...]:
    found = dict.fromkeys(name for one in parts for name in one.datasets)
    order = read_tables()[parts[0].table].datasets
    return tuple(sorted(found, key=lambda name: order.index(name) if name in order else len(order)))


def _rows(parts: Sequence[Reproduction]) -> tuple[PaperRow, ...]:
    """Return all rows in the usual order: the paper's, then added ones, random ones and controls."""
    table = read_tables()[parts[0].table]
    found: dict[str, PaperRow] = {}
    for row in (row for one in parts for row in one.rows):
        known = found.get(row.name, row)
        found[row.name] = replace(
            row,
            control=row.control or known.control,
            datasets=tuple(name for name in table.datasets if name in (*known.datasets, *row.datasets)),
            figures={**known.figures, **row.figures},
            sources={**known.sources, **row.sources},
        )
    order = [row.name for row in table.rows]

    def place(row: PaperRow) -> tuple[int, int]:
        return (0, order.index(row.name)) if row.name in order else (1, KINDS.index(row.kind))

    return tuple(sorted(found.values(), key=place))


def _cells(parts: Sequence[Reproduction], rows: Sequence[PaperRow], datasets: Sequence[str]) -> tuple[TableCell, ...]:
    found: dict[tuple[str, str], TableCell] = {}
    for cell in (cell for one in parts for cell in one.cells):
        key = cell.dataset, cell.row
        if key not in found or cell.measured:
            measured = {**(found[key].measured if key in found else {}), **cell.measured}
            found[key] = replace(cell, measured={name: measured[name] for name in PROTOCOLS if name in measured})
    whole = [found.get((name, row.name), empty_cell(row, name)) for name in datasets for row in rows]
    kinds = {row.name: row.kind for row in rows}
    control = {row.name for row in rows if row.control is not None}
    marked = []
    for cell in whole:
        controls = [other for other in whole if other.dataset == cell.dataset and other.row in control]
        marked.append(mark(cell, controls) if kinds[cell.row] in ("model", "random") else cell)
    return tuple(marked)
