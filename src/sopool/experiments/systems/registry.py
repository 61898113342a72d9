"""The registry of systems: what a network is compared with, each in one short file.

A *fixed* system is a function from graphs to features or to a kernel, and a learner (:mod:`.learners`) with one
strength. Its file in ``systems/fixed/`` holds nothing but the function and the decorator :func:`fixed`.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar, get_args

import numpy as np
import torch

from sopool.data.extras import Extra
from sopool.data.graphs import PackedGraphs
from sopool.errors import SettingError
from sopool.experiments.systems.learners import LEARNERS, Learner
from sopool.experiments.systems.views import Choice, FixedView, Gram, Represented, View, Views
from sopool.models.config import ModelConfig, Setting
from sopool.models.network import NETWORKS
from sopool.models.presets import HIERARCHICAL, POOLS
from sopool.nn.registry import hash_of_source
from sopool.objectives import Task
from sopool.training.runs.config import WITH_MOMENTUM, OptimizerName

OWN = "your own"
FINAL_RUNS = 3
"""The number of final runs of each fold under ``fair`` of whatever depends on a random seed."""
FRAMEWORK = ("normalised", "learner")
"""Names in the settings of a fixed system that its function is not called with."""
SCALARS = (bool, int, float, str)

Refuses = Callable[[PackedGraphs], str | None]
"""A function that says why a system cannot be evaluated on some graphs; None if it can."""
Represent = Callable[..., Any]
"""A function ``f(store, **setting)`` that returns features ``[G, F]``, dense or sparse, or a :class:`Gram`; with an
argument ``seed`` if it draws random numbers."""
F = TypeVar("F", bound=Represent)
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
class FixedSystem(System):
    """A representation of graphs and a learner with one strength.

    Examples:
        >>> from sopool.experiments.systems import SYSTEMS
        >>> SYSTEMS["size"].seen_for("classification")
        'the numbers of nodes and edges; logistic regression'
        >>> SYSTEMS["wl"].path
        (0.1, 1.0, 10.0, 100.0)
    """

    represent: Represent = field(kw_only=True)
    """The function from graphs to features or to a kernel."""
    learner: str = field(kw_only=True)
    """The name of the learner of settings that do not name one."""
    settings: tuple[Choice, ...] = field(kw_only=True)
    """The hyperparameters to choose from, best first where scores are equal."""
    path: tuple[float, ...] = field(kw_only=True)
    """The strengths of the learner."""

    kind = "fixed"

    def seen_for(self, task: Task) -> str:
        """Return what it uses of a graph, and its model, for a task."""
        return self.sees + LEARNERS[self.learner].said[task]

    def to_json(self) -> dict[str, Any]:
        """Return the description as a JSON object, with the settings and the path."""
        return super().to_json() | {
            "learner": self.learner,
            "settings": [dict(setting) for setting in self.settings],
            "path": list(self.path) if self.strength else [],
        }

    @property
    def model(self) -> ModelConfig:
        """What the configurations of its runs say of it."""
        return ModelConfig(pool="", system=self.name, system_version=self._version(self.represent))

    @property
    def strength(self) -> str:
        """The name of the strength; empty if the learner has none."""
        return LEARNERS[self.learner].strength

    def represented(self, store: PackedGraphs, setting: Mapping[str, Any], seed: int = 0) -> Represented:
        """Return the graphs in the representation of a setting."""
        given = self.representation(setting)
        seeded = {"seed": seed} if "seed" in inspect.signature(self.represent).parameters else {}
        found = self.represent(store, **given, **seeded)
        shape = found.matrix.shape if isinstance(found, Gram) else found.shape
        expected = (len(store), len(store)) if isinstance(found, Gram) else (len(store), *shape[1:2])
        if shape != expected:
            raise ValueError(
                f"{self.name} returned shape {list(shape)} for {len(store)} graphs; expected features [G, F] or "
                "Gram([G, G])."
            )
        return Represented(found)

    def representation(self, setting: Mapping[str, Any]) -> Choice:
        """Return the part of a setting that the representation depends on."""
        model = self._learner(setting)
        return {name: value for name, value in setting.items() if name not in (*FRAMEWORK, *model.options)}

    def view(self, graphs: Represented, setting: Mapping[str, Any], seed: int = 0) -> FixedView:
        """Return a representation at one of the settings, with its learner."""
        model = self._learner(setting)
        options = {name: setting[name] for name in model.options if name in setting}
        normalised = bool(setting.get("normalised", False))
        return FixedView(graphs, model, self.path, dict(setting), normalised, options, seed)

    def views(self, store: PackedGraphs, seed: int = 0) -> Views:
        """Return the views of all settings, of which only one representation is in memory at a time."""
        return _EveryView(self, store, seed)

    def _learner(self, setting: Mapping[str, Any]) -> Learner:
        return LEARNERS[setting.get("learner", self.learner)]


@dataclass(frozen=True)
class _EveryView:
    """The views of a system, made again at each iteration."""

    system: FixedSystem
    store: PackedGraphs
    seed: int

    def __iter__(self) -> Iterator[View]:
        known: Choice | None = None
        for setting in self.system.settings:
            if self.system.representation(setting) != known:
                known = self.system.representation(setting)
                graphs = self.system.represented(self.store, setting, self.seed)
            yield self.system.view(graphs, setting, self.seed)


@dataclass(frozen=True)
class Recipe:
    """How a network is trained."""

    epochs: int = 350
    """The number of epochs; a request with fewer trains fewer."""
    steps: int | None = 50
    """Batches per epoch; None: one pass over the training graphs."""
    batch_size: int = 32
    """Graphs per batch."""
    lr: float = 0.01
    """The initial learning rate."""
    halve_every: int = 0
    """The learning rate is halved every so many epochs; 0 keeps it constant."""
    weight_decay: float = 0.0
    """The L2 penalty."""
    average: float = 0.0
    """The decay of the running mean of the parameters that models are scored with; 0 turns averaging off."""
    patience: int | None = None
    """The number of epochs without improvement on the held-out graphs after which no later epoch is chosen."""
    optimizer: OptimizerName = "adam"
    """The optimizer: ``"adam"``, ``"sgd"``, ``"rmsprop"`` or ``"adagrad"``, with the constants of ``torch.optim``."""
    momentum: float = 0.0
    """The momentum of ``"sgd"`` and ``"rmsprop"``."""
    clip: float = 0.0
    """The largest norm of a network's gradient; a longer one is scaled down. 0 turns clipping off."""

    def __post_init__(self) -> None:
        if self.optimizer not in get_args(OptimizerName):
            expected = ", ".join(get_args(OptimizerName))
            raise SettingError(f"there is no optimizer {self.optimizer!r}, expected one of: {expected}.")
        allowed = self.optimizer in WITH_MOMENTUM
        if not (0 <= self.momentum < 1 if allowed else self.momentum == 0):
            expected = "a number from 0 and below 1" if allowed else f"0: {self.optimizer} has none"
            raise SettingError(f"momentum is {self.momentum!r}, expected {expected}.")
        if not 0 <= self.clip < math.inf:
            raise SettingError(f"clip is {self.clip!r}, expected a norm, or 0 to turn clipping off.")


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


