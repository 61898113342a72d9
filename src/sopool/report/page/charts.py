"""The charts of the report, as specifications for plotly.js.

Colors are names of the page's CSS variables, so that charts follow the light or dark theme. Text that comes from data
is escaped, because plotly.js interprets some HTML tags.
"""

import html
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sopool.experiments.curves import Band
from sopool.experiments.entries import Entry, Predicted, join_words
from sopool.experiments.summary import Gain
from sopool.objectives import METRICS
from sopool.report.scores import axis_of, gain_of, score_text, title_of
from sopool.training.protocols.outcome import Outcome

Chart = dict[str, Any]

POINTS = 400
"""The largest number of points in a curve; longer curves are subsampled, never smoothed."""
ROW = 26
"""The height of one row of a chart, in pixels."""
DOTS = 1000
"""The largest number of predictions that are drawn; of more, evenly spaced ones are."""
PICKED = {
    "per-fold-max": "best epoch of each fold",
    "last-epoch": "last epoch of each fold",
    "fair": "epochs selected on validation graphs",
}
"""How the epochs of each fold were picked, by protocol."""
SYMBOLS = {"per-fold-max": "triangle-up", "single-epoch": "diamond", "last-epoch": "square", "fair": "circle"}


def label(text: str) -> str:
    """Escape a text so that plotly.js shows it literally."""
    return html.escape(text, quote=False)


def scores_chart(entries: Sequence[Entry], metric: str) -> Chart:
    """Plot the score of each pooling on one data set, with all protocols in one row."""
    names = [line_name(entry, entries) for entry in entries]
    protocols = dict.fromkeys(protocol for entry in entries for protocol in entry.outcomes)
    data: list[Chart] = [_spans(entries, names, metric)]
    for protocol in protocols:
        named = zip(entries, names, strict=True)
        some = [(entry.outcomes[protocol], name) for entry, name in named if protocol in entry.outcomes]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": protocol,
                "x": [_shown(metric, outcome.mean) for outcome, _ in some],
                "y": [name for _, name in some],
                "marker": {"symbol": SYMBOLS[protocol], "size": 10, "color": protocol},
                "hovertemplate": "%{y}<br>%{x"
                + _format(metric)
                + "}"
                + _unit(metric)
                + "<extra>"
                + protocol
                + "</extra>",
            }
        )
    return _lines(data, names, f"test {axis_of(metric)}")


def _spans(entries: Sequence[Entry], names: Sequence[str], metric: str) -> Chart:
    x: list[float | None] = []
    y: list[str | None] = []
    for entry, name in zip(entries, names, strict=True):
        means = [_shown(metric, outcome.mean) for outcome in entry.outcomes.values()]
        if means:
            x += [min(means), max(means), None]
            y += [name, name, None]
    line = {"color": "faint", "width": 2}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip", "showlegend": False}


def gains_chart(gains: Sequence[Gain], names: Sequence[str], metric: str) -> Chart:
    """Plot gains by one metric with their 95 % intervals; ``names`` labels the rows from top to bottom."""
    found = [gain.comparison for gain in gains]
    unit = " points" if METRICS[metric].share else ""
    what = f"points of {title_of(metric)}" if METRICS[metric].share else gain_of(metric) or title_of(metric)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [_shown(metric, one.difference) for one in found],
        "y": [label(name) for name in names],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_shown(metric, one.high - one.difference) for one in found],
            "arrayminus": [_shown(metric, one.difference - one.low) for one in found],
            "color": "ink",
            "thickness": 1.5,
        },
        "marker": {"size": 8, "color": "ink"},
        "hovertemplate": "%{y}<br>%{x" + _format(metric, "+") + "}" + unit + "<extra></extra>",
        "showlegend": False,
    }
    chart = _lines([trace], [label(name) for name in names], f"gain, {what}, with 95 % interval")
    chart["layout"]["shapes"] = [_rule("x", 0, "faint")]
    return chart


