"""The drawing of an explained graph: a structural formula for molecules, nodes and edges for other graphs."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from sopool.data.formats.convert import to_networkx
from sopool.data.formats.drawable import molecule_of
from sopool.data.formats.rdkit import rdkit_module
from sopool.data.graphs import PackedGraphs
from sopool.models.explain.explanation import NodePair
from sopool.report.explanation.drawing import (
    HEIGHT,
    WIDTH,
    Arc,
    Picture,
    Stroke,
    colour,
    draw,
    draw_arcs,
    marked,
    signed,
    write_marks,
)

MOST = 400
"""The largest number of nodes that are drawn; for larger graphs, those that contribute most."""
ATOM = 14.0
"""The approximate radius of the colored disk of an atom."""
BOND_LINE = re.compile(r"class='bond-[^']*' d='M ([\d.-]+),([\d.-]+) L ([\d.-]+),([\d.-]+)'")
"""A line of a bond in RDKit's SVG; double and aromatic bonds have two."""
MARGIN = 48.0
"""The space above and below a molecule, in which numbers and values are written."""
CALM = 120
"""The largest number of nodes for the slower layout, which crosses fewer edges."""


def picture_of(
    graph: PackedGraphs, values: np.ndarray, names: Sequence[str], title: str, pairs: Sequence[NodePair] = ()
) -> tuple[str, str]:
    """Return an SVG element and a sentence on what it shows; ``pairs`` of nodes are drawn as arcs."""
    description = _described(values, names)
    molecule = molecule_of(graph, MOST)
    if molecule is not None and graph.num_nodes:
        return _molecule(molecule, values, title, description, _arcs(pairs, names, range(len(values)))), _left_out(
            graph
        )
    # A column of categories may have the name of another attribute, which NetworkX cannot hold.
    bare = replace(
        graph, node_categories=None, node_category_columns=(), edge_categories=None, edge_category_columns=()
    )
    network = to_networkx(bare)[0]
    kept = list(range(graph.num_nodes))
    said = f"The graph has {graph.num_nodes:,} node{'' if graph.num_nodes == 1 else 's'}."
    if len(kept) > MOST:
        kept = sorted(np.argsort(-np.abs(values), kind="stable")[:MOST].tolist())
        said = f"Only the {MOST} of {graph.num_nodes:,} nodes that contribute most, and their edges, are drawn."
        network = network.subgraph(kept)
    place = {node: number for number, node in enumerate(kept)}
    at = layout(network)
    arrow = network.is_directed()
    lines = [Stroke(place[a], place[b], arrow=arrow) for a, b in dict.fromkeys(tuple(e[:2]) for e in network.edges)]
    labels = [names[node] or str(node) for node in kept]
    labels = [label if len(label) <= 3 else "" for label in labels]
    hints = [hint(node, names[node], float(values[node])) for node in kept]
    points = np.array([at[node] for node in kept]).reshape(-1, 2)
    picture = Picture("graph", title, description, points, kept, labels, values[kept], hints, lines)
    return draw(replace(picture, arcs=_arcs(pairs, names, kept))), said


def _arcs(pairs: Sequence[NodePair], names: Sequence[str], kept: Sequence[int]) -> list[Arc]:
    """Return the arcs of pairs of nodes that are both drawn."""
    place = {node: number for number, node in enumerate(kept)}
    return [
        Arc(place[pair.first], place[pair.second], pair.value, pair_hint(pair, names))
        for pair in pairs
        if pair.first in place and pair.second in place
    ]


def pair_hint(pair: NodePair, names: Sequence[str]) -> str:
    """Describe two nodes by their labels or numbers, their distance and their value."""
    first, second = (names[node] or f"node {node}" for node in (pair.first, pair.second))
    return f"{first} and {second} at distance {pair.distance}: {signed(pair.value)}"


def _left_out(graph: PackedGraphs) -> str:
    """Say what the structural formula does not show, because the graph does not have it."""
    known = {column.name for column in graph.node_category_columns}
    parts = {"charge": "charges", "hydrogens": "hydrogens that are not nodes of the graph"}
    missing = " and ".join(words for name, words in parts.items() if name not in known)
    return f"{missing.capitalize()} are not drawn, because the model does not use them." if missing else ""


def hint(node: int, name: str, value: float) -> str:
    """Describe a node by its number, label and value."""
    return f"node {node}{f' ({name})' if name else ''}: {signed(value)}"


def layout(network: nx.Graph) -> dict[int, np.ndarray]:
    """Return deterministic node positions; connected components lie side by side, the largest first."""
    plain = nx.Graph(network)
    parts = sorted(nx.connected_components(plain), key=lambda part: (-len(part), min(part)))
    sides = [np.sqrt(len(part)) for part in parts]
    capacity = 1.5 * np.sqrt(sum((side + 1) ** 2 for side in sides))
    places = dict[int, np.ndarray]()
    left, top, height = 0.0, 0.0, 0.0
    for part, side in zip(parts, sides, strict=True):
        if left and left + side > capacity:
            left = 0.0
            top = top + height
            height = 0.0
        for node, place in _part_layout(plain.subgraph(sorted(part))).items():
            places[node] = (np.asarray(place) + 1) / 2 * side + (left, top)
        left = left + side + 1
        height = max(height, side + 1)
    return places


def _part_layout(network: nx.Graph) -> dict[int, np.ndarray]:
    """Return positions between -1 and 1 for a connected graph."""
    start = nx.spring_layout(network, seed=0)
    return dict(start if len(network) < 3 or len(network) > CALM else nx.kamada_kawai_layout(network, pos=start))


def _described(values: np.ndarray, names: Sequence[str]) -> str:
    order = sorted(marked(values), key=lambda node: -abs(values[node]))
    told = "; ".join(hint(node, names[node], float(values[node])) for node in order)
    return f"Nodes that contribute most: {told}." if told else "No node contributes."


def _molecule(molecule: Any, values: np.ndarray, title: str, description: str, arcs: Sequence[Arc]) -> str:
    chem = rdkit_module("Chem")
    drawing = rdkit_module("Chem.Draw.rdMolDraw2D")
    chem.FastFindRings(molecule)
    rdkit_module("Chem.rdDepictor").Compute2DCoords(molecule)
    largest = float(np.abs(values).max(initial=0))
    tones = {node: tuple(part / 255 for part in colour(float(value), largest)) for node, value in enumerate(values)}
    drawer = drawing.MolDraw2DSVG(WIDTH, HEIGHT)
    options = drawer.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground = options.prepareMolsBeforeDrawing = False
    drawer.DrawMolecule(molecule, highlightAtoms=list(tones), highlightAtomColors=tones, highlightBonds=[])
    drawer.FinishDrawing()
    text = drawer.GetDrawingText()
    inside = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    places = [drawer.GetDrawCoords(node) for node in range(len(values))]
    at = np.array([(place.x, place.y) for place in places])
    segments = [(at[bond.GetBeginAtomIdx()], at[bond.GetEndAtomIdx()]) for bond in molecule.GetBonds()]
    drawn = np.array([line.groups() for line in BOND_LINE.finditer(inside)], float).reshape(-1, 2, 2)
    marks = write_marks(at, [*segments, *((a, b) for a, b in drawn)], range(len(values)), values, ATOM)
    rows = max(0.0, at[:, 1].min() - MARGIN), min(float(HEIGHT), at[:, 1].max() + MARGIN)
    nothing = Picture("graph", title, description, np.zeros((0, 2)), [], [], np.zeros(0), [], [], rows)
    return draw(nothing).replace("</svg>", "\n".join([inside, *draw_arcs(arcs, at), *marks, "</svg>"]))
