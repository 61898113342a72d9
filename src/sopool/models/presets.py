"""Presets: model configurations and training hyperparameters by name."""

import inspect
import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from torch import Tensor

from sopool._runtime.generators import planning
from sopool.data.analysis.distances import MOST_PAIRS, affordable
from sopool.data.features.edge_features import EdgeEncoder, only_encoded_edges
from sopool.data.features.encoders import has_node_attributes, has_node_categories, has_node_labels
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError, check_name
from sopool.models.config import RANDOM, BlockReadout, DropoutOn, Head, ModelConfig, Setting
from sopool.models.flat import readout_widths
from sopool.models.make import make_model
from sopool.models.network import network_of
from sopool.models.stackable import check_stackable, first_line
from sopool.models.systems import TrainedSystem
from sopool.nn.aggr.normalize import DIVIDED
from sopool.nn.aggr.sort import LEAST
from sopool.nn.gnn import VARIANTS
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, READOUTS, default_options, makers, source_of
from sopool.objectives import Task

Preset = Literal["default", "best", "paper", "sagpool"]

FIRST_ORDER = ("sum", "mean", "max")
LEARNED = ("sopool-bimap", "sopool-attn", "sopool-m-attn")
SECOND_ORDER = ("sopool", *LEARNED)
FROZEN = {name + RANDOM: name for name in LEARNED}
"""Controls, in which W, mu or U keep their random initial values and everything else is trained."""
POOLS = (*READOUTS, *GRAPH_READOUTS, "sum-avg", *FROZEN)
"""All names of poolings. ``sum-avg`` is the paper's rule: the sum if nodes have labels or attributes, otherwise the
mean."""
KINDS: dict[Any, tuple[type, str]] = {
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    NoneType: (NoneType, "none"),
}
"""For each type of an option: the accepted type and its name in messages."""
HIERARCHICAL = (*POOLINGS, *(name for name, trained in FROZEN.items() if trained in POOLINGS))


@dataclass(frozen=True)
class Recipe:
    """The architecture and the training hyperparameters of a preset."""

    gnn: str = "gin-0"
    head: Head = "per-block"
    dropout_on: DropoutOn = "embedding"
    sums_dropout_on: DropoutOn = "logits"
    """Where dropout is applied in flat models with a first-order pooling; on the embedding it reduces their accuracy.
    """
    divides: bool = True
    """Whether second-order poolings of flat models divide by the number of nodes where ``sum-avg`` is the mean."""
    bimap: Mapping[str, Any] = field(default_factory=lambda: {"lr_scale": 0.1})
    """Options of ``sopool-bimap``."""
    attention_bias: bool = False
    first_defaults: bool = False
    """Whether poolings in blocks have their first default options: the published results of the preset had them."""
    setting: Setting = field(default_factory=Setting)
    steps: int | None = 50
    """The number of batches per epoch; ``None`` for one pass over the training graphs."""
    halve_every: int = 50
    weight_decay: float = 0.0
    average: float = 0.99
    """The decay of the running mean of the parameters; 0 for no averaging."""
    patience: int | None = None


PRESETS: dict[Preset, Recipe] = {
    "default": Recipe(),
    "best": Recipe(
        bimap={"lr_scale": 0.1, "rank": 16, "normalize": "matrix-sqrt"},
        setting=Setting(dropout=0.0),
    ),
    "paper": Recipe(
        dropout_on="logits", divides=False, bimap={}, attention_bias=True, first_defaults=True, average=0.0
    ),
    "sagpool": Recipe(
        gnn="gcn",
        head="sum-readout",
        sums_dropout_on="embedding",
        bimap={},
        first_defaults=True,
        setting=Setting(hidden=128, batch_size=128, lr=5e-4, dropout=0.5),
        steps=None,
        halve_every=0,
        weight_decay=1e-4,
        average=0.0,
        patience=50,
    ),
}
"""``default``: the recommended model. ``best``: the most accurate variant that was found. ``paper``: the authors' code.
``sagpool``: the hierarchical model, optimizer and early stopping of SAGPool."""


def setting_for(preset: Preset, task: Task = "classification") -> Setting:
    """Return the hyperparameters of a preset for a task.

    A regression has no dropout, which made the errors of sums on held-out molecules larger.

    Args:
        preset: The name of the preset.
        task: What is predicted. Default: ``"classification"``.

    Examples:
        >>> from sopool.models.presets import setting_for
        >>> setting_for("default").dropout, setting_for("default", "regression").dropout
        (0.5, 0.0)
    """
    setting = PRESETS[preset].setting
    return setting._replace(dropout=0.0) if task == "regression" else setting


