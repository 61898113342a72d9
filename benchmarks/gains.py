"""Draw the gains of second-order pooling over Sum/Avg, as published and as measured here.

    python -m benchmarks.gains docs/results/table2.json docs/images/gains.svg

Equal results give equal files.
"""

from collections.abc import Callable
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.common import make_parser
from sopool.experiments.comparison import Comparison
from sopool.experiments.reproduce.reproduction import Reproduction, load_reproduction

PROTOCOLS = {
    "per-fold-max": ("#E69F00", "same protocol, per-fold-max (optimistic)"),
    "fair": ("#0072B2", "same protocol, fair"),
}
WIDE = 4
"""The number of panels per row."""
CLAIM = ("#D55E00", "the paper's tables: different protocols")


def draw(found: Reproduction) -> Figure:
    """Draw a panel for each row of the table, with a line for each data set."""
    declared = found.compared("declared")
    rows = list(dict.fromkeys((one.row, one.against) for one in declared))
    wide = min(len(rows), WIDE)
    high = -(-len(rows) // wide)
    figure = Figure(figsize=(9.5, 0.5 + high * (0.4 + 0.42 * len(found.datasets))), layout="constrained")
    panels = figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False).flatten()
    for panel in panels[len(rows) :]:
        panel.remove()
    for panel, (row, against) in zip(panels[: len(rows)], rows, strict=True):
        tests = {(one.dataset, one.protocol): one.comparison for one in declared if one.row == row}
        for place, dataset in enumerate(found.datasets):
            claimed = found.paper_gain(dataset, row, against)
            if claimed is not None:
                panel.plot(100 * claimed, place, "D", color=CLAIM[0], markerfacecolor="none")
            for offset, (protocol, (colour, _)) in zip((0.0, 0.22), PROTOCOLS.items(), strict=True):
                mark(panel, place + offset, tests[dataset, protocol], colour)
        frame(panel, row, found.datasets)
    for panel in panels[max(0, len(rows) - wide) : len(rows)]:
        panel.set_xlabel("points above Sum/Avg")
        panel.tick_params(labelbottom=True)
    marks = [panels[0].plot([], [], "D", color=CLAIM[0], markerfacecolor="none", label=CLAIM[1])[0]]
    marks += [panels[0].plot([], [], "o-", color=colour, label=label)[0] for colour, label in PROTOCOLS.values()]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def mark(panel: Axes, height: float, test: Comparison, colour: str) -> None:
    """Draw a gain with its interval."""
    panel.plot([100 * test.low, 100 * test.high], [height] * 2, color=colour, linewidth=1.6)
    panel.plot(100 * test.difference, height, "o", color=colour, markersize=4.5)


def frame(panel: Axes, title: str, datasets: tuple[str, ...]) -> None:
    panel.set_title(title, loc="left", fontsize=9.5)
    panel.axvline(0, color="#555555", linewidth=0.8)
    panel.set_yticks(range(len(datasets)), datasets)
    panel.set_ylim(len(datasets) - 0.5, -0.5)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(left=False)
    panel.grid(axis="x", color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def save(make: Callable[[], Figure], path: Path) -> None:
    """Save the figure to a file."""
    with style.context(["default", {"svg.hashsalt": "sopool", "font.size": 9}]):
        make().savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("figures", type=Path)
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    save(lambda: draw(load_reproduction(args.figures)), args.picture)


if __name__ == "__main__":
    main()
