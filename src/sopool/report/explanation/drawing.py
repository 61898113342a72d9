"""SVG drawings of graphs, with nodes colored by a signed value and the largest values written beside their nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

AGAINST = (230, 137, 28)
NEUTRAL = (247, 247, 247)
FOR = (74, 144, 217)
"""A scale from orange to blue, suitable for color-blind readers; black text is legible on all of its colors."""
WIDTH, HEIGHT, EDGE = 640, 440, 34
RIGHT_ABOVE = np.array([1.0, -1.0])
BEND, THINNEST, THICKEST = 0.22, 1.0, 5.0
"""How far the middle of an arc is from the straight line, relative to its length; and the widths of arcs."""
MARKED = 8
"""The largest number of nodes whose number and value are written beside them."""


@dataclass(frozen=True)
class Stroke:
    """The line that represents an edge."""

    source: int
    target: int
    width: float = 1.5
    dashed: bool = False
    arrow: bool = False


@dataclass(frozen=True)
class Arc:
    """The curve that represents a pair of nodes, colored by its value."""

    source: int
    target: int
    value: float
    hint: str
    """The tooltip."""


@dataclass(frozen=True)
class Picture:
    """A drawing of a graph, with its title and description for screen readers."""

    key: str
    """A prefix for element ids, unique within a page."""
    title: str
    description: str
    points: np.ndarray
    """The position of each node in any scale, ``[N, 2]``."""
    numbers: Sequence[int]
    """The number of each node."""
    labels: Sequence[str]
    """The text inside each node."""
    values: np.ndarray
    """The value of each node, ``[N]``."""
    hints: Sequence[str]
    """The tooltip of each node."""
    lines: Sequence[Stroke]
    rows: tuple[float, float] = (0.0, HEIGHT)
    """The top and the bottom of the part that is shown."""
    arcs: Sequence[Arc] = ()


def colour(value: float, largest: float) -> tuple[int, int, int]:
    """Return the RGB color of a value between ``-largest`` and ``largest``."""
    share = 0.0 if not largest else max(-1.0, min(1.0, value / largest))
    end = FOR if share > 0 else AGAINST
    first, second, third = (round(a + (b - a) * abs(share)) for a, b in zip(NEUTRAL, end, strict=True))
    return first, second, third


def marked(values: np.ndarray) -> set[int]:
    """Return the nodes with the largest absolute values, without those below a twentieth of the largest."""
    order = np.argsort(-np.abs(values), kind="stable")[:MARKED]
    largest = float(np.abs(values).max(initial=0))
    return {int(node) for node in order if abs(values[node]) > largest / 20}


def signed(value: float) -> str:
    """Format a value with its sign and three significant digits; zero has no sign."""
    text = f"{value:+#.3g}".rstrip(".") if abs(value) < 1000 else f"{value:+,.0f}"
    return "0" if float(text.replace(",", "")) == 0 else text.replace("-", "\N{MINUS SIGN}")


def draw(picture: Picture) -> str:
    """Return a picture as an SVG element."""
    at = _place(picture.points)
    radius = _radius(len(picture.values))
    largest = float(np.abs(picture.values).max(initial=0))
    parts = [_opening(picture)]
    parts += [_line(line, at, radius, picture.key) for line in picture.lines]
    parts += draw_arcs(picture.arcs, at)
    for node, (x, y) in enumerate(at):
        fill = "rgb({},{},{})".format(*colour(float(picture.values[node]), largest))
        parts.append(
            f"<g><title>{escape(picture.hints[node])}</title>"
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{fill}" stroke="#333"/>'
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{radius:.1f}" dy="0.35em">{escape(picture.labels[node])}</text>'
            "</g>"
        )
    segments = [(at[line.source], at[line.target]) for line in picture.lines]
    return "\n".join([*parts, *write_marks(at, segments, picture.numbers, picture.values, radius), "</svg>"])


def draw_arcs(arcs: Sequence[Arc], at: np.ndarray) -> list[str]:
    """Return SVG curves between nodes at the positions ``at`` ``[N, 2]``, wider for larger values."""
    largest = max((abs(arc.value) for arc in arcs), default=0.0)
    drawn = []
    for arc in sorted(arcs, key=lambda arc: abs(arc.value)):
        (x1, y1), (x2, y2) = at[arc.source], at[arc.target]
        middle = (x1 + x2) / 2 + BEND * (y1 - y2), (y1 + y2) / 2 + BEND * (x2 - x1)
        tone = "rgb({},{},{})".format(*(FOR if arc.value > 0 else AGAINST))
        width = THINNEST + (THICKEST - THINNEST) * abs(arc.value) / largest
        drawn.append(
            f'<path d="M{x1:.1f} {y1:.1f} Q{middle[0]:.1f} {middle[1]:.1f} {x2:.1f} {y2:.1f}" fill="none" '
            f'stroke="{tone}" stroke-width="{width:.2f}" stroke-opacity="0.75" stroke-linecap="round">'
            f"<title>{escape(arc.hint)}</title></path>"
        )
    return drawn


def write_marks(
    at: np.ndarray,
    segments: Sequence[tuple[np.ndarray, np.ndarray]],
    numbers: Sequence[int],
    values: np.ndarray,
    radius: float,
) -> list[str]:
    """Return SVG texts with the number and value of the most important nodes, placed where they hide least.

    Args:
        at: The position of each node, ``[N, 2]``.
        segments: The ends of each line that is drawn; those of a self-loop are the same.
        numbers: The number of each node.
        values: The value of each node, ``[N]``.
        radius: The radius of the nodes.
    """
    steps = np.linspace(0.15, 0.85, 5)[:, None]
    drawn = np.concatenate([np.zeros((0, 2)), *(a + steps * (b - a) for a, b in segments)])
    boxes = [(centre, np.array([radius, radius])) for centre in at]
    boxes += [(a + radius * RIGHT_ABOVE, np.array([radius, radius])) for a, b in segments if (a == b).all()]
    written = []
    for node in sorted(marked(values), key=lambda node: -abs(values[node])):
        text = f"{numbers[node]}: {signed(float(values[node]))}"
        half = np.array([3.7 * len(text), 8.0])
        place = min(_around(at[node], half, radius), key=lambda place: _hidden(place, half, boxes, drawn))
        boxes.append((place, half * 1.1))
        written.append(
            f'<text x="{place[0]:.1f}" y="{place[1]:.1f}" dy="0.35em" font-size="13" stroke="#fff" stroke-width="3" '
            f'paint-order="stroke">{escape(text)}</text>'
        )
    return written


def _around(centre: np.ndarray, half: np.ndarray, radius: float) -> list[np.ndarray]:
    """Return candidate positions for a text beside a node, the nearest first."""
    angles = np.arange(16) * np.pi / 8
    turns = np.stack([np.sin(angles), -np.cos(angles)], 1)
    return [centre + turn * (half + radius + more) for more in (2.0, 10.0, 24.0) for turn in turns]


def _hidden(
    place: np.ndarray, half: np.ndarray, boxes: Sequence[tuple[np.ndarray, np.ndarray]], drawn: np.ndarray
) -> float:
    """Return the cost of a text position: overlap with nodes, texts and edges, and leaving the picture."""
    over = sum(float(np.clip(half + size - np.abs(place - centre), 0, None).prod()) for centre, size in boxes)
    out = float(np.clip(np.abs(place - (WIDTH / 2, HEIGHT / 2)) + half - (WIDTH / 2, HEIGHT / 2), 0, None).sum())
    crossed = int((np.abs(drawn - place) < half).all(1).sum())
    return 4.0 * over + 40.0 * crossed + 1000.0 * out


def _opening(picture: Picture) -> str:
    key = escape(picture.key)
    top, bottom = picture.rows
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {top:g} {WIDTH} {bottom - top:g}" role="img" '
        f'aria-labelledby="{key}-title {key}-desc" font-family="sans-serif" text-anchor="middle" fill="#111" '
        'style="background: #fff">\n'
        f'<title id="{key}-title">{escape(picture.title)}</title>\n<desc id="{key}-desc">{escape(picture.description)}'
        f'</desc>\n<defs><marker id="{key}-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" '
        'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#777"/>'
        "</marker></defs>"
    )


def _line(line: Stroke, at: np.ndarray, radius: float, key: str) -> str:
    style = f'stroke="#777" stroke-width="{line.width:.2f}"' + (' stroke-dasharray="5 4"' if line.dashed else "")
    (x1, y1) = at[line.source]
    (x2, y2) = at[line.target]
    if line.source == line.target:
        return f'<circle cx="{x1 + radius:.1f}" cy="{y1 - radius:.1f}" r="{radius * 0.7:.1f}" fill="none" {style}/>'
    length = max(float(np.hypot(x2 - x1, y2 - y1)), 1e-9)
    x2 = x2 - (x2 - x1) / length * radius
    y2 = y2 - (y2 - y1) / length * radius
    arrow = f' marker-end="url(#{escape(key)}-arrow)"' if line.arrow else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}{arrow}/>'


def _place(points: np.ndarray) -> np.ndarray:
    """Scale and center positions to fit the picture, with one scale for both axes."""
    if not len(points):
        return points
    low = points.min(0)
    high = points.max(0)
    capacity = np.array([WIDTH, HEIGHT]) - 2 * EDGE
    scale = (capacity / np.maximum(high - low, 1e-9)).min()
    middle = np.array([WIDTH, HEIGHT]) / 2
    return np.asarray((points - (low + high) / 2) * min(scale, 160.0 * len(points)) + middle)


def _radius(nodes: int) -> float:
    return float(np.clip(90 / np.sqrt(max(1, nodes)), 4, 16))