def ranks_chart(ranks: Mapping[str, float], difference: float | None) -> Chart:
    """Plot a critical-difference diagram; bars join poolings whose mean ranks do not differ significantly."""
    order = sorted(ranks, key=lambda name: (ranks[name], name))
    data: list[Chart] = [
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": [round(ranks[name], 3) for name in order],
            "y": list(range(len(order))),
            "text": [f"  {label(name)}  {ranks[name]:.2f}" for name in order],
            "textposition": ["middle right" if 2 * i < len(order) else "middle left" for i in range(len(order))],
            "marker": {"size": 9, "color": "ink"},
            "hovertemplate": "%{text}<extra></extra>",
            "showlegend": False,
            "cliponaxis": False,
        }
    ]
    bars = groups([ranks[name] for name in order], difference)
    for i, (first, last) in enumerate(bars):
        ends = [round(ranks[order[first]] - 0.05, 3), round(ranks[order[last]] + 0.05, 3)]
        line = {"color": "fair", "width": 5}
        height = len(order) + 0.3 * i
        data.append(
            {"type": "scatter", "mode": "lines", "x": ends, "y": [height] * 2, "line": line, "hoverinfo": "skip"}
        )
        data[-1]["showlegend"] = False
    layout = {
        "height": 110 + ROW * (len(order) + 1),
        "xaxis": {"title": {"text": "mean rank (1 is best)"}, "range": [0.6, len(order) + 0.4], "dtick": 1},
        "yaxis": {"visible": False, "range": [len(order) + 0.3 * len(bars) + 0.4, -0.8]},
        "margin": {"l": 20, "r": 20, "t": 10, "b": 50},
    }
    return {"data": data, "layout": layout}


