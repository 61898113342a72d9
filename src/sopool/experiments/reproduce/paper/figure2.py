"""The paper's second figure: pairs of different graphs that some poolings cannot distinguish.

All nodes of one color have the same features. (a) One color, 3 and 5 nodes: CovPool returns 0 for both graphs, AttnPool
the mean. (b) Two colors in equal shares, 2 and 4 nodes: AttnPool returns the same vector for any mu.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from sopool._runtime.generators import drawing_from
from sopool.nn.registry import make_readout

EXAMPLES = {"a": ((3, 0), (5, 0)), "b": ((1, 1), (2, 2))}
"""The number of nodes of each color in the two graphs."""
POOLS = ("sum", "mean", "max", "sopool", "sopool-bimap", "sopool-attn", "sopool-m-attn", "covpool", "attnpool")
FAIL = {"a": ("covpool", "attnpool"), "b": ("attnpool",)}
"""The poolings that fail according to the paper."""
FEATURES, DRAWS = 8, 20
SAME = 1e-9
"""Distances up to this are rounding errors in float64."""


class Verdict(NamedTuple):
    """The distance between the two graphs of an example under a pooling, over random colors and parameters."""

    pool: str
    """The name of the pooling."""
    example: str
    """The name of the example."""
    nearest: float
    """The smallest distance."""
    farthest: float
    """The largest distance."""
    paper: str
    """``fails`` if the paper says so; empty otherwise."""

    @property
    def told_apart(self) -> bool:
        """Whether the graphs differ in every draw; otherwise they are equal in some, up to rounding."""
        return self.nearest > SAME

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return self._asdict() | {"told_apart": self.told_apart}


def compare_examples(seed: int = 0) -> list[Verdict]:
    """Evaluate every pooling on every example."""
    with drawing_from(seed):
        return [_verdict(pool, example) for example in EXAMPLES for pool in POOLS]


def _verdict(pool: str, example: str) -> Verdict:
    distances = [_distance(pool, example) for _ in range(DRAWS)]
    paper = "fails" if pool in FAIL[example] else ""
    return Verdict(pool, example, min(distances), max(distances), paper)


@torch.no_grad()
def _distance(pool: str, example: str) -> float:
    """Return the distance between the vectors of the two graphs for one draw of colors and parameters."""
    colours = torch.randn(2, FEATURES, dtype=torch.float64)
    graphs = [_nodes(colours, counts) for counts in EXAMPLES[example]]
    ptr = torch.tensor([0, *(len(graph) for graph in graphs)]).cumsum(0)
    one, other = make_readout(pool, FEATURES).double()(torch.cat(graphs), ptr=ptr)
    return float((one - other).norm())


def _nodes(colours: Tensor, counts: tuple[int, ...]) -> Tensor:
    return colours.repeat_interleave(torch.tensor(counts), dim=0)
