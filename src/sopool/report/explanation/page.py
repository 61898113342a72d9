"""The explanation of one prediction as a self-contained HTML page."""

from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np

from sopool import __version__
from sopool.data.graphs import PackedGraphs
from sopool.models.explain.explanation import AnyExplanation, Decomposition, Explanation, TargetExplanation
from sopool.models.explain.shares import PooledGraph
from sopool.report.explanation.drawing import AGAINST, FOR, NEUTRAL, Picture, Stroke, draw, signed
from sopool.report.explanation.graph_picture import hint, picture_of
from sopool.report.explanation.words import number, percent, words_of
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


def explanation_page(explanation: AnyExplanation, subject: Subject) -> str:
    """Return the page as HTML."""
    found = explanation.decompose()
    words = words_of(explanation)
    title = f"Contribution of each node of {subject.name} to {words.explained}"
    arcs = explanation.strongest_pairs()
    picture, drawn = picture_of(subject.graph, found.nodes, explanation.nodes, title, arcs)
    pooled = [_pooled(explanation, graph, model) for model, graph in enumerate(explanation.pooled)]
    if isinstance(explanation, Explanation):
        outweighed = _outweighed(explanation, found)
        every = classes_grid(explanation)
    else:
        outweighed = ""
        every = targets_grid(explanation)
    own_unit = isinstance(explanation, TargetExplanation) and explanation.probabilities is None
    return render(
        "explanation.html",
        version=__version__,
        subject=subject,
        words=words,
        exact=explanation.exact,
        total=number(found.total) if own_unit else signed(found.total),
        bias=signed(found.bias),
        rest=signed(found.rest),
        nodes_total=signed(float(found.nodes.sum())),
        attributes={name: signed(value) for name, value in found.attributes.items()},
        outweighed=outweighed,
        picture=picture,
        drawn=drawn,
        largest=signed(float(np.abs(found.nodes).max(initial=0))).lstrip("+"),
        colours=[f"rgb{tone}" for tone in (AGAINST, NEUTRAL, FOR)],
        kinds="Targets" if isinstance(explanation, TargetExplanation) else "Classes",
        every=every,
        nodes=nodes_grid(explanation, found),
        pairs=pairs_grid(explanation) if explanation.pairs[explanation.chosen] else None,
        node_pairs=node_pairs_grid(explanation) if arcs else None,
        pooled=pooled,
    )


def _outweighed(explanation: Explanation, margin: Decomposition) -> str:
    """Say what makes the margin positive if the nodes together argue against the predicted class."""
    if margin.total <= 0 or margin.nodes.sum() >= 0:
        return ""
    given = sum(margin.attributes.values())
    outweighs = (
        "the bias and the attributes of the graph outweigh them" if margin.attributes else "the bias outweighs them"
    )
    if not explanation.exact and margin.bias + given + margin.nodes.sum() <= 0:
        outweighs = "what is not attributed to nodes outweighs them"
    return f"Together, the nodes argue against class {explanation.prediction}, but {outweighs}."


def classes_grid(explanation: Explanation) -> Grid:
    """Tabulate the probability, the score and the margin of each class."""
    rows = []
    for place, name in enumerate(explanation.classes):
        margin = explanation.decompose(place)
        share = float(explanation.probabilities[place])
        strong = place == explanation.chosen
        figures = [Cell(percent(share), share)]
        figures += [_figure(float(value)) for value in (explanation.scores[place], margin.total, margin.bias)]
        rows.append([Cell(str(name), strong=strong), *figures])
    notes = ["Bias: the part of the margin that does not depend on the nodes."]
    if len(explanation.each) > 1:
        notes.append("Probabilities and scores are means over the networks.")
    if len(explanation.classes) > 2:
        notes.append(
            "Margin: the score of a class minus the mean score of the others. The class with the highest "
            "probability is predicted."
        )
    columns = ["class", "probability", "score", "margin", "bias"]
    return Grid("Probability, score and margin of each class", columns, rows, notes=notes)


def targets_grid(explanation: TargetExplanation) -> Grid:
    """Tabulate the prediction and the bias of each target."""
    rows = []
    shares = explanation.probabilities
    for place, name in enumerate(explanation.targets):
        predicted = float(explanation.predictions[place])
        share = Cell("") if shares is None else Cell(percent(float(shares[place])), float(shares[place]))
        log_odds = Cell("") if shares is None else _figure(float(explanation.scores[place]))
        spread = float(explanation.uncertainty[place])
        told = Cell("") if np.isnan(spread) else Cell(_spread_text(spread, shares is not None), spread)
        figures = [Cell(number(predicted), predicted), share, told, log_odds, _figure(float(explanation.bias[place]))]
        rows.append([Cell(name, strong=place == explanation.shown), *figures])
    notes = [
        f"Bias: the part of the {'log-odds' if shares is not None else 'number'} that does not depend on the nodes."
    ]
    if len(explanation.each) > 1:
        of = "probability" if shares is not None else "number"
        notes.append(f"All numbers are means over the networks; s.d. is the standard deviation of the {of} over them.")
    columns = ["target", "prediction", "probability of 1", "s.d.", "log-odds", "bias"]
    return Grid("Prediction of each target", columns, rows, notes=notes).without_empty()


