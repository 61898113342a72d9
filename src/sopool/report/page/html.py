"""The report as one self-contained HTML page, with all tables, charts, styles and scripts."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from sopool import __version__
from sopool.experiments.entries import Entry, join_words
from sopool.experiments.ranks import Ranks
from sopool.experiments.reproduce.reproduction import Reproduction
from sopool.experiments.summary import Gain, Summary
from sopool.objectives import METRICS
from sopool.report.grids.controls import controls_grid
from sopool.report.grids.reproduction import reproduction_grid, setup_note
from sopool.report.grids.results import headline
from sopool.report.grids.store import (
    confusion_grid,
    cost_grid,
    details_grid,
    entry_metrics,
    gains_grid,
    scores_grid,
    targets_grid,
    tests_grid,
)
from sopool.report.page.charts import Chart, curves_chart, gains_chart, predicted_chart, ranks_chart, scores_chart
from sopool.report.page.render import check_page, page_file, render
from sopool.report.scores import score_cell, title_of
from sopool.training.protocols.protocols import PROTOCOLS

MEANINGS = {
    "per-fold-max": "Each fold is scored at the epoch with the best score on its own test graphs, and the "
    "hyperparameters are those with the best mean of these scores. Because the selection uses the test graphs, the "
    "reported score is better than on new graphs. The paper's code reports this figure.",
    "single-epoch": "All folds are scored at the one epoch, and with the one set of hyperparameters, that has the "
    "best mean score over the test folds (Xu et al., GIN). The selection still uses the test graphs, but only to "
    "pick one epoch for all folds.",
    "last-epoch": "All folds are scored at their last epoch, so that no epoch is selected (DGCNN).",
    "fair": "The epoch and the hyperparameters are selected on a held-out tenth of the training graphs. The test fold "
    "is then scored once, with several final runs for each fold (Errica et al., ICLR 2020).",
}
ON_TEST = ("per-fold-max", "single-epoch", "last-epoch")


class Drawn(NamedTuple):
    """A chart with its alternative text and its caption."""

    spec: Chart
    alt: str
    caption: str


def page(summary: Summary, metrics: Sequence[str] = ()) -> str:
    """Return the report as HTML; ``metrics`` are shown beside the ones that choose. Default: the usual ones."""
    check_page("plotly")
    from plotly.offline import get_plotlyjs

    return render("page.html", plotly=get_plotlyjs(), script=page_file("page.js"), **_content(summary, metrics))


def _content(summary: Summary, metrics: Sequence[str]) -> dict[str, Any]:
    protocols = [_protocol(summary, name, metrics) for name in summary.protocols]
    return {
        "version": __version__,
        "folder": str(summary.folder),
        "datasets": summary.datasets,
        "runs": "1 run" if summary.runs == 1 else f"{summary.runs:,} runs",
        "written": summary.written.strftime("%Y-%m-%d %H:%M UTC"),
        "protocols": protocols,
        "chosen": summary.protocols[-1] if summary.protocols else None,
        "scores": scores_grid(summary),
        "reproductions": [
            {"heading": heading, "words": [setup_note(one), *one.notes], "grid": reproduction_grid(one)}
            for heading, one in zip(_headings(summary.reproductions), summary.reproductions, strict=True)
        ],
        "controls": controls_grid(summary.controls, metrics) if summary.controls else None,
        "ranks": bool(summary.ranks),
        "parts": [
            _dataset(name, [entry for entry in summary.entries if entry.data == name], metrics)
            for name in summary.datasets
        ],
        "cost": cost_grid(summary.entries),
        "notes": summary.notes,
        "sections": _sections(summary),
    }


def _sections(summary: Summary) -> list[tuple[str, str]]:
    """Return the anchor and the title of each section that has content."""
    papers = [(f"paper-{i + 1}", name) for i, name in enumerate(_headings(summary.reproductions))]
    return [
        ("read", "How to read this report"),
        ("scores", headline(entry_metrics(summary.entries))),
        *papers,
        *([("controls", "Controls")] if summary.controls else []),
        ("differences", "Gains over the reference"),
        *([("ranks", "Ranks across data sets")] if summary.ranks else []),
        ("details", "Details"),
        ("datasets", "Results by data set"),
        ("cost", "Time and memory"),
        *([("notes", "Missing results")] if summary.notes else []),
    ]


def _protocol(summary: Summary, name: str, metrics: Sequence[str]) -> dict[str, Any]:
    gains = [gain for gain in summary.gains if gain.protocol == name]
    return {
        "name": name,
        "optimistic": PROTOCOLS[name].optimistic,
        "meaning": MEANINGS[name],
        "details": details_grid(summary.entries, name, metrics),
        "gains": gains_grid(gains, name) if gains else None,
        "gains_charts": [
            _gains_chart(name, [gain for gain in gains if gain.entry.shared.metric == metric], metric)
            for metric in entry_metrics(gain.entry for gain in gains)
            if gains
        ],
        "ranks": [_ranks(one) for one in summary.ranks if one.across.protocol == name],
    }


def _gains_chart(protocol: str, gains: Sequence[Gain], metric: str) -> Drawn:
    clear = sum(gain.comparison.clear for gain in gains)
    return Drawn(
        gains_chart(gains, [gain.entry.title for gain in gains], metric),
        f"Gain over the reference under {protocol} for {len(gains)} poolings, with 95 % intervals; the table below "
        "lists the values.",
        _significance(clear, len(gains)),
    )


def _significance(clear: int, count: int) -> str:
    """Say how many of the gains are statistically significant."""
    if count == 1:
        found = "The difference is" if clear else "The difference is not"
        return f"{found} statistically significant: its 95 % interval {'does not contain' if clear else 'contains'} 0."
    return (
        f"{clear} of {count} differences are statistically significant: their 95 % interval does not contain 0."
        if clear
        else f"None of the {count} differences is statistically significant: each 95 % interval contains 0."
    )


def _headings(tables: Sequence[Reproduction]) -> list[str]:
    """Return a heading for each table; reproductions of one table are distinguished by their training."""
    headings = []
    for one in tables:
        others = [other.training for other in tables if other.table == one.table]
        differ = [name for name, value in one.training.items() if any(other[name] != value for other in others)]
        heading = "The paper's " + re.sub("([0-9])", r" \1", one.table)
        headings.append(", ".join([heading, *(_told(name, one.training[name]) for name in differ)]))
    return headings


def _told(name: str, value: Any) -> str:
    if name == "settings":
        return f"{len(value)} setting{'s' if len(value) > 1 else ''}"
    return f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"


def _ranks(ranks: Ranks) -> dict[str, Any]:
    across = ranks.across
    order = sorted(across.ranks, key=lambda name: across.ranks[name])
    told = ", ".join(f"{name} {across.ranks[name]:.2f}" for name in order)
    caption = "Bars join poolings whose mean ranks do not differ significantly"
    if across.critical_difference is not None:
        caption += f"; the critical difference is {across.critical_difference:.2f} (Nemenyi test, 5 % level)"
    notes = (
        [f"Friedman test of the hypothesis that all poolings are equally good: p = {across.friedman:.3f}."]
        if across.friedman is not None
        else []
    )
    return {
        "heading": f"{join_words(ranks.network, ranks.variant)}: {', '.join(across.datasets)}",
        "chart": Drawn(
            ranks_chart(across.ranks, across.critical_difference),
            f"Critical-difference diagram under {across.protocol}, mean ranks: {told}.",
            f"{caption}.",
        ),
        "notes": [*notes, *across.notes],
        "tests": tests_grid(across, ranks.metric),
    }


def _dataset(name: str, entries: Sequence[Entry], metrics: Sequence[str]) -> dict[str, Any]:
    judged = [entry for entry in entries if entry.outcomes]
    parts = {protocol: [entry for entry in judged if protocol in entry.outcomes] for protocol in PROTOCOLS}
    return {
        "name": name,
        "overviews": [
            _overview(name, [entry for entry in judged if entry.shared.metric == metric], metric)
            for metric in entry_metrics(judged)
            if judged
        ],
        "curves": [drawn for entry in judged for drawn in _curves(entry)],
        "confusion": {
            protocol: [confusion_grid(entry, protocol) for entry in some if protocol in entry.confusion]
            for protocol, some in parts.items()
        },
        "targets": {
            protocol: [targets_grid(entry, protocol, metrics) for entry in some if entry.outcomes[protocol].targets]
            for protocol, some in parts.items()
        },
        "predicted": {
            protocol: [drawn for entry in some if protocol in entry.predicted for drawn in _predicted(entry, protocol)]
            for protocol, some in parts.items()
        },
    }


def _overview(name: str, entries: Sequence[Entry], metric: str) -> Drawn:
    return Drawn(
        scores_chart(entries, metric),
        f"Mean {title_of(metric)} of each pooling on {name} under each protocol; the first table lists the values.",
        "One row for each pooling. The distance between its markers shows how much selecting on the test folds adds.",
    )


def _predicted(entry: Entry, protocol: str) -> list[Drawn]:
    """Return two charts for each target: predicted against true values, and residuals."""
    found = entry.predicted[protocol]
    drawn = []
    for target, name in enumerate(entry.targets):
        for residuals, what in ((False, "predicted against true values"), (True, "residuals against true values")):
            text = f"{entry.title}, {name}: {what}, all test folds; the runs of a fold are averaged."
            drawn.append(Drawn(predicted_chart(found, target, name, residuals), text, text))
    return drawn


def _curves(entry: Entry) -> list[Drawn]:
    found = []
    metric = entry.shared.metric
    title = title_of(metric)
    for together in (ON_TEST, ("fair",)):
        protocols = [name for name in together if name in entry.outcomes]
        if protocols:
            unit = ", %" * METRICS[metric].share
            each = [f"{name} {score_cell(metric, entry.outcomes[name].mean).text}" for name in protocols]
            looked_at = "test" if together == ON_TEST else "validation"
            found.append(
                Drawn(
                    curves_chart(entry, protocols),
                    f"Training and {looked_at} {title} of {entry.title} against epochs; reported{unit}: "
                    f"{', '.join(each)}.",
                    f"{entry.title}. Solid lines: training and {looked_at} {title}, mean over folds; bands: 10th to "
                    f"90th percentile of the folds. Dashed lines: reported test {title}; markers: the selected epochs "
                    f"and their test {title}.",
                )
            )
    return found
