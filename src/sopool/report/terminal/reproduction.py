"""A reproduced table of the paper for the terminal."""

from collections.abc import Sequence

from rich.table import Table

from sopool.experiments.comparison import Comparison
from sopool.experiments.reproduce.paper.tables import Figure, Row
from sopool.experiments.reproduce.reproduction import Cell, Compared, Measured, Reproduction
from sopool.experiments.statistics import Across
from sopool.report.grid import gain_words, points
from sopool.training.protocols.protocols import PROTOCOLS

WHYS = {
    "declared": "Interval and p: corrected resampled t-test (Nadeau and Bengio) on the same folds, two-sided, not "
    "adjusted for the number of comparisons.\nThe paper's gain: that of its figures, whatever their protocols.",
    "random": "Drawn: the pooling's own parameters stay as they were drawn, all else is trained. Not declared: to be "
    "looked at.",
    "control": "The control with the best mean. Not declared: to be looked at.",
}
"""Why two lines are compared, and what to say about it."""


def reproduction_tables(found: Reproduction) -> list[Table]:
    """All there is to say: each data set, the gains, what learning and controls say, ranks over data sets."""
    tables = [_dataset_table(found, name) for name in found.datasets]
    declared, drawn, control = map(found.compared, WHYS)
    if declared:
        tables.append(
            _gains_table("On equal terms: gain in points (95 % interval), p", found, declared, WHYS["declared"])
        )
    if drawn:
        tables.append(
            _gains_table("Learned less drawn parameters, in points (95 % interval), p", found, drawn, WHYS["random"])
        )
    if control:
        title = "Over the best control, in points (95 % interval), p"
        tables.append(_gains_table(title, found, control, WHYS["control"], ["fair"]))
    if max((len(one.datasets) for one in found.across), default=0) > 1:
        tables.append(_ranks_table(found))
        if any(one.declared for one in found.across):
            tables.append(_tests_table(found))
    return tables


def reproduction_notes(found: Reproduction) -> list[str]:
    """What to know beside the tables: how it was run, by which protocols, and why there are no ranks if so."""
    few = [note for one in found.across if len(one.datasets) < 2 for note in one.notes]
    return [setup_note(found), *found.notes, *dict.fromkeys(few)]


def setup_note(found: Reproduction) -> str:
    """How it was run."""
    setup = found.setup
    settings = [f"{one['hidden']}/{one['batch_size']}/{one['lr']:g}/{one['dropout']:g}" for one in setup["settings"]]
    batches = "one pass over the training graphs" if setup["steps"] is None else f"{setup['steps']} batches"
    return (
        f"Run with the preset {setup['preset']}: {setup['epochs']} epochs of {batches}, {setup['folds']} folds, "
        f"seed {', '.join(map(str, setup['seeds']))}; hidden/batch/lr/dropout {', '.join(settings)}."
    )


def _dataset_table(found: Reproduction, dataset: str) -> Table:
    table = _table(
        f"{dataset}, accuracy in per cent", ["", "paper", "paper's\nprotocol", *map(_title, found.protocols)]
    )
    table.add_column("ours -\npaper's", justify="right", overflow="fold")
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
            row.name,
            _figure(cell.paper),
            (row.protocol or "not known") if cell.paper else "",
            *(_accuracy(cell.measured.get(protocol)) for protocol in found.protocols),
            _off(row, cell),
            _note(row, cell),
        )
    if dataset in found.not_run:
        table.caption = f"Not run: {found.not_run[dataset]}"
    return table


def _gains_table(
    title: str, found: Reproduction, compared: Sequence[Compared], caption: str, only: Sequence[str] | None = None
) -> Table:
    """Differences of pairs of lines: a pair on each data set is a line, with a column for each protocol."""
    protocols = list(only or found.protocols)
    groups: dict[tuple[str, str, str], dict[str, Comparison]] = {}
    for one in compared:
        groups.setdefault((one.dataset, one.row, one.against), {})[one.protocol] = one.comparison
    papers = {key: found.paper_gain(*key) for key in groups}
    shown = any(gain is not None for gain in papers.values())
    columns = ["data set", "line", "against", *(["paper's\ngain"] if shown else []), *map(_title, protocols)]
    table = _table(title, columns)
    before = ""
    for key, tests in groups.items():
        dataset, row, against = key
        if before and dataset != before:
            table.add_section()
        gains = [_gain(tests.get(protocol)) for protocol in protocols]
        first = "" if dataset == before else dataset
        table.add_row(first, row, against, *([_points(papers[key])] if shown else []), *gains)
        before = dataset
    table.caption = caption
    return table


def _ranks_table(found: Reproduction) -> Table:
    """Mean ranks over data sets, the lines that are best under the last protocol first."""
    table = _table("Mean rank over data sets, 1 is best", ["line", *(_title(one.protocol) for one in found.across)])
    names = {name: one.ranks[name] for one in found.across for name in one.ranks}
    for name in sorted(names, key=names.__getitem__):
        table.add_row(name, *(f"{one.ranks[name]:.2f}" if name in one.ranks else "" for one in found.across))
    table.caption = "\n".join(dict.fromkeys(line for one in found.across for line in _rank_notes(one)))
    return table


def _rank_notes(one: Across) -> list[str]:
    lines = [f"{one.protocol}: {len(one.datasets)} data sets."]
    if one.critical_difference is not None:
        lines[0] += f" Ranks that differ by less than {one.critical_difference:.2f} cannot be told apart (Nemenyi)."
    if one.friedman is not None:
        lines[0] += f" All lines equally good: p = {_p(one.friedman)} (Friedman)."
    return [*lines, *one.notes]


def _tests_table(found: Reproduction) -> Table:
    """The declared comparisons over data sets."""
    title = "Declared comparisons over data sets: median gain in points, p (Wilcoxon), p (Holm)"
    table = _table(title, ["line", "against", "data sets", *(_title(one.protocol) for one in found.across)])
    tests = [{(test.row, test.against): test for test in one.declared} for one in found.across]
    for pair in dict.fromkeys(pair for some in tests for pair in some):
        each = [some.get(pair) for some in tests]
        texts = [f"{points(one.median)}, {_p(one.p)}, {_p(one.holm)}" if one else "" for one in each]
        count = max(one.datasets for one in each if one)
        table.add_row(*pair, str(count), *texts)
    table.caption = "Holm: adjusted for the comparisons of this table under one protocol."
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left")
    words = ("", "data set", "line", "against", "GNN", "poolings", "pooling", "paper's\nprotocol")
    for column in columns:
        table.add_column(column, justify="left" if column in words else "right", overflow="fold")
    return table


def _title(protocol: str) -> str:
    label = PROTOCOLS[protocol].optimistic
    return f"{protocol}\n({label})" if label else protocol


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
    return "" if ours is None or cell.paper is None else points(ours.mean - cell.paper.mean)


def _figure(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return f"{100 * figure.mean:.1f}" + ("" if figure.std is None else f" +- {100 * figure.std:.1f}")


def _accuracy(measured: Measured | None) -> str:
    return "" if measured is None else f"{100 * measured.mean:.1f} +- {100 * measured.std:.1f}"


def _points(difference: float | None) -> str:
    return "" if difference is None else points(difference)


def _gain(test: Comparison | None) -> str:
    if test is None:
        return ""
    return f"{gain_words(test)}, {_p(test.p)}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
