"""Every pooling in a few words: formula, cost, what a flat network makes a vector of, where it is from."""

import inspect
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from sopool._runtime.generators import drawing_from
from sopool.nn.own import own_readouts
from sopool.nn.registry import POOLINGS, make_pooling, make_readout

SOPOOL = "Wang and Ji 2020, arXiv 2007.10467"
GIN = "Xu et al. 2019, arXiv 1810.00826"


@dataclass(frozen=True)
class About:
    """What to know of a pooling. N nodes, E edges, f features, k nodes left or kept, r the rank, m eigenvectors."""

    name: str
    formula: str
    cost: str
    """Multiplications for a batch, up to a factor."""
    vector: str
    """How a flat network gets a vector from it."""
    default: str
    paper: str

    def parameters(self, channels: int) -> int | None:
        """Of a flat network's readout of ``channels`` features; None for one that is not made without options."""
        made = self._made(channels)
        return None if made is None else _count(made)

    def width(self, channels: int) -> int | None:
        """Of what a flat network's classifier sees; None as above."""
        made = self._made(channels)
        return None if made is None else int(getattr(made, "out_channels", channels))

    def _made(self, channels: int) -> torch.nn.Module | None:
        try:
            with drawing_from(0):
                return make_readout(self.name, channels)
        except TypeError:  # a user's own may have options that must be given
            return None

    def block_parameters(self, channels: int) -> int | None:
        """Of its first layer in a hierarchy; None where it is none."""
        if self.name not in POOLINGS:
            return None
        with drawing_from(0):
            return _count(make_pooling(self.name, channels))

    def to_json(self, channels: int) -> dict[str, Any]:
        """All of it, for node features of width ``channels``."""
        return asdict(self) | {
            "channels": channels,
            "parameters": self.parameters(channels),
            "width": self.width(channels),
            "hierarchical": self.name in POOLINGS,
            "block_parameters": self.block_parameters(channels),
        }


def _count(layer: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in layer.parameters())


ABOUT = [
    About("sum", "H^T 1", "N f", "is one", "-", GIN),
    About("mean", "H^T 1 / n", "N f", "is one", "-", GIN),
    About("max", "max_i h_i", "N f", "is one", "-", GIN),
    About("sopool", "H^T H", "N f^2", "flattened, f^2", "-", SOPOOL),
    About("sopool-bimap", "W^T H^T H W", "N f r + N r^2", "flattened, r^2", "r = 32", SOPOOL),
    About("sopool-attn", "H^T H mu", "N f", "is one", "no bias", SOPOOL),
    About(
        "sopool-m-attn",
        "C = U H^T, H' = C H, A' = C A C^T",
        "N f k + E k",
        "k nodes side by side",
        "k = 8; blocks 16, 8, 4",
        SOPOOL,
    ),
    About("covpool", "W^T (H - mean)^T (H - mean) W", "N f r + N r^2", "flattened, r^2", "r = 32", SOPOOL),
    About("attnpool", "H^T softmax(H mu)", "N f", "is one", "-", SOPOOL),
    About(
        "sortpool",
        "conv(conv(first k of H sorted by its last column))",
        "N log N + k f",
        "two 1-D convolutions over k nodes in order",
        "k: 60 % quantile of sizes, at least 10",
        "Zhang et al. 2018, AAAI, doi 10.1609/aaai.v32i1.11782",
    ),
    About(
        "topkpool",
        "y = H p / |p|, H' = (H * tanh y)[top k], A' = A[top k, top k]",
        "N f + N log N + E",
        "max and mean over the nodes left",
        "k = n / 2",
        "Gao and Ji 2019, arXiv 1905.05178",
    ),
    About(
        "sagpool",
        "y = D^-1/2 (A + I) D^-1/2 H theta, then as topkpool",
        "N f + N log N + E",
        "max and mean over the nodes left",
        "k = n / 2",
        "Lee et al. 2019, arXiv 1904.08082",
    ),
    About(
        "diffpool",
        "S = softmax(D^-1/2 (A + I) D^-1/2 H W), H' = S^T H, A' = S^T A S",
        "N f k + N k^2 + E k",
        "k nodes side by side",
        "k = 8; blocks 16, 8, 4",
        "Ying et al. 2018, arXiv 1806.08804",
    ),
    About(
        "eigenpool",
        "H'_c = U_c^T H_c for spectral clusters c, A' = edges between clusters",
        "N f m + E, clusters once per data set",
        "each graph is one cluster, one node",
        "m = 8; blocks m = 2, 4 nodes to a cluster",
        "Ma et al. 2019, arXiv 1904.13107",
    ),
]
"""In the order in which they are listed."""


def about_all() -> list[About]:
    """Every pooling there is now: those above, and a user's own by the first lines of their docstrings."""
    own = own_readouts()
    return [*(one for one in ABOUT if one.name not in own), *(_about_own(*item) for item in own.items())]


def _about_own(name: str, make: Callable[..., Any]) -> About:
    said = (make.func if isinstance(make, partial) else make).__doc__ or "-"
    words = re.sub(r":[\w:]+:`([^`]*)`", r"\1", said.strip().partition("\n")[0])  # no roles, as :math: is one
    options = inspect.signature(make).parameters.values()
    given = [f"{option.name} = {option.default}" for option in options if option.default is not option.empty]
    return About(name, words, "-", "is one", ", ".join(given) or "-", "your own")
