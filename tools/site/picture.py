"""Draw docs/images/second_order.svg, the picture of the start page: nodes, H, H^T H, a vector."""

from pathlib import Path

import numpy as np

TARGET = Path(__file__).resolve().parents[2] / "docs" / "images" / "second_order.svg"
FEATURES = ("ring", "N", "+")
H = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
PLACES = ((42, 92), (108, 66), (108, 134), (64, 172), (30, 226))
EDGES = ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4))
CELL = 38
STYLE = """
text { font: 17px system-ui, sans-serif; fill: #263238; text-anchor: middle; dominant-baseline: central }
.note { font-size: 15px; fill: #546e7a } .left { text-anchor: start } .title { font-weight: 600 }
.cell { fill: #eceff1; stroke: #90a4ae } .alone { fill: #b2dfdb } .pair { fill: #ffccbc }
.edge, .arrow { stroke: #78909c; stroke-width: 2; fill: none } .tip { fill: #78909c }
.node { fill: #eceff1; stroke: #78909c; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #eceff1 } .note { fill: #b0bec5 } .cell { fill: #37474f; stroke: #78909c } .node { fill: #37474f }
.alone { fill: #00695c } .pair { fill: #a0401f } }
"""


def text(x: float, y: float, words: object, kind: str = "") -> str:
    """Return text at a position."""
    return f'<text x="{x}" y="{y}" class="{kind}">{words}</text>'


def cell(x: float, y: float, words: object, kind: str = "") -> str:
    """Return a square with text in it."""
    box = f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" class="cell {kind}"/>'
    return box + text(x + CELL / 2, y + CELL / 2, words)


def kind_of(row: int, column: int) -> str:
    """Return whether a matrix entry belongs to a single feature or to a pair."""
    return "alone" if row == column else "pair"


def graph() -> list[str]:
    """Return the nodes and edges."""
    lines = [
        f'<line x1="{PLACES[a][0]}" y1="{PLACES[a][1]}" x2="{PLACES[b][0]}" y2="{PLACES[b][1]}" class="edge"/>'
        for a, b in EDGES
    ]
    nodes = [f'<circle cx="{x}" cy="{y}" r="16" class="node"/>' + text(x, y, n + 1) for n, (x, y) in enumerate(PLACES)]
    return [*lines, *nodes]


def matrix(x: float, y: float, values: np.ndarray, names: tuple[str, ...] | range, coloured: bool) -> list[str]:
    """Return a table of numbers with row and column names."""
    out = [text(x + CELL * (n + 0.5), y - 14, name, "note") for n, name in enumerate(FEATURES)]
    out += [text(x - 20, y + CELL * (n + 0.5), name, "note") for n, name in enumerate(names)]
    for (row, column), value in np.ndenumerate(values):
        kind = kind_of(row, column) if coloured else ""
        out.append(cell(x + CELL * column, y + CELL * row, value, kind))
    return out


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return a line with an arrowhead."""
    line = f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" class="arrow"/>'
    tip = (-10, -6, -10, 6) if to_y == y else (-6, -10, 6, -10)
    points = f"{to_x},{to_y} {to_x + tip[0]},{to_y + tip[1]} {to_x + tip[2]},{to_y + tip[3]}"
    return f'{line}<polygon points="{points}" class="tip"/>'


def draw() -> str:
    """Return the whole picture."""
    s = H.T @ H
    flat = [(row, column) for row in range(3) for column in range(3)]
    legend = ((340, "alone", "how often each feature occurs: also in a sum"),)
    legend += ((376, "pair", "how often two occur at the same node: not in a sum"),)
    parts = [
        *graph(),
        text(70, 20, "graph", "title"),
        arrow(142, 155, 176, 155),
        text(278, 20, "H, a row for each node", "title"),
        *matrix(221, 60, H, range(1, 6), coloured=False),
        arrow(348, 155, 396, 155),
        text(516, 20, "HᵀH", "title"),
        *matrix(459, 98, s, FEATURES, coloured=True),
        arrow(516, 222, 516, 262),
        text(40, 279, "one vector,", "title left"),
        text(40, 301, "of fixed length", "title left"),
        *(cell(288 + CELL * n, 271, s[place], kind_of(*place)) for n, place in enumerate(flat)),
        *(f'<rect x="40" y="{y - 11}" width="22" height="22" class="cell {kind}"/>' for y, kind, _ in legend),
        *(text(74, y, words, "note left") for y, _, words in legend),
    ]
    label = "A graph of five nodes, its matrix H of node features, H transposed times H, and that laid out as a vector."
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 400" role="img"'
    return "\n".join([f'{head} aria-label="{label}">', f"<style>{STYLE}</style>", *parts, "</svg>", ""])


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf-8")
