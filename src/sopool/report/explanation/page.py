"""The explanation of one prediction as a self-contained HTML page."""

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from sopool import __version__
from sopool.data.graphs import PackedGraphs
from sopool.models.explain.explanation import Explanation, Margin
from sopool.models.explain.shares import PooledGraph, margins
from sopool.report.explanation.drawing import AGAINST, FOR, NEUTRAL, Picture, Stroke, draw, signed
from sopool.report.explanation.graph_picture import hint, picture_of
from sopool.report.grid import Cell, Grid
from sopool.report.page.render import render

SHOWN = 15
"""The largest number of nodes in the table."""
CLASSES = 5
"""The largest number of classes in the table; the most probable ones are shown."""
GIVERS = 5
"""The number of original nodes that are listed for each pooled node."""
WIDEST = 6.0


@dataclass(frozen=True)
class Subject:
    """The graph that is explained."""

    graph: PackedGraphs
    name: str
    """A name for headings, e.g. "graph 7 of MUTAG"."""
    label: str | None = None
    """The true class, or None if it is not known."""
    model: str = ""
    """A sentence that describes the model."""


def explanation_page(explanation: Explanation, subject: Subject) -> str:
    """Return the page as HTML."""
    margin = explanation.margin()
    chosen = str(explanation.prediction)
    title = f"Contribution of each node of {subject.name} to the margin of class {chosen}"
    picture, drawn = picture_of(subject.graph, margin.nodes, explanation.nodes, title)
    pooled = [_pooled(explanation, graph, number) for number, graph in enumerate(explanation.pooled)]
    return render(
        "explanation.html",
        version=__version__,
        subject=subject,
        prediction=chosen,
        probability=percent(float(explanation.probabilities[explanation.chosen])),
        uncertainty=None if np.isnan(explanation.uncertainty) else percent(explanation.uncertainty),
        models=len(explanation.each),
        exact=explanation.exact,
        margin={name: signed(getattr(margin, name)) for name in ("total", "bias", "rest")},
        nodes_total=signed(float(margin.nodes.sum())),
        outweighed=_outweighed(explanation, margin),
        picture=picture,
        drawn=drawn,
        largest=signed(float(np.abs(margin.nodes).max(initial=0))).lstrip("+"),
        colours=[f"rgb{tone}" for tone in (AGAINST, NEUTRAL, FOR)],
        classes=classes_grid(explanation),
        nodes=nodes_grid(explanation, margin),
        pairs=pairs_grid(explanation) if explanation.pairs[explanation.chosen] else None,
        pooled=pooled,
    )


def _outweighed(explanation: Explanation, margin: Margin) -> str:
    """Say what makes the margin positive if the nodes together argue against the predicted class."""
    if margin.total <= 0 or margin.nodes.sum() >= 0:
        return ""
    if explanation.exact or margin.bias + margin.nodes.sum() > 0:
        return "the bias outweighs them"
    return "what is not attributed to nodes outweighs them"


def percent(share: float) -> str:
    """Format a fraction as a percentage with one decimal, never broken across lines."""
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def classes_grid(explanation: Explanation) -> Grid:
    """Tabulate the probability, the score and the margin of each class."""
    rows = []
    for number, name in enumerate(explanation.classes):
        margin = explanation.margin(number)
        share = float(explanation.probabilities[number])
        strong = number == explanation.chosen
        figures = [Cell(percent(share), share)]
        figures += [_figure(float(value)) for value in (explanation.scores[number], margin.total, margin.bias)]
        rows.append([Cell(str(name), strong=strong), *figures])
    notes = ["Bias: the part of the margin that does not depend on the nodes."]
    if len(explanation.each) > 1:
        notes.append("Probabilities and scores are means over the models.")
    if len(explanation.classes) > 2:
        notes.append(
            "Margin: the score of a class minus the mean score of the others. The class with the highest "
            "probability is predicted."
        )
    columns = ["class", "probability", "score", "margin", "bias"]
    return Grid("Probability, score and margin of each class", columns, rows, notes=notes)


