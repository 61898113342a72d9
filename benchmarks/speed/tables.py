"""Tables of the results for the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchmarks.speed.results import BankRow, ReadoutRow, Results

AXES = {"models": "models", "graphs": "graphs per batch", "width": "width", "nodes": "nodes per graph"}
MEASURED = ("training", "scoring", "both", "x\nsopool", "x\nfloor", "MB")
USUAL = {"padded": "to_dense_batch + bmm", "index_add": "index_add"}


def machine_line(machine: Mapping[str, Any]) -> str:
    """Return the machine and the versions in one line."""
    named = {"torch": "torch", "triton": "Triton", "torch-geometric": "PyG", "numba": "Numba", "sopool": "sopool"}
    versions = [f"{shown} {machine[name]}" for name, shown in named.items() if machine.get(name)]
    where = f"{machine.get('device')}, PyTorch's threads: {machine.get('threads')}"
    return ", ".join([where, *versions, f"Python {machine.get('python')}", str(machine.get("platform"))])


def readout_tables(results: Results) -> list[Table]:
    """Return a table for each readout: floor, sopool and the common implementation, for each distribution of sizes."""
    names = dict.fromkeys(row.readout for row in results.readouts)
    return [_readout_table(name, [row for row in results.readouts if row.readout == name], results) for name in names]


def _readout_table(name: str, rows: Sequence[ReadoutRow], results: Results) -> Table:
    table = _table(f"Readout {name}", ("sizes like", "", "way"), ("ms", "x floor", "memory"))
    for like, some in groupby(rows, lambda row: row.like):
        here = sorted(some, key=lambda row: row.backward)
        lines: list[tuple[str, ...]] = []
        for backward, group in groupby(here, lambda row: row.backward):
            same = list(group)
            passes = "both ways" if backward else "forward"
            lines.append((passes, "floor", figure(same[0].floor_milliseconds), "", ""))
            lines += [("", row.way, figure(row.milliseconds), _ratio(row), f"{row.memory:.2f}") for row in same]
        facts = [like, f"{here[0].graphs:,} graphs", f"{here[0].nodes:,} nodes"]
        _add(table, facts, lines)
    known = [f"{way} is {USUAL[way]}. " for way in dict.fromkeys(row.way for row in rows) if USUAL.get(way, way) != way]
    table.caption = (
        f"Median times. floor: bytes that must move / {(results.bandwidth or 0) / 1e9:,.0f} GB/s, the bandwidth of a "
        "copy in this run; what fits into a cache may be faster. both ways: forward and backward. "
        f"{''.join(known)}memory: peak / (inputs + outputs)."
    )
    return table


def _ratio(row: ReadoutRow) -> str:
    return figure(row.milliseconds / row.floor_milliseconds)


def bank_tables(results: Results) -> list[Table]:
    """Return a table for each scale and data set."""
    groups: dict[tuple[str, str], list[BankRow]] = {}
    for row in results.bank:
        groups.setdefault((row.scale, row.data), []).append(row)
    return [_bank_table(scale, data, rows, results) for (scale, data), rows in groups.items()]


def _bank_table(scale: str, data: str, rows: Sequence[BankRow], results: Results) -> Table:
    title = f"Seconds per model-epoch by {AXES[scale]}: {data}{_fixed(scale, rows[0])}"
    table = _table(title, (AXES[scale].replace(" ", "\n", 1), "way"), MEASURED)
    for at in dict.fromkeys(row.at for row in rows if row.way == "sopool"):
        here = [row for way in dict.fromkeys(row.way for row in rows) if (row := find(rows, way, at))]
        ours = here[0]
        floor = ("floor", "", "", figure(ours.floor_seconds), figure(ours.floor_seconds / ours.seconds), "", "")
        _add(table, [place(at)], [floor, *((row.way, *_bank_cells(row, ours)) for row in here)])
    table.caption = (
        f"Median times. A model-epoch: {rows[0].steps} steps, then the scores of all graphs. floor: the matrix "
        f"products alone, at the speed of a large one, {(results.product_speed or 0) / 1e9:,.0f} GFLOP/s in this run. "
        "PyG trains one model at a time; padded: all models in dense arrays. MB: peak of all tensors on the device. "
        f"PyTorch's threads: {rows[0].threads}."
    )
    return table


def _bank_cells(row: BankRow, ours: BankRow) -> list[str]:
    times = [figure(one) for one in (row.train_seconds, row.score_seconds, row.seconds)]
    ratios = [figure(row.seconds / other) for other in (ours.seconds, row.floor_seconds)]
    return [*times, *ratios, figure(row.memory_bytes / 1e6)]


def find(rows: Sequence[BankRow], way: str, at: float) -> BankRow | None:
    """Return the row of an implementation at a position of a scale. That of PyG holds for any number of models."""
    for row in rows:
        if row.way == way and (row.at == at or (way == "PyG" and row.scale == "models")):
            return row
    return None


def _fixed(scale: str, row: BankRow) -> str:
    """Return a description of the quantities that are equal in all rows."""
    words = {"graphs": "graphs per batch", "width": "wide", "models": "models"}
    return "".join(f", {getattr(row, name)} {said}" for name, said in words.items() if name != scale)


def _table(title: str, left: Iterable[str], right: Iterable[str]) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for column in left:
        table.add_column(column, no_wrap=True)
    for column in right:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _add(table: Table, facts: Sequence[str], lines: Sequence[tuple[str, ...]]) -> None:
    """Add lines that belong together, with their common ``facts`` in the first column."""
    for fact, line in zip_longest(facts, lines):
        if line is not None:
            table.add_row(fact or "", *line)
    table.add_section()


def figure(number: float) -> str:
    """Format a number with three significant digits, without an exponent."""
    exponent = int(f"{number:.2e}".partition("e")[2])
    return f"{number:,.{max(0, 2 - exponent)}f}"


def place(at: float) -> str:
    """Format a position on a scale; whole numbers have no decimal point."""
    return f"{at:,.10g}"