def model_config(
    store: PackedGraphs,
    gnn: str,
    pool: str,
    preset: Preset = "default",
    blocks: int = 0,
    head: Head | None = None,
    block_readout: BlockReadout = "max-mean",
    options: Mapping[str, Any] = MappingProxyType({}),
    task: Task = "classification",
) -> ModelConfig:
    """Return the configuration of a model for a data set.

    In flat models, first-order poolings score each layer separately and add the scores, as GIN does, with dropout on
    the scores. Other poolings receive the concatenation of all layers, with dropout on the graph embedding. If nodes
    have neither labels nor attributes, second-order poolings divide by the number of nodes. The mapping of
    ``sopool-bimap`` has a reduced learning rate, and ``sopool-pairs`` smaller distances where a data set has too many
    pairs; with ``best`` it also has a lower rank and the matrix square root. The
    preset ``paper`` does none of this, applies dropout to the scores, and has a bias in attentional pooling. In the
    blocks of ``paper`` and ``sagpool``, ``sopool-m-attn`` has ``normalize="adjacency"``.

    Args:
        store: The data set.
        gnn: The message-passing layers.
        pool: The pooling.
        preset: The preset. Default: ``"default"``.
        blocks: The number of blocks of a hierarchical model, 1 to 3. Default: ``0``, for a flat model.
        head: The classifier of a hierarchical model. Default: ``None``, for that of the preset.
        block_readout: How the nodes of a block become a vector. Default: ``"max-mean"``.
        options: Options of the pooling, which override those of the preset.
        task: What is predicted. In a regression, dropout is never applied to the predicted numbers, but to the graph
            embedding. Default: ``"classification"``.

    Examples:
        >>> from sopool.data import load
        >>> config = model_config(load("MUTAG"), "gin-0", "sopool-bimap", options={"rank": 16})
        >>> config.pool_options
        {'lr_scale': 0.1, 'rank': 16}
    """
    recipe = PRESETS[preset]
    check_name("GNN", gnn, VARIANTS)
    check_name("block readout", block_readout, get_args(BlockReadout))
    if not blocks and block_readout != "max-mean":
        raise SettingError(
            f"block_readout={block_readout!r} is for hierarchical models only: set blocks to 1, 2 or 3, or leave it "
            "out."
        )
    pool, frozen = _known(pool, blocks), pool in FROZEN
    if blocks:
        if not 1 <= blocks <= 3:
            raise SettingError(f"blocks={blocks}: a hierarchical model has 1 to 3 blocks.")
        _check_edges(gnn, pool, blocks)
        config = ModelConfig(
            gnn=gnn,
            pool=pool,
            pool_options=dict(options),
            dropout_on=_dropout_place(recipe.dropout_on, task),
            blocks=blocks,
            head=recipe.head if head is None else head,
            block_readout=block_readout,
            frozen=frozen,
            **_carried(store, gnn),
        )
        return _checked(config.with_first_defaults() if recipe.first_defaults else config, options)
    plain = not (has_node_labels(store) or has_node_categories(store) or has_node_attributes(store))
    if pool == "sum-avg":
        pool = "mean" if plain else "sum"
    first_order = pool in FIRST_ORDER
    own: dict[str, Any] = {name: find(store.sizes) for name, find in FITTED.get(pool, {}).items()}
    if pool == "sopool-attn" and recipe.attention_bias:
        own["bias"] = True
    if pool == "sopool-bimap":
        own |= recipe.bimap
    if pool == "sopool-pairs" and not {"distances", "walks"} & set(options):
        own |= _within_budget(store)
    if pool in SECOND_ORDER and recipe.divides and plain:
        own["normalize"] = DIVIDED[own.get("normalize")]
    return _checked(
        ModelConfig(
            gnn=gnn,
            pool=pool,
            pool_options=own | dict(options),
            join="per-layer" if first_order else "concat",
            dropout_on=_dropout_place(recipe.sums_dropout_on if first_order else recipe.dropout_on, task),
            frozen=frozen,
            pool_source=source_of(pool),
            **_carried(store, gnn),
        ),
        options,
    )


OF_EVERY_NETWORK = ("in_channels", "out_channels", "hidden")
"""Arguments of the network of every system, which are no options."""