def fixed(
    name: str,
    *,
    sees: str,
    learner: str = "svm",
    settings: Sequence[Mapping[str, Any]] = ({},),
    strengths: Sequence[float] | None = None,
    normalize: Literal["none", "cosine", "either"] = "none",
    paper: str = OWN,
    version: int = 1,
    transductive: bool = False,
    cost: str = "-",
    refuses: Refuses = accepts_all,
    control: bool = False,
) -> Callable[[F], F]:
    """Register a function from graphs to features or to a kernel as a fixed system.

    The function is called as ``f(store, **setting)``, with ``seed=...`` as well if it has this argument; then the
    system counts as random, and ``fair`` averages three final runs of different seeds. It returns features ``[G, F]``
    as a NumPy array or a SciPy sparse array, or ``Gram(matrix)`` with the kernel ``[G, G]`` of all pairs. It must not
    use labels of graphs or targets.

    Args:
        name: The name for the command line and configurations.
        sees: What it uses of a graph, in a few words; the learner is appended.
        learner: What learns from the representation: ``"logistic"``, ``"linear-svm"``, ``"svm"`` (on the kernel, or on
            the inner products of features), ``"svm-rbf"`` (with ``"width"`` in the settings), ``"forest"``,
            ``"boosting"``; regressions use their counterparts. A setting may have its own under ``"learner"``, with the
            same kind of strength. Default: ``"svm"``.
        settings: The arguments of the function to choose from, of scalar values. Default: a single empty setting.
        strengths: The regularization path, to choose from as epochs of a network. Default: ``None``, the learner's.
        normalize: ``"cosine"`` divides the kernel of two graphs by the root of the product of those with themselves;
            ``"either"`` makes it part of the settings; ``"none"`` leaves it. Default: ``"none"``.
        paper: The source. Default: ``"your own"``.
        version: To be increased when the same graphs may give another result. Default: 1.
        transductive: Whether the representation of a graph depends on other graphs. Default: ``False``.
        cost: The number of steps, up to a constant factor. Default: ``"-"``.
        refuses: A function that says why some graphs cannot be evaluated, e.g. ``"needs edge labels"``; ``None`` if
            they can. Default: none are refused.
        control: Whether ``sopool controls`` runs it by default. Default: ``False``.

    Examples:
        >>> import numpy as np
        >>> from sopool.data import load
        >>> from sopool.experiments.systems import SYSTEMS, fixed, run_control
        >>> roots = [{"root": False}, {"root": True}]
        >>> @fixed("density", learner="logistic", sees="edges per possible edge", settings=roots)
        ... def density(store, root):
        ...     nodes = store.sizes.numpy()
        ...     share = store.edge_ptr.diff().numpy() / np.maximum(nodes * (nodes - 1), 1)
        ...     return np.sqrt(share)[:, None] if root else share[:, None]
        >>> result = run_control("density", load("MUTAG"), folds=3)
        >>> result.outcome.mean > 0.75, result.settings[0].keys()
        (True, dict_keys(['root', 'C']))
        >>> del SYSTEMS["density"]  # remove it again
    """
    if learner not in LEARNERS:
        raise SettingError(f"there is no learner {learner!r}, expected one of: {', '.join(LEARNERS)}.")
    every = tuple(dict(setting) for setting in settings)
    if normalize == "either":
        every = tuple(setting | {"normalised": value} for setting in every for value in (True, False))
    elif normalize == "cosine":
        every = tuple({"normalised": True} | setting for setting in every)
    _check_settings(name, learner, every)

    def register(function: F) -> F:
        SYSTEMS[name] = FixedSystem(
            name=name,
            sees=sees,
            paper=paper,
            version=version,
            chance=LEARNERS[learner].chance or "seed" in inspect.signature(function).parameters,
            transductive=transductive,
            cost=cost,
            refuses=refuses,
            control=control,
            represent=function,
            learner=learner,
            settings=every,
            path=tuple(strengths or LEARNERS[learner].strengths),
        )
        return function

    return register


