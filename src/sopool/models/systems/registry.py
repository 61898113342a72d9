"""The registry of systems: what a network is compared with, each in one short file.

A *trained* system is a network with its own recipe. Its file in :mod:`sopool.models.systems.networks` holds nothing but
the network and the decorator :func:`trained`. *Fixed* systems are those of :mod:`sopool.experiments.systems`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

import torch

from sopool.data.extras import Extra
from sopool.data.graphs import PackedGraphs
from sopool.errors import SettingError
from sopool.models.config import ModelConfig, Setting
from sopool.models.systems.recipe import Recipe
from sopool.nn.registry import hash_of_source
from sopool.objectives import Task

OWN = "your own"
USUAL = Recipe()
"""The recipe of systems that name none."""
FINAL_RUNS = 3
"""The number of final runs of each fold under ``fair`` of whatever depends on a random seed."""
SCALARS = (bool, int, float, str)

Refuses = Callable[[PackedGraphs], str | None]
"""A function that says why a system cannot be evaluated on some graphs; None if it can."""
Fitted = Mapping[str, Callable[[PackedGraphs], Any]]
"""Functions from the training graphs of a fold to options of a network, by name."""
M = TypeVar("M", bound=Callable[..., torch.nn.Module])


def accepts_all(store: PackedGraphs) -> str | None:
    """Refuse no graphs."""
    return None


@dataclass(frozen=True)
class System:
    """What every system says of itself."""

    name: str
    """The name for the command line and configurations."""
    sees: str
    """What it uses of a graph, in a few words."""
    paper: str = OWN
    """The source."""
    version: int = 1
    """Part of the keys of its runs; increased when the same graphs may give another result."""
    chance: bool = False
    """Whether its result depends on a random seed, so that ``fair`` averages several final runs."""
    transductive: bool = False
    """Whether the representation of a graph depends on the other graphs, test graphs included (never on labels)."""
    cost: str = "-"
    """The number of steps, up to a constant factor."""
    refuses: Refuses = accepts_all
    """Says why it cannot be evaluated on some graphs; None if it can."""
    control: bool = False
    """Whether ``sopool controls`` runs it by default."""

    kind: ClassVar[Literal["fixed", "trained"]]

    @property
    def final_runs(self) -> int:
        """The number of final runs of each fold under ``fair``: several only if they differ."""
        return FINAL_RUNS if self.chance else 1

    def _version(self, made: Callable[..., Any]) -> str:
        """Return the version, with a hash of the source code unless it is of this package."""
        own = str(made.__module__).partition(".")[0] != "sopool"
        return f"{self.version} {hash_of_source(made)}" if own else str(self.version)

    def seen_for(self, task: Task) -> str:
        """Return what it uses of a graph, and its model, for a task."""
        return self.sees

    def to_json(self) -> dict[str, Any]:
        """Return the description as a JSON object."""
        return {
            "name": self.name,
            "kind": self.kind,
            "sees": self.seen_for("classification"),
            "paper": self.paper,
            "version": self.version,
            "chance": self.chance,
            "transductive": self.transductive,
            "cost": self.cost,
            "control": self.control,
        }


@dataclass(frozen=True)
class TrainedSystem(System):
    """A network with its own recipe, trained as those of poolings are.

    Examples:
        >>> from sopool.experiments.systems import SYSTEMS
        >>> [setting.hidden for setting in SYSTEMS["mlp"].settings]
        [32, 128]
    """

    make: Callable[..., torch.nn.Module] = field(kw_only=True)
    """The function of ``in_channels``, ``out_channels``, ``hidden`` and options that creates it."""
    recipe: Recipe = field(kw_only=True)
    """How it is trained."""
    settings: tuple[Setting, ...] = field(kw_only=True)
    """The hyperparameters to choose from."""
    fitted: Fitted = field(default_factory=dict, kw_only=True)
    """Options that follow from the training graphs of a fold."""
    extras: Mapping[str, Extra] = field(default_factory=dict, kw_only=True)
    """What is computed of graphs in advance, by the names of arguments of its ``forward``."""

    kind = "trained"

    @property
    def model(self) -> ModelConfig:
        """What the configurations of its runs say of it."""
        version = " ".join([self._version(self.make), *(f"{name}={one.key}" for name, one in self.extras.items())])
        return ModelConfig(pool="", system=self.name, system_version=version)

    def model_for(self, train: PackedGraphs) -> ModelConfig:
        """Return :attr:`model` with the options that follow from training graphs.

        They are kept apart from a setting, which all folds share, among the options of the pooling.
        """
        found = {name: find(train) for name, find in self.fitted.items()}
        for name, value in found.items():
            if type(value) not in SCALARS or value != value:
                raise SettingError(
                    f"the fitted option {name} of {self.name} is {value!r}, expected a number, text or boolean of "
                    "Python, such as int(train.sizes.max())."
                )
        return replace(self.model, pool_options=found)

    def training(self, graphs: int, batch_size: int) -> dict[str, Any]:
        """Return how the recipe trains on a number of graphs, as fields of a run's configuration."""
        found = asdict(self.recipe)
        del found["batch_size"], found["lr"]  # those of a setting
        return found | {"steps": self.recipe.steps or -(-graphs // batch_size)}

    def to_json(self) -> dict[str, Any]:
        """Return the description as a JSON object, with the recipe, the settings and the names of fitted options."""
        return super().to_json() | {
            "recipe": asdict(self.recipe),
            "settings": [setting.to_json() for setting in self.settings],
            "fitted": list(self.fitted),
            "extras": {name: extra.key for name, extra in self.extras.items()},
        }


SYSTEMS: dict[str, System] = {}
"""The systems by name: first the controls, ordered by how much of a graph they use, then the others by name.

Examples:
    >>> from sopool.experiments.systems import SYSTEMS
    >>> list(SYSTEMS)[:4]
    ['majority', 'size', 'histogram', 'wl']
"""


def trained(
    name: str,
    *,
    sees: str,
    recipe: Recipe = USUAL,
    grid: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    fitted: Fitted = MappingProxyType({}),
    extras: Mapping[str, Extra] = MappingProxyType({}),
    paper: str = OWN,
    version: int = 1,
    cost: str = "-",
    refuses: Refuses = accepts_all,
) -> Callable[[M], M]:
    """Register a class of networks, with ``forward(x, edge_index, batch)`` as in PyG, as a trained system.

    A network is created as ``Class(in_channels, out_channels, hidden=..., **options)`` and returns the scores of each
    graph. It gets the node features that networks of this package get. Initial weights and random numbers in training
    follow from the seed of a run. Networks of several folds and settings are trained side by side, one after the other
    in each step.

    Args:
        name: The name for the command line and configurations.
        sees: What it uses of a graph, in a few words.
        recipe: How it is trained. Default: 350 epochs of 50 batches of 32 graphs, at a learning rate of 0.01.
        grid: The values to choose from: of ``hidden``, ``batch_size``, ``lr``, or of options of the class. Default:
            ``hidden`` is 32.
        fitted: Functions that compute options of the class in each fold, by name, from its training graphs, a
            :class:`~sopool.data.PackedGraphs`. Default: none.
        extras: What the network needs of graphs besides their edges and is computed once for a data set, such as
            ``{"labels": EdgeLabels()}``. The part of each batch is the argument of this name:
            ``forward(x, edge_index, batch, labels)``, see :class:`sopool.data.extras.Extra`. Default: nothing.
        paper: The source. Default: ``"your own"``.
        version: To be increased when the same graphs may give another result. Default: 1.
        cost: The number of steps, up to a constant factor. Default: ``"-"``.
        refuses: A function that says why some graphs cannot be evaluated; ``None`` if they can. Default: none are
            refused.

    Examples:
        >>> import torch
        >>> from torch_geometric.nn import GCNConv, global_mean_pool
        >>> from sopool.experiments.systems import SYSTEMS, Recipe, trained
        >>> @trained("tiny", sees="neighbors", recipe=Recipe(epochs=100, lr=0.001), grid={"hidden": (8, 16)})
        ... class Tiny(torch.nn.Module):
        ...     def __init__(self, in_channels, out_channels, hidden):
        ...         super().__init__()
        ...         self.conv = GCNConv(in_channels, hidden)
        ...         self.head = torch.nn.Linear(hidden, out_channels)
        ...
        ...     def forward(self, x, edge_index, batch):
        ...         return self.head(global_mean_pool(self.conv(x, edge_index).relu(), batch))
        >>> SYSTEMS["tiny"].settings[0]
        Setting(hidden=8, batch_size=32, lr=0.001, dropout=0.0)
        >>> del SYSTEMS["tiny"]  # remove it again
    """

    def register(make: M) -> M:
        SYSTEMS[name] = TrainedSystem(
            name=name,
            sees=sees,
            paper=paper,
            version=version,
            chance=True,
            cost=cost,
            refuses=refuses,
            make=make,
            recipe=recipe,
            settings=_every_setting(name, recipe, grid),
            fitted=fitted,
            extras=extras,
        )
        return make

    return register


def _every_setting(name: str, recipe: Recipe, grid: Mapping[str, Sequence[Any]]) -> tuple[Setting, ...]:
    """Return all combinations of the values of a grid."""
    settings = []
    for values in product(*grid.values()):
        given = dict(zip(grid, values, strict=True))
        hidden = given.pop("hidden", 32)
        batch_size = given.pop("batch_size", recipe.batch_size)
        lr = given.pop("lr", recipe.lr)
        settings.append(Setting(hidden, batch_size, lr, 0.0, tuple(given.items())))
    check_settings(name, [setting.to_json() for setting in settings])
    return tuple(settings)


def check_settings(name: str, settings: Sequence[Mapping[str, Any]]) -> None:
    """Raise ``SettingError`` unless the name is free and the settings of a system are different ones, of scalars."""
    from sopool.models.presets import HIERARCHICAL, POOLS  # imported here because it imports this module

    if name in (*POOLS, *HIERARCHICAL):
        raise SettingError(f"{name} is the name of a pooling, so that nobody could ask for it. Choose another name.")
    if len({tuple(sorted(setting.items())) for setting in settings}) < len(settings) or not settings:
        raise SettingError(f"the settings of {name} are equal or missing; expected one or several different ones.")
    for setting in settings:
        if any(type(value) not in SCALARS or value != value for value in setting.values()):
            raise SettingError(f"a setting of {name} is {setting}, expected numbers, texts or booleans as values.")
