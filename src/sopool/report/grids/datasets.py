"""The list of known data sets."""

from collections.abc import Sequence

from sopool.data.analysis.graph_statistics import GraphStatistics
from sopool.data.sources.catalogue import Listed, Published
from sopool.report.grid import Grid, word_cells


def datasets_grid(listed: Sequence[Listed]) -> Grid:
    """Show the known data sets, where each was found, and its statistics beside those of the paper."""
    rows = []
    for one in listed:
        rows.append(word_cells([one.name, one.place or "-", *_columns(one.statistics, one.paper)]))
    return Grid(
        "Data sets of the paper and of the sopool package",
        ["name", "found in", "graphs", "classes", "nodes max", "nodes mean", "edges mean", "node labels"],
        rows,
        words=2,
        notes=[
            "In parentheses: the figure of the paper, where it differs or the data set was not found. A dash: not "
            "found on this machine; all but PTC are downloaded when they are first used. --json also prints the paths."
        ],
    )


def _columns(have: GraphStatistics | None, paper: Published | None) -> list[str]:
    here = there = ("", "", "", "")
    rest = ("", "")
    if have is not None:
        here = (f"{have.graphs:,}", str(len(have.classes)), f"{have.nodes_max:,}", f"{have.nodes_mean:.1f}")
        rest = (f"{have.edges_mean:,.1f}", str(have.node_labels or "none"))
    if paper is not None:
        most = "" if paper.max_nodes is None else f"{paper.max_nodes:,}"
        there = (f"{paper.graphs:,}", str(paper.classes), most, f"{paper.mean_nodes:.1f}")
    differs = [f"({b})" if b and a != b else "" for a, b in zip(here, there, strict=True)]
    return [f"{a} {b}".strip() for a, b in zip(here, differs, strict=True)] + list(rest)