def _spread_text(spread: float, of_share: bool) -> str:
    return percent(spread) if of_share else signed(spread).lstrip("+")


def nodes_grid(explanation: AnyExplanation, found: Decomposition) -> Grid:
    """Tabulate the nodes that contribute most to what is explained, and for classes also to their scores."""
    words = words_of(explanation)
    order = np.argsort(-np.abs(found.nodes), kind="stable")[:SHOWN].tolist()
    likely = _likely(explanation)
    rows = []
    for node in order:
        spread = (
            Cell("")
            if found.spread is None
            else Cell(signed(float(found.spread[node])).lstrip("+"), float(found.spread[node]))
        )
        cells = [Cell(str(node), node), Cell(explanation.nodes[node])]
        figures = [_figure(float(value)) for value in (found.nodes[node], *explanation.contributions[node][likely])]
        rows.append([*cells, figures[0], spread, *figures[1:]])
    columns = ["node", "label", words.column, "s.d."]
    columns += [f"score of class {explanation.names[number]}" for number in likely]
    left = len(found.nodes) - len(rows)
    rest = signed(float(found.nodes.sum() - found.nodes[order].sum()))
    short = "the margin" if likely else words.explained
    notes = [f"The other nodes ({left:,}) contribute {rest} to {short}."] if left else []
    positive = "argue for the class" if likely else f"mean: {words.favor}"
    notes.append(f"{words.column.capitalize()}: contribution to {words.explained}; positive values {positive}.")
    if found.spread is not None:
        notes.append("S.d.: standard deviation of this contribution over the networks.")
    if likely and len(likely) < len(explanation.names):
        notes.append(f"Only the scores of the {len(likely)} most probable classes are shown.")
    return Grid("Nodes that contribute most", columns, rows, words=2, notes=notes).without_empty()


def _likely(explanation: AnyExplanation) -> list[int]:
    """Return the positions of the most probable classes; none for targets."""
    if not isinstance(explanation, Explanation):
        return []
    order = np.argsort(-np.asarray(explanation.probabilities), kind="stable")
    return sorted(order[:CLASSES].tolist())


def pairs_grid(explanation: AnyExplanation) -> Grid:
    """Tabulate the pairs of features that contribute most to what is explained."""
    told = words_of(explanation)
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
        f"{told.column.capitalize()}: contribution of the pair, over all nodes, to {told.explained}.",
    ]
    if models > 1:
        notes.append(
            f"Model: the model that the units belong to. Values are divided by the number of models ({models}), so "
            f"that they are parts of the mean {'margin' if told.column == 'margin' else told.score}."
        )
    columns = ["first feature", "second feature", "node", "model", told.column]
    return Grid("Pairs of features that contribute most", columns, rows, words=4, notes=notes).without_empty()


def node_pairs_grid(explanation: AnyExplanation) -> Grid:
    """Tabulate the pairs of nodes that contribute most to what is explained."""
    told = words_of(explanation)
    rows = []
    for pair in explanation.strongest_pairs():
        ends = [
            Cell(f"{node} ({name})" if name else str(node))
            for node, name in ((node, explanation.nodes[node]) for node in (pair.first, pair.second))
        ]
        rows.append([*ends, Cell(str(pair.distance), pair.distance), _figure(pair.value)])
    notes = [
        f"{told.column.capitalize()}: contribution of the pair to {told.explained}, one half of which counts for each "
        "of the two nodes."
    ]
    columns = ["node", "other node", "distance", told.column]
    return Grid("Pairs of nodes that contribute most", columns, rows, words=2, notes=notes)


def _figure(value: float) -> Cell:
    return Cell(signed(value), value)


def _pooled(explanation: AnyExplanation, graph: PooledGraph, model: int) -> dict[str, Any]:
    """Return the title, the picture and the table of the pooled graph of one model."""
    weights = explanation.weights(explanation.chosen)
    size = len(graph.adjacency)
    known = graph.shares is not None
    shares = graph.shares.numpy() @ weights if graph.shares is not None else np.zeros(size)
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


def _pooled_grid(explanation: AnyExplanation, gives: np.ndarray, shares: np.ndarray | None) -> Grid:
    rows = []
    for node, given in enumerate(gives):
        order = np.argsort(-np.abs(given), kind="stable")[:GIVERS].tolist()
        told = ", ".join(hint(one, explanation.nodes[one], float(given[one])) for one in order)
        rows.append([Cell(str(node), node), Cell(told), *([] if shares is None else [_figure(float(shares[node]))])])
    columns = [
        "pooled node",
        "original nodes with the largest weights",
        *([] if shares is None else [words_of(explanation).column]),
    ]
    return Grid("Composition of the pooled nodes", columns, rows, words=2)