def groups(ranks: Sequence[float], difference: float | None) -> list[tuple[int, int]]:
    """Return the first and last index of each maximal run of two or more sorted ranks within ``difference``."""
    if difference is None:
        return []
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(i for i, other in enumerate(ranks) if other - rank <= difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def curves_chart(entry: Entry, protocols: Sequence[str]) -> Chart:
    """Plot the score against epochs, with the epochs that each protocol selects and the score it reports.

    All ``protocols`` must use the same runs: those that select on the test folds, or ``fair`` alone.
    """
    metric = entry.shared.metric
    bands = entry.curves[protocols[0]]
    data = [trace for part, shown in bands.items() for trace in _band(part, shown, metric)]
    epochs = max(len(shown.mean) for shown in bands.values())
    for protocol in protocols:
        outcome = entry.outcomes[protocol]
        data += _picked(protocol, outcome, bands, epochs)
    layout = {
        "height": 360,
        "xaxis": {"title": {"text": "epoch"}, "range": [0, epochs + 1]},
        "yaxis": {"title": {"text": axis_of(metric)}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 55, "r": 15, "t": 10, "b": 40},
        "hovermode": "closest",
    }
    return {"data": data, "layout": layout}


def _band(part: str, shown: Band, metric: str) -> list[Chart]:
    kept = thin(len(shown.mean))
    x = [int(i) + 1 for i in kept]
    mean, *both = (_all_shown(metric, values[kept]) for values in shown)
    hover = "epoch %{x}: %{y" + _format(metric) + "}" + _unit(metric) + "<extra>" + part + "</extra>"
    shared = {"type": "scatter", "mode": "lines", "x": x, "hoverinfo": "skip", "legendgroup": part}
    return [
        shared | {"y": both[0], "line": {"width": 0, "color": part}, "showlegend": False},
        shared
        | {"y": both[1], "line": {"width": 0, "color": part}, "fill": "tonexty", "fillcolor": f"{part}-band"}
        | {"showlegend": False},
        shared
        | {"y": mean, "name": f"{part}, mean over folds", "line": {"width": 1.6, "color": part}}
        | {"hoverinfo": "all", "hovertemplate": hover},
    ]


def _picked(protocol: str, outcome: Outcome, bands: Mapping[str, Band], epochs: int) -> list[Chart]:
    """Draw a line at the reported score and markers at the selected epochs."""
    metric = outcome.metric
    level = _shown(metric, outcome.mean)
    marker = {"symbol": SYMBOLS[protocol], "size": 9, "color": protocol, "line": {"color": "ground", "width": 1}}
    x = [int(epoch) for epoch in np.ravel(np.array(outcome.epochs))]
    y = [_shown(metric, fold) for fold in outcome.folds for _ in range(outcome.repeats)]
    name = f"{protocol}: {score_text(metric, outcome.mean)}, "
    if protocol == "single-epoch":  # one epoch for each seed
        x = sorted(set(x))
        y = [level] * len(x)
        name += f"all folds at epoch {', '.join(map(str, x))}"
    else:
        name += PICKED[protocol]
    line = {"color": protocol, "width": 1.5, "dash": "dash"}
    shared = {"type": "scatter", "legendgroup": protocol}
    return [
        shared
        | {
            "mode": "lines",
            "x": [0, epochs + 1],
            "y": [level] * 2,
            "line": line,
            "showlegend": False,
            "hoverinfo": "skip",
        },
        shared
        | {"mode": "markers", "x": x, "y": y, "marker": marker, "name": name}
        | {
            "hovertemplate": "epoch %{x}: %{y"
            + _format(metric)
            + "}"
            + _unit(metric)
            + "<extra>"
            + protocol
            + "</extra>"
        },
    ]


def predicted_chart(found: Predicted, target: int, name: str, residuals: bool = False) -> Chart:
    """Plot the predictions of one target, or their residuals, against the true values; the line is what is right."""
    true, predicted = (values[:, target] for values in found)
    known = np.flatnonzero(np.isfinite(true) & np.isfinite(predicted))
    kept = known[np.unique(np.linspace(0, len(known) - 1, min(len(known), DOTS)).round().astype(int))]
    x = _figures(true[kept])
    y = _figures(predicted[kept] - (true[kept] if residuals else 0.0))
    ends = [min(x), max(x)] if x else []
    line = {"color": "faint", "width": 1.5}
    data = [
        {"type": "scatter", "mode": "lines", "x": ends, "y": [0.0, 0.0] if residuals else ends, "line": line}
        | {"hoverinfo": "skip", "showlegend": False},
        {"type": "scatter", "mode": "markers", "x": x, "y": y, "showlegend": False}
        | {"marker": {"size": 4, "color": "test", "opacity": 0.5}}
        | {
            "hovertemplate": "true %{x:.4g}<br>"
            + ("residual" if residuals else "predicted")
            + " %{y:.4g}<extra></extra>"
        },
    ]
    what = "residual (predicted - true)" if residuals else "predicted"
    layout = {
        "height": 340,
        "xaxis": {"title": {"text": f"true {label(name)}"}, "zeroline": False},
        "yaxis": {"title": {"text": f"{what} {label(name)}"}, "zeroline": False},
        "margin": {"l": 55, "r": 15, "t": 10, "b": 40},
        "hovermode": "closest",
    }
    return {"data": data, "layout": layout}


def thin(epochs: int) -> np.ndarray:
    """Return the epochs to draw, counted from 0: all, or evenly spaced ones that include the first and the last."""
    return np.unique(np.linspace(0, epochs - 1, min(epochs, POINTS)).round().astype(int))


def line_name(entry: Entry, among: Sequence[Entry]) -> str:
    """Return the row label of an entry; the network is omitted if all entries share it."""
    parts = [entry.network] if len({other.network for other in among}) > 1 else []
    return label(join_words(*parts, entry.pool, entry.variant))


def _lines(data: list[Chart], names: Sequence[str], title: str) -> Chart:
    layout = {
        "height": 110 + ROW * len(names),
        "xaxis": {"title": {"text": title}, "zeroline": False},
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": list(reversed(names)),
            "automargin": True,
        },
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 20, "r": 15, "t": 30, "b": 50},
        "hovermode": "closest",
    }
    return {"data": data, "layout": layout}


def _rule(axis: str, at: float, colour: str) -> Chart:
    other = "y" if axis == "x" else "x"
    ends = {f"{axis}0": at, f"{axis}1": at, f"{other}0": 0, f"{other}1": 1, f"{other}ref": "paper"}
    return {"type": "line", "line": {"color": colour, "width": 1.5}} | ends


def _shown(metric: str, score: float) -> float:
    """Return a score as it is plotted: a share in percent, others with five significant digits."""
    return round(100 * score, 2) if METRICS[metric].share else float(f"{score:.5g}")


def _all_shown(metric: str, scores: np.ndarray) -> list[float | None]:
    digits = (lambda score: round(100 * score, 1)) if METRICS[metric].share else partial(_shown, metric)
    return [digits(float(score)) if np.isfinite(score) else None for score in scores]


def _figures(values: np.ndarray) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


def _format(metric: str, sign: str = "") -> str:
    """Return the number format of a hover text."""
    return f":{sign}.1f" if METRICS[metric].share else f":{sign}.3g"


def _unit(metric: str) -> str:
    return " %" if METRICS[metric].share else ""