def trained(
    name: str,
    *,
    sees: str,
    recipe: Recipe = Recipe(),
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
        SYSTEMS[name] = NETWORKS[name] = TrainedSystem(
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
    _check_settings(name, "svm", [setting.to_json() for setting in settings])
    return tuple(settings)


def _check_settings(name: str, learner: str, settings: Sequence[Choice]) -> None:
    if name in (*POOLS, *HIERARCHICAL):
        raise SettingError(f"{name} is the name of a pooling, so that nobody could ask for it. Choose another name.")
    if len({tuple(sorted(setting.items())) for setting in settings}) < len(settings) or not settings:
        raise SettingError(f"the settings of {name} are equal or missing; expected one or several different ones.")
    for setting in settings:
        own = setting.get("learner", learner)
        if own not in LEARNERS or LEARNERS[own].strength != LEARNERS[learner].strength:
            raise SettingError(
                f"a setting of {name} has the learner {own!r}, expected one with the strength of {learner}."
            )
        if any(type(value) not in SCALARS or value != value for value in setting.values()):
            raise SettingError(f"a setting of {name} is {setting}, expected numbers, texts or booleans as values.")


def representation_seed(seed: int, repeat: int) -> int:
    """Return the 32-bit seed of a representation, which all folds share."""
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])
