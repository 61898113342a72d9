"""The report as one page that needs nothing beside itself: figures, charts, styles and scripts are all in it."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from sopool import __version__
from sopool.experiments.entries import Entry, join_words
from sopool.experiments.ranks import Ranks
from sopool.experiments.reproduce.reproduction import Reproduction
from sopool.experiments.summary import Summary
from sopool.report.grids.controls import controls_grid
from sopool.report.grids.reproduction import reproduction_grid, setup_note
from sopool.report.grids.store import accuracy_grid, confusion_grid, cost_grid, details_grid, gains_grid, tests_grid
from sopool.report.page.charts import Chart, accuracy_chart, curves_chart, gains_chart, ranks_chart
from sopool.report.page.render import check_extras, page_file, render
from sopool.training.protocols.protocols import BEST, PROTOCOLS

MEANINGS = {
    "per-fold-max": "Every fold counts at the epoch that is best on its own test graphs, "
    f"{BEST}. The test graphs choose what they are scored by, so this is higher than what new graphs would see. It is "
    "what the paper's code reports.",
    "single-epoch": "All folds count at the one epoch, and setting, with the best mean over the test folds (Xu et al., "
    "GIN). The test graphs still choose, but one epoch for all.",
    "fair": "Epoch and setting are chosen on a tenth of the training graphs, held out for that; then the test fold is "
    "scored once, with several final runs for each fold (Errica et al., ICLR 2020).",
}
ON_TEST = ("per-fold-max", "single-epoch")


class Drawn(NamedTuple):
    """A chart with what is said of it, to those who see it and those who do not."""

    spec: Chart
    alt: str
    caption: str


def page(summary: Summary) -> str:
    """All of it as HTML."""
    check_extras("plotly")
    from plotly.offline import get_plotlyjs

    return render("page.html", plotly=get_plotlyjs(), script=page_file("page.js"), **_content(summary))


def _content(summary: Summary) -> dict[str, Any]:
    protocols = [_protocol(summary, name) for name in summary.protocols]
    return {
        "version": __version__,
        "folder": str(summary.folder),
        "datasets": summary.datasets,
        "runs": "1 run" if summary.runs == 1 else f"{summary.runs:,} runs",
        "written": summary.written.strftime("%Y-%m-%d %H:%M UTC"),
        "protocols": protocols,
        "chosen": summary.protocols[-1] if summary.protocols else None,
        "accuracy": accuracy_grid(summary),
        "reproductions": [
            {"heading": heading, "words": [setup_note(one), *one.notes], "grid": reproduction_grid(one)}
            for heading, one in zip(_headings(summary.reproductions), summary.reproductions, strict=True)
        ],
        "controls": controls_grid(summary.controls) if summary.controls else None,
        "ranks": bool(summary.ranks),
        "parts": [
            _dataset(name, [entry for entry in summary.entries if entry.data == name]) for name in summary.datasets
        ],
        "cost": cost_grid(summary.entries),
        "notes": summary.notes,
        "sections": _sections(summary),
    }


def _sections(summary: Summary) -> list[tuple[str, str]]:
    """Anchor and name of each, where there is something to show."""
    papers = [(f"paper-{i + 1}", name) for i, name in enumerate(_headings(summary.reproductions))]
    return [
        ("read", "How to read this"),
        ("accuracy", "Accuracy"),
        *papers,
        *([("controls", "Controls")] if summary.controls else []),
        ("differences", "Differences"),
        *([("ranks", "Ranks")] if summary.ranks else []),
        ("details", "In detail"),
        ("datasets", "Data set by data set"),
        ("cost", "Time and memory"),
        *([("notes", "What is missing")] if summary.notes else []),
    ]


def _protocol(summary: Summary, name: str) -> dict[str, Any]:
    gains = [gain for gain in summary.gains if gain.protocol == name]
    names = [gain.entry.title for gain in gains]
    clear = sum(gain.comparison.clear for gain in gains)
    return {
        "name": name,
        "optimistic": PROTOCOLS[name].optimistic,
        "meaning": MEANINGS[name],
        "details": details_grid(summary.entries, name),
        "gains": gains_grid(gains, name) if gains else None,
        "gains_chart": Drawn(
            gains_chart(gains, names),
            f"Gain over the reference under {name} for {len(gains)} poolings, with 95 % intervals; the table below has "
            "the figures.",
            f"{clear} of {len(gains)} intervals leave out 0.",
        ),
        "ranks": [_ranks(one) for one in summary.ranks if one.across.protocol == name],
    }


def _headings(tables: Sequence[Reproduction]) -> list[str]:
    """With what tells apart those of one table that were trained in several ways."""
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
    caption = "Bars join poolings whose ranks cannot be told apart"
    if across.critical_difference is not None:
        caption += f": they differ by less than {across.critical_difference:.2f} (Nemenyi, 5 %)"
    notes = [f"All equally good: p = {across.friedman:.3f} (Friedman)."] if across.friedman is not None else []
    return {
        "heading": f"{join_words(ranks.network, ranks.variant)}: {', '.join(across.datasets)}",
        "chart": Drawn(
            ranks_chart(across.ranks, across.critical_difference),
            f"Critical-difference diagram under {across.protocol}, mean ranks: {told}.",
            f"{caption}.",
        ),
        "notes": [*notes, *across.notes],
        "tests": tests_grid(across),
    }


def _dataset(name: str, entries: Sequence[Entry]) -> dict[str, Any]:
    judged = [entry for entry in entries if entry.outcomes]
    overview = Drawn(
        accuracy_chart(judged),
        f"Mean accuracy of each pooling on {name} under each protocol; the table of accuracies has the figures.",
        "One line for each pooling. How far its marks are apart is what choosing on the test folds adds.",
    )
    confusion = {
        protocol: [confusion_grid(entry, protocol) for entry in judged if protocol in entry.confusion]
        for protocol in PROTOCOLS
    }
    return {
        "name": name,
        "overview": overview,
        "curves": [drawn for entry in judged for drawn in _curves(entry)],
        "confusion": confusion,
    }


def _curves(entry: Entry) -> list[Drawn]:
    found = []
    for together in (ON_TEST, ("fair",)):
        protocols = [name for name in together if name in entry.outcomes]
        if protocols:
            figures = ", ".join(f"{name} {100 * entry.outcomes[name].mean:.1f}" for name in protocols)
            looked_at = "test" if together == ON_TEST else "validation"
            found.append(
                Drawn(
                    curves_chart(entry, protocols),
                    f"Training and {looked_at} accuracy over epochs of {entry.title}; reported: {figures} per cent.",
                    f"{entry.title}. Lines: mean over folds of training and {looked_at} accuracy; bands: 10 to 90 % "
                    f"of the folds. Dashed: what is reported; marks: the epochs it comes from.",
                )
            )
    return found