def system_config(
    store: PackedGraphs, system: str, hidden: int | None = None, options: Mapping[str, Any] = MappingProxyType({})
) -> ModelConfig:
    """Return the configuration of a trained system's network for the graphs that it is trained on.

    Args:
        store: The training graphs.
        system: The name of the system.
        hidden: The width. Default: ``None``, the first one of the system's grid.
        options: Options of the network, which override those of the first setting and those that follow from the
            graphs.

    Raises:
        SettingError: If there is no such system, or its network cannot be made with these options.
        DataError: If the system refuses the graphs.

    Examples:
        >>> from sopool.data import load
        >>> system_config(load("MUTAG"), "dgcnn").pool_options
        {'k': 19}
        >>> system_config(load("MUTAG"), "dgcnn", options={"k": 12}).system_options
        {'k': 12}
    """
    network = network_of(system)
    check_accepted(store, system)
    reads = fields_read(network, store)
    edges = EdgeEncoder("edge_labels" in reads, attributes="edge_attributes" in reads).fit(store) if reads else None
    for name, value in options.items():
        if name in OF_EVERY_NETWORK:
            raise SettingError(
                f"{system} has no option {name}: give the width of its layers as hidden; its numbers of inputs and "
                "outputs follow from the graphs."
            )
        if type(value) not in (bool, int, float, str) or value != value:
            raise SettingError(f"{system} cannot be made with {name}={value!r}: give a number, a text or a boolean.")
    first = network.settings[0]
    found = network.model_for(only_encoded_edges(store, edges))
    config = replace(
        found,
        edge_labels=0 if edges is None else len(edges.values),
        edge_attributes=0 if edges is None else edges.width,
        hidden=first.hidden if hidden is None else hidden,
        system_options=dict(first.options) | dict(options),
        pool_options={name: value for name, value in found.pool_options.items() if name not in options},
    )
    return _checked(config, options)


def fields_read(network: TrainedSystem, store: PackedGraphs) -> set[str]:
    """Return which of ``"edge_labels"`` and ``"edge_attributes"`` of some graphs a network reads."""
    return {name for extra in network.extras.values() for name in extra.reads(store)} if store.num_edges else set()


def check_accepted(store: PackedGraphs, system: str) -> None:
    """Raise ``DataError`` if a trained system refuses graphs, such as those without edge labels."""
    refused = refused_graphs(store, system)
    if refused:
        first, why = next(iter(refused.items()))
        which = f"{len(refused):,} of the graphs of {store.name}, graph {first} first"
        which = store.name if len(refused) == len(store) else which
        raise DataError(f"{system} cannot be used for {which}: {why.rstrip('.')}.")


def refused_graphs(store: PackedGraphs, system: str) -> dict[int, str]:
    """Return why a trained system refuses graphs, by the number of the graph; all of them if none is refused alone."""
    refuses = network_of(system).refuses
    why = refuses(store)
    if not why:
        return {}
    alone = {number: found for number in range(len(store)) if (found := refuses(store[number]))}
    return alone or dict.fromkeys(range(len(store)), why)


def _within_budget(store: PackedGraphs) -> dict[str, int]:
    """Return the largest distance of pairs that a data set has room for, if it is less than the default."""
    wanted = default_options("sopool-pairs", blocks=False)["distances"]
    allowed = affordable(store, wanted, MOST_PAIRS)
    if allowed == wanted:
        return {}
    warnings.warn(
        f"{store.name} has more than {MOST_PAIRS:,} pairs of nodes up to distance {wanted}, so sopool-pairs uses "
        f"distances={allowed}.",
        stacklevel=3,
    )
    return {"distances": allowed}


def _carried(store: PackedGraphs, gnn: str) -> dict[str, Any]:
    """Return the fields of a configuration that say what a network uses of edges and graphs."""
    there = there_of(store)
    labelled = VARIANTS[gnn].labelled
    found: dict[str, Any] = {
        "edge_weights": there["edge weights"],
        "graph_attributes": len(store.graph_attribute_names) if there["graph attributes"] else 0,
    }
    labels, categories, attributes = (labelled and there[kind] for kind in EDGE_KINDS)
    edges = EdgeEncoder(labels, categories, attributes, there["edge weights"])
    if labelled and not any(there[kind] for kind in EDGE_KINDS):
        edges.labels = True  # to be told that there are none
    if edges.fields:
        edges.fit(store)
    return found | {
        "edge_labels": len(edges.values),
        "edge_categories": [len(column.values) for column in edges.columns],
        "edge_attributes": edges.width,
    }


