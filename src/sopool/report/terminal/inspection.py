"""The statistics of a data set as text for the terminal."""

from collections.abc import Sequence

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from torch import Tensor

from sopool._runtime.visible import on_one_line
from sopool.data.analysis.graph_statistics import (
    GraphStatistics,
    NumberStatistics,
    TargetStatistics,
    size_histogram,
)
from sopool.data.pack import Label

CLASSES = 20
"""The largest number of classes, of targets, and of other columns, that are all listed."""

TARGETS = ("name", "graphs", "missing", "mean", "std", "min", "max")
CATEGORIES = ("of", "name", "values")
NUMBERS = ("of", "name", "missing", "min", "max")
WORDS = ("of", "name")
"""The columns of the tables, and those of them that are words."""


def inspection(statistics: GraphStatistics, sizes: Tensor, cautions: Sequence[str]) -> RenderableType:
    """Return the statistics of a data set, a histogram of sizes, and warnings."""
    facts = Table(show_header=False, box=None, pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()
    for label, value in _facts(statistics):
        facts.add_row(label, value)
    parts: list[RenderableType] = [Text(on_one_line(statistics.name), style="bold underline"), facts]
    parts += _section("Targets", TARGETS, [_target(one) for one in statistics.targets])
    parts += _section(
        "Categories", CATEGORIES, [(one.of, one.name, f"{one.values:,}") for one in statistics.categories]
    )
    parts += _section("Numbers", NUMBERS, [_number(one) for one in statistics.numbers])
    parts += [Text("\nNodes per graph", style="bold"), *(Text(line) for line in size_histogram(sizes))]
    if statistics.duplicates is not None:
        parts += [Text("\nWhat message passing can distinguish", style="bold"), Text(_refinement(statistics))]
    parts += [Text(f"\nCaution: {caution}", style="yellow") for caution in cautions]
    return Group(*parts)


def _facts(s: GraphStatistics) -> list[tuple[str, RenderableType]]:
    predicted: list[tuple[str, RenderableType]] = [("classes", class_shares(s.classes))] if s.classes else []
    if s.targets:
        complete = sum(not target.missing for target in s.targets)
        predicted.append(("targets", f"{len(s.targets):,} ({complete:,} without missing values)"))
    nodes = f"{s.nodes:,}; per graph {s.nodes_min:,} to {s.nodes_max:,}"
    nodes += f", mean {s.nodes_mean:.2f}, median {s.nodes_median:g}"
    direction = "directed" if s.directed else "undirected"
    odd = [
        (s.self_loops, "self-loops"),
        (s.duplicate_edges, "repeated edges"),
        (s.isolated_nodes, "isolated nodes"),
        (s.empty_graphs, "graphs without nodes"),
    ]
    columns = {of: sum(one.of == of for one in s.categories) for of in ("node", "edge")}
    beside = sum(one.of == "graph" for one in s.numbers)
    carried = [
        (s.node_labels, f"{s.node_labels} node labels"),
        (columns["node"], f"{_counted(columns['node'], 'column')} of node categories"),
        (s.node_attributes, f"{s.node_attributes} node attributes"),
        (s.edge_labels, f"{s.edge_labels} edge labels"),
        (columns["edge"], f"{_counted(columns['edge'], 'column')} of edge categories"),
        (s.edge_attributes, f"{s.edge_attributes} edge attributes"),
        (s.edge_weights, "edge weights"),
        (beside, _counted(beside, "graph attribute")),
    ]
    return [
        ("graphs", f"{s.graphs:,}"),
        *(predicted or [("classes", "none given")]),
        ("nodes", nodes),
        ("edges", f"{direction}, mean {s.edges_mean:,.2f} (pairs of different nodes, each counted once)"),
        ("carries", ", ".join(text for there, text in carried if there) or "structure only"),
        (
            "has",
            ", ".join(f"{count:,} {what}" for count, what in odd if count)
            or "no self-loops, isolated nodes or repeated edges",
        ),
    ]


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[RenderableType]:
    """Return a table with a title, of the first of many rows; nothing if there are none."""
    if not rows:
        return []
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in WORDS else "right")
    for row in rows[:CLASSES]:
        table.add_row(*(Text(on_one_line(cell)) for cell in row))
    left = len(rows) - CLASSES
    return [Text(f"\n{title}", style="bold"), table, *([Text(f"and {left:,} more")] if left > 0 else [])]


def _target(target: TargetStatistics) -> tuple[str, ...]:
    return (target.name, f"{target.graphs:,}", f"{target.missing:,}", *map(_figure, target[3:]))


def _number(number: NumberStatistics) -> tuple[str, ...]:
    return (number.of, number.name, f"{number.missing:,}", _figure(number.min), _figure(number.max))


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def class_shares(classes: Sequence[tuple[Label, int]]) -> RenderableType:
    """List the number and share of graphs of each class, or of the most frequent classes."""
    told = classes if len(classes) <= CLASSES else sorted(classes, key=lambda pair: -pair[1])[:CLASSES]
    graphs = max(1, sum(count for _, count in classes))
    items = [f"{on_one_line(str(name))}: {count:,} ({100 * count / graphs:.1f} %)" for name, count in told]
    left = len(classes) - len(told)
    return Columns([Text(item) for item in [*items, *([f"and {left:,} more"] if left else [])]], padding=(0, 2))


def _refinement(s: GraphStatistics) -> str:
    found = s.duplicates
    assert found is not None
    rounds = f"After {found.rounds} rounds of color refinement (1-WL, with node labels and attributes)"
    if not found.graphs:
        return f"{rounds}, each of the {s.graphs:,} graphs can be distinguished from all others."
    text = (
        f"{rounds}, {found.graphs:,} of {s.graphs:,} graphs cannot be distinguished from another graph; they form "
        f"{found.groups:,} group{'s' * (found.groups > 1)}."
    )
    if found.best_accuracy is None:
        return text
    if not found.conflicting:
        return f"{text} No group contains graphs of different classes, so all classes can be distinguished."
    return (
        f"{text} {found.conflicting:,} of them are in a group with conflicting labels, so no such network can classify "
        f"more than {100 * found.best_accuracy:.1f} % of these graphs correctly, even if trained on all of them."
    )
