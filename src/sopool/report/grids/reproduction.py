"""A reproduced table of the paper."""

from collections.abc import Iterator, Sequence

from sopool.experiments.comparison import Comparison
from sopool.experiments.reproduce.paper.tables import Figure, PaperRow
from sopool.experiments.reproduce.reproduction import Measured, PairComparison, Reproduction, TableCell
from sopool.experiments.statistics import Across
from sopool.report.grid import (
    NONE,
    Cell,
    Grid,
    accuracy_cell,
    gain_words,
    p_cell,
    paired_test_note,
    points,
    points_cell,
    protocol_heading,
    protocol_label,
    word_cells,
)

EMPTY = Cell("")
NEAREST_NOTE = (
    "The protocol of a quoted figure is in most cases only near to one of ours: folds, repeats and hyperparameters "
    "differ. Figures that cannot be compared have no difference."
)


def reproduction_grid(found: Reproduction) -> Grid:
    """Show the figure of the paper and ours under every protocol, for each line and data set."""
    rows = []
    for row, cell in _lines(found, found.datasets):
        if cell.source or row.quoted:
            source = f"quoted: {cell.source.paper if cell.source else row.quoted}"
        else:
            source = "the paper's own runs" if cell.paper else "ours only"
        judged = cell.source.judged if cell.source else ""
        words = word_cells([cell.dataset, row.name, source, judged, _paper_protocol(row, cell)])
        last = word_cells([_compared(found, row, cell), ", ".join(cell.not_above)])
        rows.append([*words, *_figures(found, row, cell, NONE), *last])
    columns = [
        *("data set", "line", "where the figure is from", "how it was found", "its protocol", "paper"),
        *map(protocol_label, found.protocols),
        *("ours minus the paper's", "comparable", "not above"),
    ]
    notes = [
        "Percent: mean ± standard deviation over the test folds. Ours minus the paper's: in points, under the protocol "
        "of the paper's figure; empty where nothing was run or that is not known. Not above: the "
        "controls whose mean under fair is at least as high.",
        *(f"Not run: {name}: {why}" for name, why in found.not_run.items()),
    ]
    if any(cell.source for cell in found.cells):
        notes.insert(1, NEAREST_NOTE)
    worded = [*range(5), len(columns) - 2]
    return Grid(found.title, columns, rows, worded, notes).without_empty()


def reproduction_grids(found: Reproduction) -> list[Grid]:
    """Return all tables: each data set, the gains, the controls, and the ranks over data sets."""
    grids = []
    for name in found.datasets:
        sources = sources_grid(found, name)
        grids += [dataset_grid(found, name), *([sources] if sources.rows else [])]
    declared, random, control = map(found.compared, ("declared", "random", "control"))
    if declared:
        notes = [
            paired_test_note(one.comparison for one in declared),
            "The paper's gain is computed from its figures, whatever their protocols.",
        ]
        grids.append(_gains_grid("Gain over the baseline, in points (95 % interval), p", found, declared, notes))
    if random:
        title = "Gain of learned over random parameters, in points (95 % interval), p"
        notes = [
            "Random: the parameters of the pooling keep their initial values, and everything else is trained. This "
            "comparison was not declared in advance."
        ]
        grids.append(_gains_grid(title, found, random, notes))
    if control:
        title = "Gain over the best control, in points (95 % interval), p"
        notes = ["The control with the best mean. This comparison was not declared in advance."]
        grids.append(_gains_grid(title, found, control, notes, ["fair"]))
    if max((len(one.datasets) for one in found.across), default=0) > 1:
        grids.append(_ranks_grid(found))
        if any(one.declared for one in found.across):
            grids.append(_tests_grid(found))
    return grids


def reproduction_notes(found: Reproduction) -> list[str]:
    """Return notes on the setup and the protocols, and on why ranks are missing."""
    few = [note for one in found.across if len(one.datasets) < 2 for note in one.notes]
    return [setup_note(found), *found.notes, *dict.fromkeys(few)]