EDGE_KINDS = ("edge labels", "edge categories", "edge attributes")
"""What only some networks use."""


def there_of(store: PackedGraphs) -> dict[str, bool]:
    """Return which features the edges and graphs of a store have."""
    wide = {
        "edge categories": store.edge_categories,
        "edge attributes": store.edge_attributes,
        "graph attributes": store.graph_attributes,
    }
    edges = store.num_edges > 0
    return {
        "edge labels": store.edge_labels is not None,
        "edge weights": store.edge_weights is not None and edges,
        **{kind: given is not None and given.shape[1] > 0 for kind, given in wide.items()},
    }


class UnusedWarning(UserWarning):
    """Warns about features of graphs that a network does not use.

    Examples:
        >>> from sopool.models.presets import UnusedWarning
        >>> issubclass(UnusedWarning, UserWarning)
        True
    """


INSTEAD = "use a network with a pooling, such as gine with sopool-bimap, or remove them"


def unused_messages(store: PackedGraphs, network: str) -> list[str]:
    """Return messages about features of edges and graphs that a network does not use.

    Edge labels are left out: that only ``gine`` uses them is part of its name's meaning, and most molecules have some.

    Args:
        store: The graphs.
        network: The message-passing layers, or the name of a trained system.
    """
    there = there_of(store)
    if network not in VARIANTS:
        read = fields_read(network_of(network), store)
        left = [kind for kind in there if there[kind] and kind != "edge labels" and kind.replace(" ", "_") not in read]
        return [f"{network} does not use {' and '.join(left)}: {INSTEAD}."] if left else []
    gnn = network
    left = [] if VARIANTS[gnn].labelled else [kind for kind in EDGE_KINDS[1:] if there[kind]]
    return [f"{gnn} does not use {' and '.join(left)}: use gine, or remove them."] if left else []


def edges_used(config: ModelConfig) -> tuple[bool, bool, bool, bool]:
    """Return whether a model uses labels, categories, attributes and weights of edges."""
    return config.edge_labels > 0, bool(config.edge_categories), config.edge_attributes > 0, config.edge_weights


def edge_encoder_for(used: tuple[bool, bool, bool, bool]) -> EdgeEncoder | None:
    """Return the encoder, not fitted yet, of what a model uses of edges; None if it uses nothing."""
    return EdgeEncoder(*used) if any(used) else None


def _dropout_place(usual: DropoutOn, task: Task) -> DropoutOn:
    """Return where dropout is applied: on numbers it would change their size, which is what is learned."""
    return "embedding" if task == "regression" else usual


