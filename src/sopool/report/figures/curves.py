"""Learning curves as SVG or PNG figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sopool._files.atomic import whole_file
from sopool._runtime.packages import require
from sopool.errors import DataError, SettingError
from sopool.experiments.curves import band
from sopool.objectives import METRICS
from sopool.report.scores import axis_of, scaled, score_cell, title_of
from sopool.training.runs.record import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"train": "#D55E00", "test": "#0072B2", "validation": "#0072B2"}
"""Colors from the Okabe-Ito palette, which is suitable for color-blind readers."""
COLUMNS = 3
SUFFIXES = (".svg", ".png")


def check_picture(path: Path) -> None:
    """Raise a ``SettingError`` if :func:`plot_curves` cannot write this type of file."""
    if path.suffix.lower() not in SUFFIXES:
        raise SettingError(f"the file name of a figure must end in {' or '.join(SUFFIXES)}, not {path.suffix!r}.", path)


def plot_curves(series: Mapping[str, Sequence[Run]], path: str | Path) -> None:
    """Plot the score on training and on test (or validation) graphs against epochs.

    Each name in ``series`` gets its own panel; all panels share their axes. A line is the mean over folds, and the band
    shows the 10th to 90th percentile of the folds; several runs of one fold are averaged first. Curves are not
    smoothed, because selecting the best epoch profits from their fluctuations. A run that stopped early counts up to
    its last epoch.

    Args:
        series: The runs of each pooling, by name.
        path: The file to write; its name ends in ``.svg`` or ``.png``. The same runs always give the same file.
    """
    path = Path(path)
    check_picture(path)
    split = _split(series)
    require("plotting", "matplotlib")
    from matplotlib import style

    with style.context(["default", {"svg.hashsalt": "sopool", "font.size": 9}]):
        figure = _draw(series, split)
        kind = path.suffix.lower()[1:]
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        with whole_file(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)


def _split(series: Mapping[str, Sequence[Run]]) -> str:
    """Return the split on which the runs were scored during training: test or validation."""
    empty = [name for name, runs in series.items() if not runs]
    if empty or not series:
        raise DataError(f"there are no runs to plot{' for ' + ', '.join(empty) if empty else ''}.")
    splits = {"test" if run.config.looks == "test" else "validation" for runs in series.values() for run in runs}
    if len(splits) > 1:
        raise DataError("some runs were scored on test folds and some on validation graphs; plot them separately.")
    return splits.pop()


def _draw(series: Mapping[str, Sequence[Run]], split: str) -> "Figure":
    from matplotlib.figure import Figure

    metric = next(iter(series.values()))[0].config.metric
    columns = min(COLUMNS, len(series))
    rows = -(-len(series) // columns)
    figure = Figure(figsize=(1.2 + 2.8 * columns if columns > 1 else 5.0, 0.6 + 2.4 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for panel in panels[len(series) :]:
        panel.remove()
    ends = [_panel(panel, name, series[name], split) for panel, name in zip(panels, series, strict=False)]
    for panel, places in zip(panels, ends, strict=False):  # the common scale is known only after all panels are drawn
        _label_ends(panel, places, metric)
    for i, panel in enumerate(panels[: len(series)]):
        panel.tick_params(labelbottom=i + columns >= len(series))
        if i + columns >= len(series):
            panel.set_xlabel("epoch")
        if i % columns == 0:
            panel.set_ylabel(axis_of(metric))
    unit = ", %" * METRICS[metric].share
    ending = f"{title_of(metric)} at the last epoch{unit}"
    count = max(len({run.config.fold for run in runs}) for runs in series.values())
    figure.supxlabel(
        f"line: mean over {count} folds; band: 10th to 90th percentile\nnumbers: {ending}",
        fontsize=8,
        color="#555555",
    )
    return figure


def _panel(panel: "Axes", name: str, runs: Sequence[Run], split: str) -> dict[str, float]:
    """Draw one pooling and return the last value of each line."""
    ends = {}
    metric = runs[0].config.metric
    for part in ("train", split):
        mean, low, high = (scaled(metric) * values for values in band(runs, f"{part}_{metric}"))
        epochs = np.arange(1, len(mean) + 1)
        panel.fill_between(epochs, low, high, color=COLOURS[part], alpha=0.2, linewidth=0)
        panel.plot(epochs, mean, color=COLOURS[part], linewidth=1.1)
        reached = np.flatnonzero(np.isfinite(mean))
        if len(reached):
            ends[part] = float(mean[reached[-1]])
    stopped = sum(run.stopped is not None for run in runs)
    note = f" ({stopped} of {len(runs)} runs stopped)" if stopped else ""
    panel.set_title(name + note, loc="left", fontsize=9.5, parse_math=False)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.margins(x=0.01)
    return ends


def _label_ends(panel: "Axes", ends: Mapping[str, float], metric: str) -> None:
    """Label the end of each line with its name and last value, without overlaps."""
    low, high = panel.get_ylim()
    parts = sorted(ends, key=ends.__getitem__)
    places = spread([ends[part] for part in parts], 0.16 * (high - low))
    for part, place in zip(parts, places, strict=True):
        panel.annotate(
            f"{part}\n{score_cell(metric, ends[part] / scaled(metric)).text}",
            (1.02, place),
            xycoords=("axes fraction", "data"),
            color=COLOURS[part],
            fontsize=8,
            va="center",
            annotation_clip=False,
        )


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move sorted positions at least ``gap`` apart; positions that are too close are centered on their mean."""
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _bottom(groups[-1], gap) < _top(groups[-2], gap) + gap:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_bottom(group, gap) + i * gap for group in groups for i in range(len(group))]


def _bottom(group: Sequence[float], gap: float) -> float:
    return float(np.mean(group)) - gap * (len(group) - 1) / 2


def _top(group: Sequence[float], gap: float) -> float:
    return _bottom(group, gap) + gap * (len(group) - 1)
