"""A reproduced table of the paper for the terminal."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from sopool.experiments.comparison import Comparison
from sopool.experiments.paper.figure2 import DRAWS, Verdict
from sopool.experiments.paper.tables import Figure, Row
from sopool.experiments.plan import Planned
from sopool.experiments.reproduction import Cell, Compared, Measured, Reproduction
from sopool.experiments.statistics import Across
from sopool.training.protocols import PROTOCOLS

SHORT = {"per-fold-max": "max", "single-epoch": "single", "fair": "fair"}
"""Protocols behind the paper's figures, in a word."""


def reproduction_tables(found: Reproduction) -> list[Table]:
    """All there is to say: each data set, the gains, what learning and controls say, ranks over data sets."""
    tables = [_dataset_table(found, name) for name in found.datasets]
    for make in (_gains_table, _controls_table):
        if (table := make(found)) is not None:
            tables.append(table)
    return tables + [_across_table(one) for one in found.across if one.ranks]


def _dataset_table(found: Reproduction, dataset: str) -> Table:
    table = _table(f"{dataset}, accuracy in per cent", ["", "paper", "paper's\nprotocol", *_protocols(found)])
    table.add_column("ours -\npaper's", justify="right")
    table.add_column("note", overflow="fold")
    section = ""
    for row in found.rows:
        cell = found.cell(row.name, dataset)
        if not cell.measured and cell.paper is None:
            continue
        if section and row.kind != section:
            table.add_section()
        section = row.kind
        table.add_row(
            escape(row.name),
            _figure(cell.paper),
            SHORT.get(row.protocol or "", "?") if cell.paper else "",
            *(_accuracy(cell.measured.get(protocol)) for protocol in found.protocols),
            _off(row, cell),
            escape(_note(row, cell)),
        )
    if dataset in found.not_run:
        table.caption = escape(f"Not run: {found.not_run[dataset]}")
    return table


def _gains_table(found: Reproduction) -> Table | None:
    """The declared comparisons: the paper's, between unlike protocols, beside ours, between like ones."""
    declared = [one for one in found.comparisons if one.why == "declared"]
    if not declared:
        return None
    columns = ["data set", "line", "against", "paper's\ngain", *_protocols(found)]
    table = _table("On equal terms: gain in points (95 % interval), p", columns)
    _fill(table, found, declared, with_paper=True)
    table.caption = (
        "Interval and p: corrected resampled t-test (Nadeau and Bengio) on the same folds, two-sided, not adjusted for "
        "the number of comparisons.\nThe paper's gain is the difference of its two figures"
        + (", whose protocols differ." if any(row.pool == "sum-avg" for row in found.rows) else ".")
    )
    return table


def _controls_table(found: Reproduction) -> Table | None:
    """What learning the pooling's own parameters buys, and what the network buys over the best control."""
    others = [one for one in found.comparisons if one.why in ("random", "control")]
    if not others:
        return None
    columns = ["data set", "line", "against", *_protocols(found)]
    table = _table("Against controls: gain in points (95 % interval), p", columns)
    _fill(table, found, others, with_paper=False)
    table.caption = (
        "random: the same pooling, its own parameters left as drawn. Otherwise the best of the controls, which are "
        "judged under fair only.\nTests as above; they were not declared, and are there to be looked at."
    )
    return table


def _fill(table: Table, found: Reproduction, compared: Sequence[Compared], with_paper: bool) -> None:
    groups: dict[tuple[str, str, str], dict[str, Comparison]] = {}
    for one in compared:
        groups.setdefault((one.dataset, one.row, one.against), {})[one.protocol] = one.comparison
    before = ""
    for (dataset, row, against), tests in groups.items():
        if before and dataset != before:
            table.add_section()
        first, before = ("" if dataset == before else dataset), dataset
        paper = [_paper_gain(found.cell(row, dataset).paper, found.cell(against, dataset).paper)] if with_paper else []
        gains = [_gain(tests.get(protocol)) for protocol in found.protocols]
        table.add_row(escape(first), escape(row), escape(against), *paper, *gains)


def _across_table(one: Across) -> Table:
    label = PROTOCOLS[one.protocol].optimistic
    title = f"Over {len(one.datasets)} data set{'s' if len(one.datasets) != 1 else ''}: {one.protocol}"
    columns = ["line", "mean rank", "against", "median gain", "data sets", "p\n(Wilcoxon)", "p\n(Holm)"]
    table = _table(title + (f" ({label})" if label else ""), columns)
    tests = {test.row: test for test in one.declared}
    for row, rank in sorted(one.ranks.items(), key=lambda item: item[1]):
        test = tests.get(row)
        rest = ["", "", "", "", ""]
        if test is not None:
            rest = [test.against, f"{100 * test.median:+.1f}", str(test.datasets), _p(test.p), _p(test.holm)]
        table.add_row(escape(row), f"{rank:.2f}", *(escape(text) for text in rest))
    caption = []
    if one.critical_difference is not None:
        caption.append(
            f"Mean ranks that differ by less than {one.critical_difference:.2f} cannot be told apart (Nemenyi)."
        )
    if one.friedman is not None:
        caption.append(f"All lines equally good: p = {_p(one.friedman)} (Friedman).")
    table.caption = escape("\n".join([*caption, *one.notes]))
    return table