def share_options(pools: Sequence[str], blocks: int, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options that each pooling has; raise a ``SettingError`` for an option that none of them has."""
    has = {pool: options_of(pool, blocks) for pool in pools}
    for name in options:
        if not any(name in own for own in has.values()):
            each = "; ".join(f"{pool} has {', '.join(own) or 'none'}" for pool, own in has.items())
            raise SettingError(
                f"none of the poolings given has the option {name}={options[name]}. Their options: {each}."
            )
    return {pool: {name: value for name, value in options.items() if name in has[pool]} for pool in pools}


def options_of(pool: str, blocks: int = 0) -> list[str]:
    """Return the names of the options of a pooling."""
    return list(_declared(pool, blocks))


def _declared(pool: str, blocks: int) -> dict[str, Any]:
    """Return the options of a pooling with their type annotations."""
    trained = _known(pool, blocks)
    if trained == "sum-avg":
        return {}
    options = inspect.signature(makers(bool(blocks))[trained]).parameters
    return {name: one.annotation for name, one in options.items() if name != "channels"}


def _declared_by(config: ModelConfig) -> dict[str, Any]:
    """Return the options of a model's pooling, or of a system's network, with their type annotations."""
    if not config.system:
        return _declared(config.pool, config.blocks)
    return {name: one.annotation for name, one in inspect.signature(network_of(config.system).make).parameters.items()}


def _known(pool: str, blocks: int) -> str:
    """Return the name of the pooling without ``-random``; raise a ``SettingError`` if it is unknown."""
    added = [name for name in READOUTS if name not in POOLS]  # registered by the user
    if blocks and pool == "sopool-pairs":
        raise SettingError(
            "sopool-pairs is a readout and returns no smaller graphs: choose a pooling for the blocks, such as "
            "topkpool, with block_readout='sopool-pairs' for the last one."
        )
    check_name("hierarchical pooling" if blocks else "pooling", pool, HIERARCHICAL if blocks else (*POOLS, *added))
    return FROZEN.get(pool, pool)


def check_config(config: ModelConfig) -> None:
    """Raise a ``DataError`` if no model can be created from a configuration, for example one from a file."""
    try:
        if config.blocks:
            _check_edges(config.gnn, config.pool, config.blocks)
        _checked(config, config.system_options if config.system else config.effective_options)
    except SettingError as error:
        raise DataError(str(error)) from error


def _checked(config: ModelConfig, options: Mapping[str, Any]) -> ModelConfig:
    """Return the configuration; raise a ``SettingError`` if no model can be created with these ``options``."""
    try:
        _check_kinds(options, _declared_by(config))
        with planning():
            make_model(config, 2, 2)
    except (RuntimeError, TypeError, ValueError) as error:
        if config.system and isinstance(error, SettingError):
            raise  # it says the same
        given = ", ".join(f"{name}={value}" for name, value in options.items()) or "no options"
        raise SettingError(f"{config.pool_name} cannot be made with {given}: {first_line(error)}") from error
    if config.pool in READOUTS and not config.blocks:
        check_stackable(config.pool, readout_widths(config, 2)[-1], config.effective_options)
    return config


def _check_kinds(options: Mapping[str, Any], declared: Mapping[str, Any]) -> None:
    """Raise a ``TypeError`` for an option of the wrong type, such as a string in place of a number."""
    for name, value in options.items():
        told = declared.get(name)
        kinds = get_args(told) if get_origin(told) in (Union, UnionType) else (told,)
        if not KINDS.keys() >= set(kinds):
            continue
        fits = (isinstance(value, KINDS[kind][0]) for kind in kinds)
        if not (bool in kinds if isinstance(value, bool) else any(fits)):  # True is an int in Python
            raise TypeError(f"{name} must be {' or '.join(KINDS[kind][1] for kind in kinds)}.")


def sort_size(sizes: Tensor) -> int:
    """Return SortPool's k as in DGCNN: the size that 60 % of the graphs do not exceed, but at least 10."""
    ordered = sizes.sort().values
    return max(LEAST, int(ordered[math.ceil(0.6 * len(ordered)) - 1]) if len(ordered) else LEAST)


FITTED: dict[str, dict[str, Callable[[Tensor], Any]]] = {"sortpool": {"k": sort_size}}
"""Functions that compute options from the sizes of the training graphs, by the names of the pooling and the option.
They are computed for each fold, unless the user sets them."""


def fit_options(config: ModelConfig, sizes: Callable[[], Tensor], given: Collection[str]) -> ModelConfig:
    """Return the configuration with the options of :data:`FITTED` for these sizes, except those that were ``given``."""
    found = {name: find(sizes()) for name, find in FITTED.get(config.pool, {}).items() if name not in given}
    return replace(config, pool_options=config.pool_options | found) if found else config


def fitted_options(config: ModelConfig) -> dict[str, Any]:
    """Return the values of the options of :data:`FITTED`, computed or given."""
    return {name: config.pool_options.get(name) for name in FITTED.get(config.pool, {})}


def without_fitted(config: ModelConfig) -> ModelConfig:
    """Return the configuration without the options that may differ from fold to fold.

    These are the options of :data:`FITTED`, and all of a system's pooling.
    """
    fitted = config.pool_options if config.system else FITTED.get(config.pool, {})
    options = {name: value for name, value in config.pool_options.items() if name not in fitted}
    return replace(config, pool_options=options)


def _check_edges(gnn: str, pool: str, blocks: int) -> None:
    """Raise a ``SettingError`` if the GNN cannot process pooled graphs, which have weights but no edge labels."""
    if VARIANTS[gnn].labelled:
        raise SettingError(
            f"{gnn} uses edge labels, and the smaller graphs of a hierarchy have none. "
            "Use another GNN, such as gin-0 or gcn, or a flat model (blocks=0)."
        )
    if blocks > 1 and pool in ("sopool-m-attn", "diffpool") and VARIANTS[gnn].how == "max":
        raise SettingError(
            f"{gnn} takes the maximum over neighbors, which is not defined for the weighted edges that {pool} returns. "
            "Use a GNN that sums or averages, such as gin-0 or gcn, or blocks=1."
        )
