"""The registry of fixed systems, which are no networks, beside that of trained ones.

A *fixed* system is a function from graphs to features or to a kernel, and a learner (:mod:`.learners`) with one
strength. Its file in ``systems/fixed/`` holds nothing but the function and the decorator :func:`fixed`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from sopool.data.graphs import PackedGraphs
from sopool.errors import SettingError
from sopool.experiments.systems.learners import LEARNERS, Learner
from sopool.experiments.systems.views import Choice, FixedView, Gram, Represented, View, Views
from sopool.models.config import ModelConfig
from sopool.models.systems.registry import OWN, SYSTEMS, Refuses, System, accepts_all, check_settings
from sopool.objectives import Task

FRAMEWORK = ("normalised", "learner")
"""Names in the settings of a fixed system that its function is not called with."""

Represent = Callable[..., Any]
"""A function ``f(store, **setting)`` that returns features ``[G, F]``, dense or sparse, or a :class:`Gram`; with an
argument ``seed`` if it draws random numbers."""
F = TypeVar("F", bound=Represent)


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
    check_settings(name, every)
    _check_learners(name, learner, every)

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


def _check_learners(name: str, learner: str, settings: Sequence[Choice]) -> None:
    """Raise ``SettingError`` unless the learners of all settings have the strength of the usual one."""
    for setting in settings:
        own = setting.get("learner", learner)
        if own not in LEARNERS or LEARNERS[own].strength != LEARNERS[learner].strength:
            raise SettingError(
                f"a setting of {name} has the learner {own!r}, expected one with the strength of {learner}."
            )


def representation_seed(seed: int, repeat: int) -> int:
    """Return the 32-bit seed of a representation, which all folds share."""
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])
