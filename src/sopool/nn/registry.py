"""The registry of readouts and pooling layers, by the names that the command line and configurations use.

Two decorators register a class and describe it for ``sopool pools``:

- :func:`readout` registers the readout of a flat model.
- :func:`pooling` registers a pooling layer for the blocks of a hierarchical model.
"""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any, TypeVar

import torch
from torch_geometric.nn.aggr import Aggregation

from sopool._runtime.generators import drawing_from
from sopool.errors import check_name
from sopool.nn.aggr.base import GraphReadout
from sopool.nn.pool.base import GraphPooling, PooledReadout, VectorFrom

Layer = TypeVar("Layer", bound=type[torch.nn.Module])
Make = Callable[..., Any]
"""A class, possibly with preset options, that is called with the number of channels and further options."""

SOPOOL = "Wang and Ji 2020, arXiv 2007.10467"
GIN = "Xu et al. 2019, arXiv 1810.00826"
OWN = "your own"

READOUTS: dict[str, Callable[..., Aggregation]] = {}
"""Readouts that need only the nodes of a graph, by name. They follow PyG's ``Aggregation`` interface."""

GRAPH_READOUTS: dict[str, tuple[Make, VectorFrom | None]] = {}
"""Readouts that also need the edges, by name: a pooling layer and how its output becomes a vector, or a
:class:`~sopool.nn.aggr.base.GraphReadout` and ``None``."""

POOLINGS: dict[str, Callable[..., GraphPooling]] = {}
"""Pooling layers for the blocks of hierarchical models, by name."""

NODES_OPTION: dict[str, str] = {}
"""The option of a pooling layer that sets the number of nodes of its output, by the name of the layer."""

SHIPPED: dict[tuple[str, bool], Make] = {}
"""The classes of this package, by name and by whether they are for blocks. Users may add others to the registries."""

DESCRIBED: dict[str, tuple[Make, "About"]] = {}
"""The class and the description that :func:`readout` registered, by name."""

ELSEWHERE = {"sopool", "torch", "torch_geometric", *sys.stdlib_module_names}
"""Packages whose classes are identified by name only, since users do not edit them."""


