"""From names to model configurations, and how they are trained."""

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from torch import Tensor

from sopool._runtime.generators import planning
from sopool.data.features.edge_labels import EdgeLabelEncoder
from sopool.data.features.encoders import has_node_attributes, has_node_labels
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError, check_name
from sopool.models.config import RANDOM, DropoutOn, Head, ModelConfig, Setting
from sopool.models.flat import readout_widths
from sopool.models.make import make_model
from sopool.models.stackable import check_stackable, first_line
from sopool.nn.aggr.normalize import DIVIDED
from sopool.nn.aggr.sort import LEAST
from sopool.nn.gnn import VARIANTS
from sopool.nn.pool.base import VectorFrom
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, READOUTS, makers, source_of

Preset = Literal["default", "best", "paper", "sagpool"]

FIRST_ORDER = ("sum", "mean", "max")
LEARNED = ("sopool-bimap", "sopool-attn", "sopool-m-attn")
SECOND_ORDER = ("sopool", *LEARNED)
FROZEN = {name + RANDOM: name for name in LEARNED}
"""Controls: W, mu or U stay as they were drawn, all else is trained. So one sees what learning them buys."""
POOLS = (*READOUTS, *GRAPH_READOUTS, "sum-avg", *FROZEN)
"""``sum-avg`` is the paper's rule: the sum where nodes carry labels (bioinformatics), the mean where they do not
(social networks)."""
KINDS: dict[Any, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    NoneType: (NoneType, "none"),
}
"""What an option may be declared as, what is then taken, and what that is called."""
HIERARCHICAL = (*POOLINGS, *(name for name, trained in FROZEN.items() if trained in POOLINGS))


@dataclass(frozen=True)
class Recipe:
    """How the models of a preset look and are trained, where nothing else is asked for."""

    gnn: str = "gin-0"
    head: Head = "per-block"
    dropout_on: DropoutOn = "embedding"
    sums_dropout_on: DropoutOn = "logits"
    """Of first-order pools in flat models: on the embedding of each layer it costs them accuracy."""
    divides: bool = True
    """Whether flat second-order pools are divided by the number of nodes where ``sum-avg`` is the mean."""
    bimap: Mapping[str, Any] = field(default_factory=lambda: {"lr_scale": 0.1})
    """Options of ``sopool-bimap``."""
    attention_bias: bool = False
    setting: Setting = field(default_factory=Setting)
    steps: int | None = 50
    """Batches in an epoch; None: as many as a pass over the training graphs has."""
    halve_every: int = 50
    weight_decay: float = 0.0
    average: float = 0.99
    """How much of the running mean of a model's parameters stays at each step."""
    patience: int | None = None


PRESETS: dict[Preset, Recipe] = {
    "default": Recipe(),
    "best": Recipe(
        bimap={"lr_scale": 0.1, "rank": 16, "normalize": "matrix-sqrt"},
        setting=Setting(dropout=0.0),
    ),
    "paper": Recipe(dropout_on="logits", divides=False, bimap={}, attention_bias=True, average=0.0),
    "sagpool": Recipe(
        gnn="gcn",
        head="sum-readout",
        sums_dropout_on="embedding",
        bimap={},
        setting=Setting(hidden=128, batch_size=128, lr=5e-4, dropout=0.5),
        steps=None,
        halve_every=0,
        weight_decay=1e-4,
        average=0.0,
        patience=50,
    ),
}
"""``default``: the model as we would have it. ``best``: the most accurate form that was found. ``paper``: as the
authors' code has it. ``sagpool``: the hierarchy, optimiser and stopping of SAGPool."""


