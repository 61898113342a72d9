"""Readouts and pooling layers by the names that the command line and the configs use.

A class enters the registry by a decorator, which also says what ``sopool pools`` shows of it:

- :func:`readout` makes it the readout of a flat network;
- :func:`pooling` makes it a layer for the blocks of a hierarchy.
"""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any, TypeVar

import torch
from torch_geometric.nn.aggr import Aggregation

from sopool._runtime.generators import drawing_from
from sopool.errors import check_name
from sopool.nn.pool.base import GraphPooling, PooledReadout, VectorFrom

Layer = TypeVar("Layer", bound=type[torch.nn.Module])
Make = Callable[..., Any]
"""A class, or one with some of its options preset: called with the channels and the other options."""

SOPOOL = "Wang and Ji 2020, arXiv 2007.10467"
GIN = "Xu et al. 2019, arXiv 1810.00826"
OWN = "your own"

READOUTS: dict[str, Callable[..., Aggregation]] = {}
"""They see the nodes of a graph, not its edges: PyG's ``Aggregation`` contract."""

GRAPH_READOUTS: dict[str, tuple[Callable[..., GraphPooling], VectorFrom]] = {}
"""Readouts by way of a smaller graph, and how a vector is made of it."""

POOLINGS: dict[str, Callable[..., GraphPooling]] = {}
"""Layers that make graphs smaller, for the blocks of a hierarchy."""

NODES_OPTION: dict[str, str] = {}
"""The option of a pooling layer that fixes the number of nodes left."""

SHIPPED: dict[tuple[str, bool], Make] = {}
"""The package's own, by name and by whether they are for blocks; a user may put others into the dictionaries above."""

DESCRIBED: dict[str, tuple[Make, "About"]] = {}
"""What :func:`readout` was told of each name, and the class it was told about."""

ELSEWHERE = {"sopool", "torch", "torch_geometric", *sys.stdlib_module_names}
"""Packages whose classes count by their names: a user does not edit them."""


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
        """Count those of a flat network's readout of ``channels`` features; None if it is not made without options."""
        made = self._made(channels)
        return None if made is None else _count(made)

    def width(self, channels: int) -> int | None:
        """Return the width of what a flat network's classifier sees; None if it is not made without options."""
        made = self._made(channels)
        return None if made is None else int(getattr(made, "out_channels", channels))

    def _made(self, channels: int) -> torch.nn.Module | None:
        try:
            with drawing_from(0):
                return make_readout(self.name, channels)
        except TypeError:  # a user's own may have options that must be given
            return None

    def block_parameters(self, channels: int) -> int | None:
        """Count those of its first layer in a hierarchy; None if it is no layer."""
        if self.name not in POOLINGS:
            return None
        with drawing_from(0):
            return _count(make_pooling(self.name, channels))

    def to_json(self, channels: int) -> dict[str, Any]:
        """Return all that is known of it, for node features of width ``channels``."""
        return asdict(self) | {
            "channels": channels,
            "parameters": self.parameters(channels),
            "width": self.width(channels),
            "hierarchical": self.name in POOLINGS,
            "block_parameters": self.block_parameters(channels),
        }


def _count(layer: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in layer.parameters())


def readout(
    name: str,
    *,
    formula: str,
    cost: str = "-",
    vector: str = "is one",
    default: str | None = None,
    paper: str = OWN,
    options: Mapping[str, Any] | None = None,
    vector_from: VectorFrom | None = None,
) -> Callable[[Layer], Layer]:
    """Register a class as the readout called ``name`` of flat networks.

    Args:
        name: What the command line and the configs call it.
        formula: What ``sopool pools`` shows of it, like the four that follow.
        cost: Multiplications for a batch, up to a factor.
        vector: How a flat network gets a vector from it.
        default: The options that matter and their values; if left out, all that have one.
        paper: Where it is from.
        options: Options that are preset, unlike those of the class itself.
        vector_from: For a class that makes graphs smaller: how a vector is made of the nodes that are left, see
            :class:`~sopool.nn.PooledReadout`. None for a class that gives a vector by itself.
    """

    def register(layer: Layer) -> Layer:
        make = _preset(layer, options)
        if vector_from is None:
            READOUTS[name] = make
        else:
            GRAPH_READOUTS[name] = (make, vector_from)
        shown = _listed_options(make) if default is None else default
        DESCRIBED[name] = (make, About(name, formula, cost, vector, shown, paper))
        if _is_shipped(layer):
            SHIPPED[name, False] = make
        return layer

    return register


def pooling(
    name: str, *, options: Mapping[str, Any] | None = None, nodes_option: str | None = None
) -> Callable[[Layer], Layer]:
    """Register a class as the pooling layer called ``name`` in the blocks of hierarchies.

    Args:
        name: What the command line and the configs call it.
        options: Options that are preset, unlike those of the class itself.
        nodes_option: The option that fixes the number of nodes left, which is halved from block to block.
    """

    def register(layer: Layer) -> Layer:
        make = _preset(layer, options)
        POOLINGS[name] = make
        if nodes_option is not None:
            NODES_OPTION[name] = nodes_option
        if _is_shipped(layer):
            SHIPPED[name, True] = make
        return layer

    return register


