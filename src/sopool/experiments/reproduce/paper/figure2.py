"""The paper's second figure: pairs of different graphs that some poolings cannot tell apart.

Nodes of one colour have one representation. (a) One colour, 3 nodes and 5: CovPool gives 0 for both, AttnPool the mean.
(b) Two colours in equal shares, 2 nodes and 4: AttnPool gives the same for any mu.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from sopool._runtime.generators import drawing_from
from sopool.nn.registry import make_readout

EXAMPLES = {"a": ((3, 0), (5, 0)), "b": ((1, 1), (2, 2))}
"""Nodes of each colour in either graph."""
POOLS = ("sum", "mean", "max", "sopool", "sopool-bimap", "sopool-attn", "sopool-m-attn", "covpool", "attnpool")
FAIL = {"a": ("covpool", "attnpool"), "b": ("attnpool",)}
"""What the paper says."""
FEATURES, DRAWS = 8, 20
SAME = 1e-9
"""Distances that are rounding, in float64."""


class Verdict(NamedTuple):
    """How far apart a pooling puts the two graphs of an example, over draws of colours and parameters."""

    pool: str
    example: str
    nearest: float
    farthest: float
    paper: str
    """``fails`` where the paper says so, else empty."""

    @property
    def told_apart(self) -> bool:
        """In every draw; the alternative is in none, up to rounding."""
        return self.nearest > SAME

    def to_json(self) -> dict[str, Any]:
        """All of it, plain."""
        return self._asdict() | {"told_apart": self.told_apart}


def compare_examples(seed: int = 0) -> list[Verdict]:
    """Every pooling on every example."""
    with drawing_from(seed):
        return [_verdict(pool, example) for example in EXAMPLES for pool in POOLS]


def _verdict(pool: str, example: str) -> Verdict:
    distances = [_distance(pool, example) for _ in range(DRAWS)]
    paper = "fails" if pool in FAIL[example] else ""
    return Verdict(pool, example, min(distances), max(distances), paper)


@torch.no_grad()
def _distance(pool: str, example: str) -> float:
    """Between the vectors of the two graphs, for one draw of colours and of the pooling's parameters."""
    colours = torch.randn(2, FEATURES, dtype=torch.float64)
    graphs = [_nodes(colours, counts) for counts in EXAMPLES[example]]
    ptr = torch.tensor([0, *(len(graph) for graph in graphs)]).cumsum(0)
    one, other = make_readout(pool, FEATURES).double()(torch.cat(graphs), ptr=ptr)
    return float((one - other).norm())


def _nodes(colours: Tensor, counts: tuple[int, ...]) -> Tensor:
    return colours.repeat_interleave(torch.tensor(counts), dim=0)