def model_config(
    store: PackedGraphs,
    gnn: str,
    pool: str,
    preset: Preset = "default",
    blocks: int = 0,
    head: Head | None = None,
    block_readout: VectorFrom = "max-mean",
    options: Mapping[str, Any] = MappingProxyType({}),
) -> ModelConfig:
    """A model for a data set: flat, or a hierarchy of some ``blocks``; ``options`` are those of the pooling's class.

    In a flat model first-order pools score each layer by itself and add the scores, as GIN does, with dropout on them;
    the others see all layers side by side, with dropout on what is pooled. Where nodes have neither labels nor
    attributes, second-order pools are divided by the number of nodes; the mapping of ``sopool-bimap`` learns slowly.
    With ``best`` it has a lower rank, and the root of the matrix is taken. With ``paper`` nothing is divided, slow or a
    root, all dropout is on the scores and the attentional pooling has a bias, as in the authors' code.
    """
    recipe = PRESETS[preset]
    check_name("GNN", gnn, VARIANTS)
    pool, frozen = _known(pool, blocks), pool in FROZEN
    if blocks:
        if not 1 <= blocks <= 3:
            raise SettingError(f"{blocks} blocks are not possible: 1 to 3 are.")
        _check_edges(gnn, pool, blocks)
        return _checked(
            ModelConfig(
                gnn=gnn,
                pool=pool,
                pool_options=dict(options),
                dropout_on=recipe.dropout_on,
                blocks=blocks,
                head=recipe.head if head is None else head,
                block_readout=block_readout,
                frozen=frozen,
            ),
            options,
        )
    plain = not (has_node_labels(store) or has_node_attributes(store))
    if pool == "sum-avg":
        pool = "mean" if plain else "sum"
    first_order = pool in FIRST_ORDER
    own: dict[str, Any] = {name: find(store.sizes) for name, find in FITTED.get(pool, {}).items()}
    if pool == "sopool-attn" and recipe.attention_bias:
        own["bias"] = True
    if pool == "sopool-bimap":
        own |= recipe.bimap
    if pool in SECOND_ORDER and recipe.divides and plain:
        own["normalize"] = DIVIDED[own.get("normalize")]
    return _checked(
        ModelConfig(
            gnn=gnn,
            pool=pool,
            pool_options=own | dict(options),
            join="per-layer" if first_order else "concat",
            dropout_on=recipe.sums_dropout_on if first_order else recipe.dropout_on,
            frozen=frozen,
            edge_labels=len(EdgeLabelEncoder().fit(store).values) if VARIANTS[gnn].labelled else 0,
            pool_source=source_of(pool),
        ),
        options,
    )