def plan_table(lines: Sequence[Planned]) -> Table:
    """What would be trained, and about how long it takes."""
    table = _table("What is to train", ["data set", "GNN", "poolings"])
    for column in ("runs", "in the store", "model-epochs", "to train", "about"):
        table.add_column(column, justify="right")
    for one in lines:
        counts = (f"{number:,}" for number in (one.runs, one.found, one.model_epochs, one.left))
        table.add_row(
            escape(one.dataset), escape(one.network), escape(", ".join(one.pools)), *counts, _time(one.seconds)
        )
    if len(lines) > 1:
        table.add_section()
        sums = (sum(getattr(one, name) for one in lines) for name in ("runs", "found", "model_epochs", "left"))
        table.add_row("all", "", "", *(f"{number:,}" for number in sums), _time(sum(one.seconds for one in lines)))
    return table


def figure2_table(verdicts: Sequence[Verdict]) -> Table:
    """Which poolings tell the paper's pairs of graphs apart."""
    table = _table("Figure 2: two different graphs, how far apart?", ["pooling"])
    examples = list(dict.fromkeys(one.example for one in verdicts))
    for example in examples:
        table.add_column(f"({example}) distance", justify="right")
        table.add_column(f"({example})\ntold apart")
        table.add_column(f"({example})\npaper")
    for pool in dict.fromkeys(one.pool for one in verdicts):
        cells = []
        for example in examples:
            (one,) = (one for one in verdicts if (one.pool, one.example) == (pool, example))
            cells += [f"{one.nearest:.2g} to {one.farthest:.2g}", "yes" if one.told_apart else "no", one.paper]
        table.add_row(pool, *cells)
    table.caption = (
        "(a) one colour, 3 nodes and 5. (b) two colours in equal shares, 2 nodes and 4. Nodes of one colour have one "
        f"representation.\nDistance of the two vectors over {DRAWS} draws of colours and parameters, in float64: below "
        "1e-9 is rounding.\npaper: where it says that the pooling fails."
    )
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=escape(title), title_justify="left", caption_justify="left")
    words = ("", "data set", "line", "against", "GNN", "poolings", "pooling", "paper's\nprotocol")
    for column in columns:
        table.add_column(column, justify="left" if column in words else "right", overflow="fold")
    return table


def _protocols(found: Reproduction) -> list[str]:
    names = []
    for name in found.protocols:
        label = PROTOCOLS[name].optimistic
        names.append(f"{name}\n({label})" if label else name)
    return names


def _note(row: Row, cell: Cell) -> str:
    notes = []
    if row.quoted:
        notes.append(f"quoted: {row.quoted}")
    if cell.not_above:
        notes.append(f"! not above {', '.join(cell.not_above)}")
    stopped = sum(measured.stopped for measured in cell.measured.values())
    if stopped:
        notes.append(f"{stopped} runs stopped: loss not finite")
    return "; ".join(notes)


def _off(row: Row, cell: Cell) -> str:
    """Ours less the paper's, under the protocol of its figure; empty where that is not known."""
    ours = cell.measured.get(row.protocol or "")
    return "" if ours is None or cell.paper is None else f"{100 * (ours.mean - cell.paper.mean):+.1f}"


def _figure(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return f"{100 * figure.mean:.1f}" + ("" if figure.std is None else f" +- {100 * figure.std:.1f}")


def _accuracy(measured: Measured | None) -> str:
    return "" if measured is None else f"{100 * measured.mean:.1f} +- {100 * measured.std:.1f}"


def _paper_gain(figure: Figure | None, against: Figure | None) -> str:
    return "-" if figure is None or against is None else f"{100 * (figure.mean - against.mean):+.1f}"


def _gain(test: Comparison | None) -> str:
    if test is None:
        return ""
    return f"{100 * test.difference:+.1f} ({100 * test.low:+.1f} to {100 * test.high:+.1f}), {_p(test.p)}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _time(seconds: float) -> str:
    """Two figures at most, for it is an estimate."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 100 * length else f"{seconds / length:,.0f} {unit}"
    return f"{max(1.0, seconds):.0f} s" if seconds else "-"