def _preset(layer: type[torch.nn.Module], options: Mapping[str, Any] | None) -> Make:
    return partial(layer, **options) if options else layer


def _is_shipped(layer: type[torch.nn.Module]) -> bool:
    return layer.__module__.partition(".")[0] == "sopool"


def make_readout(name: str, channels: int, **options: Any) -> Aggregation | PooledReadout:
    """The readout called ``name`` for node features of width ``channels``, with its class's own options.

    Those of :data:`GRAPH_READOUTS` have ``needs_graph``: they are called with the graphs, not with ``ptr`` alone.
    """
    check_name("readout", name, makers(blocks=False))
    if name in GRAPH_READOUTS:
        layer, vector_from = GRAPH_READOUTS[name]
        return PooledReadout(layer(channels, **options), vector_from)
    make = READOUTS[name]
    if "channels" in inspect.signature(make).parameters:
        return make(channels, **options)
    return make(**options)


def make_pooling(name: str, channels: int, **options: Any) -> GraphPooling:
    """The pooling layer called ``name`` for node features of width ``channels``."""
    check_name("pooling layer", name, POOLINGS)
    return POOLINGS[name](channels, **options)


def make_blocks(name: str, channels: int, blocks: int, options: dict[str, Any]) -> list[GraphPooling]:
    """The poolings of a hierarchy, each after a layer of width ``channels``.

    Where the number of nodes is fixed it is halved from block to block, as the other poolings do by their ratio.
    """
    if not 1 <= blocks <= 3:
        raise ValueError(f"blocks={blocks}: a hierarchy has 1 to 3.")
    first = make_pooling(name, channels, **options)
    option = NODES_OPTION.get(name)
    nodes = first.nodes
    if option is None or nodes is None:
        return [first, *(make_pooling(name, channels, **options) for _ in range(blocks - 1))]
    numbers = [max(2, -(-nodes // 2**block)) for block in range(1, blocks)]
    return [first, *(make_pooling(name, channels, **(options | {option: number})) for number in numbers)]


def default_options(name: str, blocks: bool) -> dict[str, Any]:
    """Return the options of a pooling with the values they have where none are given, by name and without channels.

    These are the defaults of its class, overlaid by what the registry presets. An option that must be given has none.

    Args:
        name: The name of a readout, or of a pooling layer.
        blocks: Whether the pooling layer in the blocks of a hierarchy is meant, not the readout of a flat network.
    """
    known = makers(blocks)
    check_name("pooling layer" if blocks else "readout", name, known)
    return _defaults(known[name])


def makers(blocks: bool) -> dict[str, Make]:
    """Return what makes each pooling layer of a hierarchy (``blocks``), or else each readout of a flat network."""
    return dict(POOLINGS) if blocks else READOUTS | {name: make for name, (make, _) in GRAPH_READOUTS.items()}


def _defaults(make: Make) -> dict[str, Any]:
    options = inspect.signature(make).parameters.values()
    return {
        option.name: option.default
        for option in options
        if option.name != "channels" and option.default is not option.empty
    }


def about_all() -> list[About]:
    """Describe every readout there is now: the package's, then a user's own."""
    own = own_readouts()
    shipped = {name: make for name, make in makers(blocks=False).items() if name not in own}
    return [_about(name, make) for name, make in (shipped | own).items()]


def _about(name: str, make: Make) -> About:
    """Return what the decorator was told; for a class without it, the first line of its docstring."""
    described, about = DESCRIBED.get(name, (None, None))
    if about is not None and described is make:
        return about
    said = (make.func if isinstance(make, partial) else make).__doc__ or "-"
    words = re.sub(r":[\w:]+:`([^`]*)`", r"\1", said.strip().partition("\n")[0])  # no roles, as :math: is one
    return About(name, words, "-", "is one", _listed_options(make), OWN)


def _listed_options(make: Make) -> str:
    return ", ".join(f"{option} = {value}" for option, value in _defaults(make).items()) or "-"


def own_readouts() -> dict[str, Make]:
    """Return the readouts of flat networks that are not the package's, by name."""
    return {name: make for name, make in makers(blocks=False).items() if make is not SHIPPED.get((name, False))}


def source_of(name: str) -> str:
    """Return a hash of the source of a user's own pooling and its bases; for one of the package, an empty string.

    Where there is no source, as for a class typed into a prompt, its qualified name stands for it.
    """
    makes = {blocks: makers(blocks).get(name) for blocks in (False, True)}
    own = [make for blocks, make in makes.items() if make is not None and make is not SHIPPED.get((name, blocks))]
    parts = [part for make in own for part in _parts(make)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16] if parts else ""


@cache  # the class in memory stays as it is when its file is edited later
def _parts(make: Make) -> list[str]:
    if isinstance(make, partial):
        given = f"{make.args} {sorted(make.keywords.items())}"
        return [getattr(make.func, "__qualname__", ""), given, *_parts(make.func)]
    plain = inspect.isclass(make) or inspect.isroutine(make)
    kinds = inspect.getmro(make) if inspect.isclass(make) else (make if plain else type(make),)
    return [_text(kind) for kind in kinds if str(kind.__module__).partition(".")[0] not in ELSEWHERE]


def _text(kind: Any) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return f"{kind.__module__}.{kind.__qualname__}"
