"""Log-log plots of the results, including the floor."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.speed.results import BankRow, ReadoutRow, Results
from benchmarks.speed.tables import AXES, USUAL, place
from sopool._files.atomic import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"sopool": "#0072B2", "PyG": "#D55E00", "padded": "#009E73", "index_add": "#009E73"}
"""Colors of Okabe and Ito, which are distinguishable with any color vision."""
FLOOR = "#555555"
COLUMNS = 3


def plot_results(results: Results, folder: Path) -> list[Path]:
    """Draw all results to ``readouts.svg``, ``bank-models.svg`` and so on; equal results give equal files."""
    from matplotlib import style

    written = []
    with style.context(["default", {"svg.hashsalt": "sopool", "font.size": 9}]):
        if results.readouts:
            written.append(_save(_draw_readouts(results), folder / "readouts.svg"))
        for scale in dict.fromkeys(row.scale for row in results.bank):
            rows = [row for row in results.bank if row.scale == scale]
            written.append(_save(_draw_bank(scale, rows, results), folder / f"bank-{scale}.svg"))
    return written


def _save(drawn: "Figure", path: Path) -> Path:
    with whole_file(path) as temporary:
        drawn.savefig(temporary, format="svg", metadata={"Date": None})
    return path


def _figure(panels: int, note: str, **shared: Any) -> "tuple[Figure, list[Axes]]":
    from matplotlib.figure import Figure

    columns = min(COLUMNS, panels)
    rows = -(-panels // columns)
    drawn = Figure(figsize=(1.2 + 3.4 * columns, 0.8 + 2.8 * rows), layout="constrained")
    axes = drawn.subplots(rows, columns, squeeze=False, **shared).ravel().tolist()
    for spare in axes[panels:]:
        spare.remove()
    drawn.supxlabel(note, fontsize=8, color=FLOOR)
    return drawn, axes[:panels]


def _frame(panel: "Axes", title: str, x: str, y: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set_xscale("log")
    panel.set_yscale("log")
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: place(value)))
        axis.set_minor_formatter(NullFormatter())
    panel.set_title(title, loc="left", fontsize=9.5, parse_math=False)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.legend(frameon=False, fontsize=8)


def _draw_readouts(results: Results) -> "Figure":
    """Draw time against the bytes that must be moved; the floor is one line for all readouts and sizes."""
    names = list(dict.fromkeys(row.readout for row in results.readouts))
    note = f"{_where(results)}\nhollow: forward, full: forward + backward"
    drawn, panels = _figure(len(names), note, sharex=True, sharey=True)
    for panel, name in zip(panels, names, strict=True):
        rows = [row for row in results.readouts if row.readout == name]
        ends = sorted({(row.floor_bytes / 1e6, row.floor_milliseconds) for row in rows})
        panel.plot(*zip(*(ends[0], ends[-1]), strict=True), "--", color=FLOOR, linewidth=1, label="floor: a plain copy")
        for way in dict.fromkeys(row.way for row in rows):
            _points(panel, way, [row for row in rows if row.way == way])
        for row in rows:
            if row.way == "sopool" and row.backward:
                place = (row.floor_bytes / 1e6, row.milliseconds)
                panel.annotate(
                    row.like.partition("-")[0], place, (3, -10), textcoords="offset points", fontsize=7, color=FLOOR
                )
        _frame(panel, name, "MB that must move", "milliseconds")
        panel.margins(x=0.12)
    return drawn


def _points(panel: "Axes", way: str, rows: Sequence[ReadoutRow]) -> None:
    for backward in (True, False):
        some = [row for row in rows if row.backward == backward]
        panel.plot(
            [row.floor_bytes / 1e6 for row in some],
            [row.milliseconds for row in some],
            "o",
            color=COLOURS[way],
            markerfacecolor=COLOURS[way] if backward else "none",
            markersize=5,
            label=USUAL.get(way, way) if backward else None,
        )


def _draw_bank(scale: str, rows: Sequence[BankRow], results: Results) -> "Figure":
    """Draw seconds per model-epoch against the varied quantity, with a panel for each data set."""
    names = list(dict.fromkeys(row.data for row in rows))
    note = f"{_where(results)}\nfloor: the matrix products alone, at the speed of a large one"
    drawn, panels = _figure(len(names), note, sharey=True)
    for panel, name in zip(panels, names, strict=True):
        here = [row for row in rows if row.data == name]
        for way in dict.fromkeys(row.way for row in here):
            _line(panel, way, sorted((row for row in here if row.way == way), key=lambda row: row.at), here)
        ours = sorted((row for row in here if row.way == "sopool"), key=lambda row: row.at)
        places = [row.at for row in ours]
        panel.plot(places, [row.floor_seconds for row in ours], "--", color=FLOOR, linewidth=1, label="floor")
        _frame(panel, name, AXES[scale], "s per model-epoch")
        panel.set_xticks(places, [place(at) for at in places])
        panel.set_xticks([], minor=True)
    return drawn


def _line(panel: "Axes", way: str, rows: Sequence[BankRow], here: Sequence[BankRow]) -> None:
    places = [row.at for row in rows]
    times = [row.seconds for row in rows]
    if way == "PyG" and rows[0].scale == "models":  # trains sequentially, so the time is the same for any number
        places = [min(row.at for row in here), max(row.at for row in here)]
        times = times[:1] * 2
    panel.plot(places, times, "o-", color=COLOURS[way], linewidth=1.2, markersize=4, label=way)


def _where(results: Results) -> str:
    return f"{results.machine.get('device')}, torch {results.machine.get('torch')}"
