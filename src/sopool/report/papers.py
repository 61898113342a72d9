"""Tables of the report for papers: Markdown, LaTeX, and CSV with one row for each fold."""

import csv
import html
import io
import re
from collections.abc import Iterator, Sequence

import numpy as np

from sopool._runtime.visible import visible
from sopool.experiments.entries import Entry
from sopool.experiments.summary import Summary
from sopool.models.config import Setting
from sopool.report.grid import Cell, Grid
from sopool.report.grids.store import details_grid, entry_metrics, further_metrics, gains_grid, scores_grid
from sopool.training.protocols.outcome import Outcome, value_text
from sopool.training.protocols.protocols import PROTOCOLS

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": "$<$",
    ">": "$>$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
NAMES = (
    "data",
    "fingerprint",
    "network",
    "pool",
    "variant",
    "seed",
    "protocol",
    "optimistic",
    "metric",
    "fold",
    "target",
)
CHOICE = ("epochs", "repeats", "hidden", "batch_size", "lr", "dropout", "options")


def grids(summary: Summary, metrics: Sequence[str] = ()) -> list[Grid]:
    """Return the tables of scores and gains, and the details with further ``metrics`` if some are given."""
    found = [scores_grid(summary)]
    for protocol in summary.protocols:
        gains = [gain for gain in summary.gains if gain.protocol == protocol]
        found += [gains_grid(gains, protocol)] if gains else []
        found += [details_grid(summary.entries, protocol, metrics)] if metrics else []
    return found


def markdown(summary: Summary, metrics: Sequence[str] = ()) -> str:
    """Return the tables as GitHub-flavored Markdown, with the protocols and the missing results."""
    return "\n".join([grid_markdown(grid) for grid in grids(summary, metrics)] + _meanings(summary) + _missing(summary))


def grid_markdown(grid: Grid) -> str:
    """Return one table as Markdown, below its title."""
    rule = ["---:" if grid.is_figure(i) else "---" for i in range(len(grid.columns))]
    lines = [f"## {markdown_text(grid.title)}", "", _line([markdown_text(name) for name in grid.headings]), _line(rule)]
    lines += [_line([_md_cell(cell) for cell in row]) for row in grid.rows]
    return "\n".join([*lines, "", *map(markdown_text, grid.notes), ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _md_cell(cell: Cell) -> str:
    return f"**{markdown_text(cell.text)}**" if cell.strong else markdown_text(cell.text)


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_|~$\[\]])", r"\\\1", html.escape(visible(text), quote=False)).replace("\n", "<br>")


def _meanings(summary: Summary) -> list[str]:
    return [f"- {name}: {PROTOCOLS[name].meaning}." for name in summary.protocols] + [""]


def _missing(summary: Summary) -> list[str]:
    notes = [f"- {markdown_text(note)}" for note in summary.notes]
    return ["## Missing results", "", *notes, ""] if notes else []


def latex(summary: Summary, metrics: Sequence[str] = ()) -> str:
    r"""Return LaTeX ``table`` environments, which need ``\usepackage{booktabs}``; comments list missing results."""
    missing = [f"% Missing: {visible(' '.join(note.split()))}\n" for note in summary.notes]
    return "".join(missing) + "\n".join(_latex(grid) for grid in grids(summary, metrics))


def _latex(grid: Grid) -> str:
    columns = "".join("r" if grid.is_figure(i) else "l" for i in range(len(grid.columns)))
    rows = []
    for number, row in enumerate(grid.rows):
        rows += [r"\midrule"] if number in grid.sections else []
        rows.append(" & ".join(_tex_cell(cell) for cell in row) + r" \\")
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(grid.title)}. {_tex(' '.join(grid.notes))}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(_tex(name) for name in grid.headings) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _tex_cell(cell: Cell) -> str:
    return rf"\textbf{{{_tex(cell.text)}}}" if cell.strong else _tex(cell.text)


def _tex(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in visible(text))


def tidy(summary: Summary, metrics: Sequence[str] = ()) -> str:
    """Return CSV with a row for each data set, network, pooling, seed, protocol and fold; shares are fractions.

    There is a column for each metric, and ``metric`` names the one that chooses. Of several targets, ``target`` is
    empty in the row of their average.
    """
    used = list(dict.fromkeys([*entry_metrics(summary.entries), *further_metrics(summary.entries, metrics)]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*NAMES, *used, *CHOICE])
    for entry in summary.entries:
        for seed, outcomes in entry.seeds.items():
            for outcome in outcomes.values():
                writer.writerows(_folds(entry, seed, outcome, used))
    return text.getvalue()


def _choice(setting: Setting) -> list[object]:
    """Return the columns of a setting; those of a network are empty for other systems."""
    options = ", ".join(f"{name} {value_text(value)}" for name, value in setting.options)
    return [*(setting[:4] if setting.is_network else [""] * 4), options]


def _folds(entry: Entry, seed: int, outcome: Outcome, metrics: Sequence[str]) -> Iterator[list[object]]:
    name: list[object] = [entry.data, entry.shared.fingerprint, entry.network, entry.pool, entry.variant, seed]
    name += [outcome.protocol, outcome.optimistic, outcome.metric]
    epochs = np.array(outcome.epochs).reshape(-1, outcome.repeats) if not isinstance(outcome.epochs, int) else None
    parts = {"": {outcome.metric: outcome.folds, **outcome.scores}, **outcome.targets}
    for fold in range(len(outcome.folds)):
        setting = outcome.setting if isinstance(outcome.setting, Setting) else outcome.setting[fold]
        chosen = outcome.epochs if epochs is None else " ".join(map(str, epochs[fold]))
        for target, scores in parts.items():
            figures = [scores[metric][fold] if metric in scores else None for metric in metrics]
            yield [*name, fold + 1, target, *figures, chosen, outcome.repeats, *_choice(setting)]