def setup_note(found: Reproduction) -> str:
    """Return a sentence on the setup of the runs."""
    setup = found.setup
    settings = [f"{one['hidden']}/{one['batch_size']}/{one['lr']:g}/{one['dropout']:g}" for one in setup["settings"]]
    batches = "one pass over the training graphs" if setup["steps"] is None else f"{setup['steps']} batches"
    return (
        f"Run with the preset {setup['preset']}: {setup['epochs']} epochs of {batches}, {setup['folds']} folds, "
        f"seed {', '.join(map(str, setup['seeds']))}; hidden/batch/lr/dropout {', '.join(settings)}."
    )


def dataset_grid(found: Reproduction, dataset: str) -> Grid:
    """Show the lines of one data set in sections: those of the paper, ours, controls."""
    rows: list[list[Cell]] = []
    sections = []
    kind = ""
    for row, cell in _lines(found, [dataset]):
        if kind and row.kind != kind:
            sections.append(len(rows))
        kind = row.kind
        paper, *ours = _figures(found, row, cell, EMPTY)
        if cell.paper is None:
            paper = NONE
        rows.append([Cell(row.name), paper, Cell(_paper_protocol(row, cell)), *ours, Cell(_note(row, cell))])
    headings = map(protocol_heading, found.protocols)
    columns = ["", "paper", "paper's\nprotocol", *headings, "ours -\npaper's", "note"]
    notes = [f"Not run: {found.not_run[dataset]}"] if dataset in found.not_run else []
    return Grid(f"{dataset}, accuracy in percent", columns, rows, [0, 2, len(columns) - 1], notes, sections)


def sources_grid(found: Reproduction, dataset: str) -> Grid:
    """Show where the quoted figures of one data set are from, how they were found, and whether ours compare."""
    rows = []
    for row in found.rows:
        cell = found.cell(row.name, dataset)
        if cell.source is not None:
            ours = row.runs(dataset) or "-"
            about = (cell.source.paper, cell.source.judged, cell.source.protocol or "none")
            rows.append(word_cells([row.name, ours, *about, _compared(found, row, cell)]))
    columns = ["", "ours", "quoted from", "its protocol", "nearest\nof ours", "comparable with ours"]
    return Grid(f"{dataset}, sources of the quoted figures", columns, rows, len(columns), [NEAREST_NOTE])


def _compared(found: Reproduction, row: PaperRow, cell: TableCell) -> str:
    """Return whether a quoted figure can be compared with ours, and why not; empty if its row says all."""
    source = cell.source
    if source is None:
        return ""
    remark = f"; {source.remark}" if source.remark else ""
    if not source.comparable:
        return f"no{remark}"
    if source.protocol in cell.measured:
        return f"yes, {source.protocol}{remark}"
    if not cell.measured:
        return f"not run here{remark}"
    return f"no; there is no result of ours under {source.protocol}"


def _lines(found: Reproduction, datasets: Sequence[str]) -> Iterator[tuple[PaperRow, TableCell]]:
    """Yield the lines of the table that have a figure of the paper or of ours."""
    for dataset in datasets:
        for row in found.rows:
            cell = found.cell(row.name, dataset)
            if cell.measured or cell.paper is not None:
                yield row, cell


def _paper_protocol(row: PaperRow, cell: TableCell) -> str:
    if cell.paper is None:
        return ""
    if cell.source is not None:
        return cell.source.protocol or "none of ours"
    return row.protocol or "not known"


def _figures(found: Reproduction, row: PaperRow, cell: TableCell, nothing: Cell) -> list[Cell]:
    """Return the figure of the paper, ours under every protocol, and the difference under the paper's protocol.

    ``nothing`` replaces missing figures.
    """
    source = cell.source
    ours = cell.measured.get((row.protocol if source is None else source.protocol) or "")
    off = nothing
    if source is not None and not source.comparable:
        ours = None
    if ours is not None and cell.paper is not None:
        off = points_cell(ours.mean - cell.paper.mean)
    figures: list[Figure | Measured | None] = [cell.paper, *map(cell.measured.get, found.protocols)]
    return [*(nothing if one is None else accuracy_cell(one.mean, one.std) for one in figures), off]