def share_options(pools: Sequence[str], blocks: int, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Which of the ``options`` each pooling gets: those it has. A ``SettingError`` for one that none of them has."""
    has = {pool: options_of(pool, blocks) for pool in pools}
    for name in options:
        if not any(name in own for own in has.values()):
            each = "; ".join(f"{pool} has {', '.join(own) or 'none'}" for pool, own in has.items())
            raise SettingError(
                f"no pooling has the option {name}, which was given as {options[name]}. Options: {each}."
            )
    return {pool: {name: value for name, value in options.items() if name in has[pool]} for pool in pools}


def options_of(pool: str, blocks: int = 0) -> list[str]:
    """The names of a pooling's options."""
    return list(_declared(pool, blocks))


def _declared(pool: str, blocks: int) -> dict[str, Any]:
    """A pooling's options, each with what it is declared as."""
    trained = _known(pool, blocks)
    if trained == "sum-avg":
        return {}
    options = inspect.signature(makers(bool(blocks))[trained]).parameters
    return {name: one.annotation for name, one in options.items() if name != "channels"}


def _known(pool: str, blocks: int) -> str:
    """The pooling's own name, that of a control without ``-random``; a ``SettingError`` if there is none such."""
    added = [name for name in READOUTS if name not in POOLS]  # by a user, since
    check_name("hierarchical pooling" if blocks else "pooling", pool, HIERARCHICAL if blocks else (*POOLS, *added))
    return FROZEN.get(pool, pool)


def check_config(config: ModelConfig) -> None:
    """Raise a ``DataError`` unless a model can be made with this configuration, as one from a file may not."""
    try:
        if config.blocks:
            _check_edges(config.gnn, config.pool, config.blocks)
        _checked(config, config.effective_options)
    except SettingError as error:
        raise DataError(str(error)) from error


def _checked(config: ModelConfig, options: Mapping[str, Any]) -> ModelConfig:
    """Raise a ``SettingError`` now for ``options`` that no model can be made with."""
    try:
        _check_kinds(options, _declared(config.pool, config.blocks))
        with planning():
            make_model(config, 2, 2)
    except (RuntimeError, TypeError, ValueError) as error:
        given = ", ".join(f"{name}={value}" for name, value in options.items()) or "no options"
        raise SettingError(f"{config.pool_name} cannot be made with {given}: {first_line(error)}") from error
    if config.pool in READOUTS and not config.blocks:
        check_stackable(config.pool, readout_widths(config, 2)[-1], config.effective_options)
    return config


def _check_kinds(options: Mapping[str, Any], declared: Mapping[str, Any]) -> None:
    """Raise a ``TypeError`` for a word where a number is needed, and the like; of other kinds nothing is said."""
    for name, value in options.items():
        told = declared.get(name)
        kinds = get_args(told) if get_origin(told) in (Union, UnionType) else (told,)
        if not KINDS.keys() >= set(kinds):
            continue
        fits = (isinstance(value, KINDS[kind][0]) for kind in kinds)
        if not (bool in kinds if isinstance(value, bool) else any(fits)):  # Python takes True for 1
            raise TypeError(f"{name} must be {' or '.join(KINDS[kind][1] for kind in kinds)}.")


def sort_size(sizes: Tensor) -> int:
    """SortPool's k as DGCNN has it: the size that 60 % of the graphs do not exceed, at least 10."""
    ordered = sizes.sort().values
    return max(LEAST, int(ordered[math.ceil(0.6 * len(ordered)) - 1]) if len(ordered) else LEAST)


FITTED: dict[str, dict[str, Callable[[Tensor], Any]]] = {"sortpool": {"k": sort_size}}
"""Options that are found from the sizes of a model's training graphs, and so for each fold anew, unless given: by the
name of the pooling and of the option, how."""


def fit_options(config: ModelConfig, sizes: Callable[[], Tensor], given: Collection[str]) -> ModelConfig:
    """Return the model for training graphs of the ``sizes``, asked for if need be; options that were ``given`` stay."""
    found = {name: find(sizes()) for name, find in FITTED.get(config.pool, {}).items() if name not in given}
    return replace(config, pool_options=config.pool_options | found) if found else config


def fitted_options(config: ModelConfig) -> dict[str, Any]:
    """Return the options of :data:`FITTED`, whether they were found or given."""
    return {name: config.pool_options.get(name) for name in FITTED.get(config.pool, {})}


def without_fitted(config: ModelConfig) -> ModelConfig:
    """Return what models share whose options of :data:`FITTED` differ from fold to fold."""
    fitted = FITTED.get(config.pool, {})
    options = {name: value for name, value in config.pool_options.items() if name not in fitted}
    return replace(config, pool_options=options)


def _check_edges(gnn: str, pool: str, blocks: int) -> None:
    """What a pooling leaves has no edge labels; to k nodes it has weights, which a maximum over neighbours ignores."""
    if VARIANTS[gnn].labelled:
        raise SettingError(
            f"{gnn} uses the labels of edges, and the smaller graphs of a hierarchy have none: "
            "take another GNN, such as gin-0 or gcn, or a flat model (--blocks 0)."
        )
    if blocks > 1 and pool in ("sopool-m-attn", "diffpool") and VARIANTS[gnn].how == "max":
        raise SettingError(
            f"{gnn} takes the largest value over neighbours, which edges with weights do not define, and {pool} leaves "
            "such edges: take a GNN that sums or averages, such as gin-0 or gcn, or --blocks 1."
        )
