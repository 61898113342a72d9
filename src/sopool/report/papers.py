"""Tables of the report for papers: Markdown, LaTeX, and CSV with one row for each fold."""

import csv
import html
import io
import re
from collections.abc import Sequence

import numpy as np

from sopool._runtime.visible import visible
from sopool.experiments.entries import Entry
from sopool.experiments.summary import Summary
from sopool.models.config import Setting
from sopool.report.grid import Cell, Grid
from sopool.report.grids.store import accuracy_grid, gains_grid
from sopool.training.protocols.outcome import Outcome
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
FIELDS = (
    *("data", "fingerprint", "network", "pool", "variant", "seed", "protocol", "optimistic", "fold"),
    *("accuracy", "balanced_accuracy", "roc_auc", "epochs", "repeats", "hidden", "batch_size", "lr", "dropout"),
)


def grids(summary: Summary) -> list[Grid]:
    """Return the tables of accuracies and gains."""
    found = [accuracy_grid(summary)]
    for protocol in summary.protocols:
        gains = [gain for gain in summary.gains if gain.protocol == protocol]
        found += [gains_grid(gains, protocol)] if gains else []
    return found


def markdown(summary: Summary) -> str:
    """Return the tables as GitHub-flavored Markdown, with the protocols and the missing results."""
    return "\n".join([grid_markdown(grid) for grid in grids(summary)] + _meanings(summary) + _missing(summary))


def grid_markdown(grid: Grid) -> str:
    """Return one table as Markdown, below its title."""
    rule = ["---:" if grid.is_figure(i) else "---" for i in range(len(grid.columns))]
    lines = [f"## {_md(grid.title)}", "", _line([_md(name) for name in grid.headings]), _line(rule)]
    lines += [_line([_md_cell(cell) for cell in row]) for row in grid.rows]
    return "\n".join([*lines, "", *map(_md, grid.notes), ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _md_cell(cell: Cell) -> str:
    return f"**{_md(cell.text)}**" if cell.strong else _md(cell.text)


def _md(text: str) -> str:
    return re.sub(r"([\\`*_|~$\[\]])", r"\\\1", html.escape(visible(text), quote=False)).replace("\n", "<br>")


def _meanings(summary: Summary) -> list[str]:
    return [f"- {name}: {PROTOCOLS[name].meaning}." for name in summary.protocols] + [""]


def _missing(summary: Summary) -> list[str]:
    return ["## Missing results", "", *(f"- {_md(note)}" for note in summary.notes), ""] if summary.notes else []


def latex(summary: Summary) -> str:
    r"""Return LaTeX ``table`` environments, which need ``\usepackage{booktabs}``; comments list missing results."""
    missing = [f"% Missing: {visible(' '.join(note.split()))}\n" for note in summary.notes]
    return "".join(missing) + "\n".join(_latex(grid) for grid in grids(summary))


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


def tidy(summary: Summary) -> str:
    """Return CSV with a row for each data set, network, pooling, seed, protocol and fold; accuracies are fractions."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    for entry in summary.entries:
        for seed, outcomes in entry.seeds.items():
            for outcome in outcomes.values():
                writer.writerows(_folds(entry, seed, outcome))
    return text.getvalue()


def _folds(entry: Entry, seed: int, outcome: Outcome) -> list[list[object]]:
    name: list[object] = [entry.data, entry.shared.fingerprint, entry.network, entry.pool, entry.variant, seed]
    name += [outcome.protocol, outcome.optimistic]
    epochs = np.array(outcome.epochs).reshape(-1, outcome.repeats) if not isinstance(outcome.epochs, int) else None
    rows: list[list[object]] = []
    for fold, accuracy in enumerate(outcome.folds):
        setting = outcome.setting if isinstance(outcome.setting, Setting) else outcome.setting[fold]
        chosen = outcome.epochs if epochs is None else " ".join(map(str, epochs[fold]))
        others = [outcome.scores[name][fold] for name in ("balanced_accuracy", "roc_auc") if name in outcome.scores]
        figures = [accuracy, *others, chosen, outcome.repeats]
        rows.append([*name, fold + 1, *figures, *setting])
    return rows