def nodes_grid(explanation: Explanation, margin: Margin) -> Grid:
    """Tabulate the nodes that contribute most to the margin."""
    order = np.argsort(-np.abs(margin.nodes), kind="stable")[:SHOWN].tolist()
    likely = sorted(np.argsort(-np.asarray(explanation.probabilities), kind="stable")[:CLASSES].tolist())
    rows = []
    for node in order:
        spread = (
            Cell("")
            if margin.spread is None
            else Cell(signed(float(margin.spread[node])).lstrip("+"), float(margin.spread[node]))
        )
        words = [Cell(str(node), node), Cell(explanation.nodes[node])]
        figures = [_figure(float(value)) for value in (margin.nodes[node], *explanation.contributions[node][likely])]
        rows.append([*words, figures[0], spread, *figures[1:]])
    columns = ["node", "label", "margin", "s.d."]
    columns += [f"score of class {explanation.classes[number]}" for number in likely]
    left = len(margin.nodes) - len(rows)
    rest = signed(float(margin.nodes.sum() - margin.nodes[order].sum()))
    notes = [f"The other nodes ({left:,}) contribute {rest} to the margin."] if left else []
    notes.append(
        f"Margin: contribution to the margin of class {explanation.prediction}; positive values argue for the class."
    )
    if margin.spread is not None:
        notes.append("S.d.: standard deviation of this contribution over the models.")
    if len(likely) < len(explanation.classes):
        notes.append(f"Only the scores of the {len(likely)} most probable classes are shown.")
    return Grid("Nodes that contribute most", columns, rows, words=2, notes=notes).without_empty()


def pairs_grid(explanation: Explanation) -> Grid:
    """Tabulate the pairs of features that contribute most to the margin of the predicted class."""
    models = len(explanation.each)
    rows = []
    for pair in explanation.pairs[explanation.chosen]:
        name = explanation.nodes[pair.node]
        words = [
            Cell(pair.first),
            Cell("the same" if pair.second == pair.first else pair.second or "-"),
            Cell(f"{pair.node} ({name})" if name else str(pair.node)),
            Cell(str(pair.model + 1) if models > 1 else ""),
        ]
        rows.append([*words, _figure(pair.value)])
    notes = [
        "Node: the node at which the pair contributes most.",
        f"Margin: contribution of the pair, over all nodes, to the margin of class {explanation.prediction}.",
    ]
    if models > 1:
        notes.append(
            f"Model: the model that the units belong to. Values are divided by the number of models ({models}), so "
            "that they are parts of the mean margin."
        )
    columns = ["first feature", "second feature", "node", "model", "margin"]
    return Grid("Pairs of features that contribute most", columns, rows, words=4, notes=notes).without_empty()


def _figure(value: float) -> Cell:
    return Cell(signed(value), value)


def _pooled(explanation: Explanation, graph: PooledGraph, model: int) -> dict[str, Any]:
    """Return the title, the picture and the table of the pooled graph of one model."""
    weights = margins(len(explanation.classes))[explanation.chosen]
    size = len(graph.adjacency)
    known = graph.shares is not None
    shares = (graph.shares @ weights).numpy() if graph.shares is not None else np.zeros(size)
    adjacency = graph.adjacency.numpy()
    gives = graph.contribution.numpy()
    largest = max(float(np.abs(adjacency).max(initial=0)), 1e-300)
    arrow = not np.allclose(adjacency, adjacency.T, rtol=1e-6, atol=1e-9 * largest)
    lines = [
        Stroke(b, a, WIDEST * abs(float(adjacency[a, b])) / largest, dashed=bool(adjacency[a, b] < 0), arrow=arrow)
        for a in range(size)
        for b in range(0 if arrow else a, size)
        if abs(adjacency[a, b]) > largest / 50
    ]
    at = nx.circular_layout(nx.path_graph(size))
    points = np.array([at[node] for node in range(size)])
    hints = [hint(node, "", float(shares[node])) if known else f"node {node}" for node in range(size)]
    title = f"Pooled graph of model {model + 1}: {size} node{'' if size == 1 else 's'}"
    told = "; ".join(hints) if known else "Its nodes are the input of the next block"
    names = [str(node) for node in range(size)]
    picture = Picture(f"pooled-{model}", title, f"{told}.", points, range(size), names, shares, hints, lines)
    return {
        "title": title,
        "picture": draw(picture),
        "table": _pooled_grid(explanation, gives, shares if known else None),
    }


def _pooled_grid(explanation: Explanation, gives: np.ndarray, shares: np.ndarray | None) -> Grid:
    rows = []
    for number, given in enumerate(gives):
        order = np.argsort(-np.abs(given), kind="stable")[:GIVERS].tolist()
        told = ", ".join(hint(node, explanation.nodes[node], float(given[node])) for node in order)
        rows.append(
            [Cell(str(number), number), Cell(told), *([] if shares is None else [_figure(float(shares[number]))])]
        )
    columns = [
        "pooled node",
        "original nodes with the largest weights",
        *([] if shares is None else ["margin"]),
    ]
    return Grid("Composition of the pooled nodes", columns, rows, words=2)