@dataclass(frozen=True)
class About:
    """The description of a pooling.

    Costs use N nodes, E edges, P pairs of nodes, f features, k nodes kept, rank r and m eigenvectors.
    """

    name: str
    formula: str
    cost: str
    """The number of multiplications for a batch, up to a constant factor."""
    vector: str
    """How a flat model obtains a vector from the output."""
    default: str
    paper: str

    def parameters(self, channels: int) -> int | None:
        """Count the parameters of the readout in a flat model; ``None`` if it has required options."""
        made = self._made(channels)
        return None if made is None else _count(made)

    def width(self, channels: int) -> int | None:
        """Return the width of the graph embedding in a flat model; ``None`` if the readout has required options."""
        made = self._made(channels)
        return None if made is None else int(getattr(made, "out_channels", channels))

    def _made(self, channels: int) -> torch.nn.Module | None:
        try:
            with drawing_from(0):
                return make_readout(self.name, channels)
        except TypeError:  # a user's readout may have required options
            return None

    def block_parameters(self, channels: int) -> int | None:
        """Count the parameters of the first layer in a hierarchical model; ``None`` if it is not a pooling layer."""
        if self.name not in POOLINGS:
            return None
        with drawing_from(0):
            return _count(make_pooling(self.name, channels))

    def to_json(self, channels: int) -> dict[str, Any]:
        """Return the description for ``channels`` node features as a dictionary."""
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
    vector: str = "the output",
    default: str | None = None,
    paper: str = OWN,
    options: Mapping[str, Any] | None = None,
    vector_from: VectorFrom | None = None,
) -> Callable[[Layer], Layer]:
    """Register a class as a readout of flat models.

    Args:
        name: The name for the command line and configurations.
        formula: The formula that ``sopool pools`` shows.
        cost: The number of multiplications for a batch, up to a constant factor. Default: ``"-"``.
        vector: How a flat model obtains a vector from the output. Default: the output is the vector.
        default: A description of the default options. Default: ``None``, which lists all options that have a default.
        paper: The source. Default: ``"your own"``.
        options: Preset options that differ from the defaults of the class. Default: ``None``.
        vector_from: For a class that returns smaller graphs, ``"max-mean"`` or ``"concat"``, see
            :class:`~sopool.nn.PooledReadout`. Default: ``None``, for a class that returns vectors.

    Examples:
        >>> from sopool.nn import READOUTS, SumAggregation, make_readout, readout
        >>> @readout("doubled", formula="2 H^T 1")
        ... class DoubledAggregation(SumAggregation):
        ...     def pool(self, x, ptr):
        ...         return 2 * super().pool(x, ptr)
        >>> make_readout("doubled", channels=8)
        DoubledAggregation(8)
        >>> del READOUTS["doubled"]  # remove it again
    """

    def register(layer: Layer) -> Layer:
        make = _preset(layer, options)
        if vector_from is None and not issubclass(layer, GraphReadout):
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
    """Register a class as a pooling layer for the blocks of hierarchical models.

    Args:
        name: The name for the command line and configurations.
        options: Preset options that differ from the defaults of the class. Default: ``None``.
        nodes_option: The option that sets the number of nodes of the output; it is halved from block to block. Default:
            ``None``, if the number of nodes depends on the input.

    Examples:
        >>> from sopool.nn import POOLINGS, TopKPooling, make_pooling, pooling
        >>> @pooling("top-quarter", options={"ratio": 0.25})
        ... class QuarterPooling(TopKPooling):
        ...     pass
        >>> make_pooling("top-quarter", channels=8)
        QuarterPooling(8, ratio=0.25)
        >>> del POOLINGS["top-quarter"]  # remove it again
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


def make_readout(name: str, channels: int | Sequence[int], **options: Any) -> Aggregation | GraphReadout:
    """Return a new readout of a flat model.

    A readout of :data:`GRAPH_READOUTS` is a :class:`~sopool.nn.aggr.base.GraphReadout`.

    Args:
        name: The name of the readout, a key of :data:`READOUTS` or :data:`GRAPH_READOUTS`.
        channels: Number of node features ``F``, or the widths of the layers that they are concatenated from, which only
            ``sopool-pairs`` tells apart.
        options: Options of the class.

    Examples:
        >>> make_readout("sopool-bimap", channels=16, rank=4)
        BilinearSecondOrderAggregation(16, rank=4)
    """
    check_name("readout", name, makers(blocks=False))
    all_channels = sum(channels) if isinstance(channels, Sequence) else channels
    if name in GRAPH_READOUTS:
        make, vector_from = GRAPH_READOUTS[name]
        if vector_from is None:
            own: GraphReadout = make(channels, **options)
            return own
        return PooledReadout(make(all_channels, **options), vector_from)
    make = READOUTS[name]
    if "channels" in inspect.signature(make).parameters:
        return make(all_channels, **options)
    return make(**options)


def make_pooling(name: str, channels: int, **options: Any) -> GraphPooling:
    """Return a new pooling layer.

    Args:
        name: The name of the layer, a key of :data:`POOLINGS`.
        channels: Number of node features ``F``.
        options: Options of the class.

    Examples:
        >>> make_pooling("topkpool", channels=16, ratio=0.25)
        TopKPooling(16, ratio=0.25)
    """
    check_name("pooling layer", name, POOLINGS)
    return POOLINGS[name](channels, **options)


def make_blocks(name: str, channels: int, blocks: int, options: dict[str, Any]) -> list[GraphPooling]:
    """Return the pooling layers of a hierarchical model, one for each block.

    If the number of nodes is fixed, it is halved from block to block.
    """
    if not 1 <= blocks <= 3:
        raise ValueError(f"blocks={blocks}: a hierarchical model has 1 to 3 blocks.")
    first = make_pooling(name, channels, **options)
    option = NODES_OPTION.get(name)
    nodes = first.nodes
    if option is None or nodes is None:
        return [first, *(make_pooling(name, channels, **options) for _ in range(blocks - 1))]
    numbers = [max(2, -(-nodes // 2**block)) for block in range(1, blocks)]
    return [first, *(make_pooling(name, channels, **(options | {option: number})) for number in numbers)]


def default_options(name: str, blocks: bool) -> dict[str, Any]:
    """Return the default options of a pooling: those of its class, updated by the presets of the registry.

    Options without a default are left out.

    Args:
        name: The name of a readout or a pooling layer.
        blocks: Whether the name is that of a pooling layer (a hierarchical model) instead of a readout (a flat model).
    """
    known = makers(blocks)
    check_name("pooling layer" if blocks else "readout", name, known)
    return _defaults(known[name])


def makers(blocks: bool) -> dict[str, Make]:
    """Return the registered pooling layers if ``blocks`` is true, otherwise the readouts."""
    return dict(POOLINGS) if blocks else READOUTS | {name: make for name, (make, _) in GRAPH_READOUTS.items()}


def _defaults(make: Make) -> dict[str, Any]:
    options = inspect.signature(make).parameters.values()
    return {
        option.name: option.default
        for option in options
        if option.name != "channels" and option.default is not option.empty
    }


def about_all() -> list[About]:
    """Describe all registered readouts: first those of this package, then those of the user."""
    own = own_readouts()
    shipped = {name: make for name, make in makers(blocks=False).items() if name not in own}
    return [_about(name, make) for name, make in (shipped | own).items()]


def _about(name: str, make: Make) -> About:
    """Return the registered description or, without one, the first line of the docstring of the class."""
    described, about = DESCRIBED.get(name, (None, None))
    if about is not None and described is make:
        return about
    said = (make.func if isinstance(make, partial) else make).__doc__ or "-"
    words = re.sub(r":[\w:]+:`([^`]*)`", r"\1", said.strip().partition("\n")[0])  # remove roles such as :math:
    return About(name, words, "-", "the output", _listed_options(make), OWN)


def _listed_options(make: Make) -> str:
    return ", ".join(f"{option} = {value}" for option, value in _defaults(make).items()) or "-"


def own_readouts() -> dict[str, Make]:
    """Return the readouts that the user registered, by name."""
    return {name: make for name, make in makers(blocks=False).items() if make is not SHIPPED.get((name, False))}


def source_of(name: str) -> str:
    """Return a hash of the source code of a user's pooling and its base classes.

    For a pooling of this package, the result is an empty string. A class without source code, for example one typed
    into a prompt, is represented by its qualified name.
    """
    makes = {blocks: makers(blocks).get(name) for blocks in (False, True)}
    own = [make for blocks, make in makes.items() if make is not None and make is not SHIPPED.get((name, blocks))]
    return hash_of_source(*own)


def hash_of_source(*made: Make) -> str:
    """Return a hash of the source code of classes and functions; an empty string if there are none."""
    parts = [part for make in made for part in _parts(make)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16] if parts else ""


@cache  # editing the file later does not change the class in memory
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