def _note(row: PaperRow, cell: TableCell) -> str:
    notes = []
    if cell.source is not None and cell.paper is not None:
        notes.append("quoted, see below")
    elif row.quoted:
        notes.append(f"quoted: {row.quoted}")
    if cell.not_above:
        notes.append(f"! not above {', '.join(cell.not_above)}")
    stopped = sum(measured.stopped for measured in cell.measured.values())
    if stopped:
        notes.append(f"{stopped} runs stopped: loss not finite")
    return "; ".join(notes)


def _gains_grid(
    title: str,
    found: Reproduction,
    compared: Sequence[PairComparison],
    notes: Sequence[str],
    only: Sequence[str] | None = None,
) -> Grid:
    """Show the gain of each pair of lines on each data set, with a column for each protocol."""
    protocols = list(only or found.protocols)
    groups: dict[tuple[str, str, str], dict[str, Comparison]] = {}
    for one in compared:
        groups.setdefault((one.dataset, one.row, one.against), {})[one.protocol] = one.comparison
    papers = {key: found.paper_gain(*key) for key in groups}
    shown = any(gain is not None for gain in papers.values())
    columns = ["data set", "line", "against", *(["paper's\ngain"] if shown else []), *map(protocol_heading, protocols)]
    rows: list[list[Cell]] = []
    sections = []
    before = ""
    for key, tests in groups.items():
        dataset, row, against = key
        if before and dataset != before:
            sections.append(len(rows))
        paper = papers[key]
        claimed = [EMPTY if paper is None else points_cell(paper)] if shown else []
        gains = [_gain_cell(tests.get(protocol)) for protocol in protocols]
        rows.append([*word_cells(["" if dataset == before else dataset, row, against]), *claimed, *gains])
        before = dataset
    return Grid(title, columns, rows, 3, notes, sections)


def _gain_cell(test: Comparison | None) -> Cell:
    return EMPTY if test is None else Cell(f"{gain_words(test)}, {p_cell(test.p).text}", test.difference)


def _ranks_grid(found: Reproduction) -> Grid:
    """Show mean ranks over data sets, sorted by the last protocol."""
    names = {name: one.ranks[name] for one in found.across for name in one.ranks}
    rows = []
    for name in sorted(names, key=names.__getitem__):
        ranks = [one.ranks.get(name) for one in found.across]
        rows.append([Cell(name), *(EMPTY if rank is None else Cell(f"{rank:.2f}", rank) for rank in ranks)])
    columns = ["line", *(protocol_heading(one.protocol) for one in found.across)]
    notes = list(dict.fromkeys(line for one in found.across for line in _rank_notes(one)))
    return Grid("Mean rank over data sets, 1 is best", columns, rows, 1, notes)


def _rank_notes(one: Across) -> list[str]:
    lines = [f"{one.protocol}: {len(one.datasets)} data sets."]
    if one.critical_difference is not None:
        lines[0] += (
            f" Ranks that differ by less than {one.critical_difference:.2f} are not significantly different (Nemenyi)."
        )
    if one.friedman is not None:
        lines[0] += f" Friedman test that all lines are equally good: p = {p_cell(one.friedman).text}."
    return [*lines, *one.notes]


def _tests_grid(found: Reproduction) -> Grid:
    """Show the declared comparisons over data sets."""
    tests = [{(test.row, test.against): test for test in one.declared} for one in found.across]
    rows = []
    for pair in dict.fromkeys(pair for some in tests for pair in some):
        each = [some.get(pair) for some in tests]
        texts = [f"{points(one.median)}, {p_cell(one.p).text}, {p_cell(one.holm).text}" if one else "" for one in each]
        count = max(one.datasets for one in each if one)
        rows.append(word_cells([*pair, str(count), *texts]))
    return Grid(
        "Declared comparisons over data sets: median gain in points, p (Wilcoxon), p (Holm)",
        ["line", "against", "data sets", *(protocol_heading(one.protocol) for one in found.across)],
        rows,
        words=2,
        notes=["Holm: adjusted for the comparisons of this table under one protocol."],
    )
