"""Define what ``GraphClassifier`` and ``GraphRegressor`` share."""

import copy
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sopool._runtime.devices import choose_device
from sopool._runtime.threads import threads
from sopool.data.features.edge_features import EdgeEncoder
from sopool.data.features.encoder import Encoder
from sopool.data.features.encoders import default_encoder
from sopool.data.features.graph_attributes import GraphAttributeEncoder
from sopool.data.features.node_features import NodeFeatures
from sopool.data.formats.molecule_features import needed_features
from sopool.data.formats.rows import TrainingColumns
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError, SettingError
from sopool.estimator.ensemble import Ensemble, check_finite, for_extras, training_tables
from sopool.estimator.fitting import FitProgress, fit_ensemble, model_for, run_configs, training_facts, training_of
from sopool.estimator.seen_graphs import SeenGraphs
from sopool.estimator.truth import KnownGraphs, Predicts, known_graphs, match_targets, sample_weights
from sopool.estimator.validation import (
    SingleGraphWarning,
    UnseenWarning,
    as_store,
    at_least,
    check_setting,
    check_settings,
    codes_of,
    empty_messages,
    foreign_message,
    single_messages,
    unknown_messages,
)
from sopool.models.config import ModelConfig
from sopool.models.explain.explanation import AnyExplanation
from sopool.models.presets import UnusedWarning, check_accepted, edge_encoder_for, edges_used, unused_messages
from sopool.objectives import Combined, Objective
from sopool.objectives.choose import check_metric

Own = TypeVar("Own", bound="GraphEstimator")


@dataclass(eq=False, repr=False)
class GraphEstimator(TransformerMixin, BaseEstimator):
    """An ensemble of graph neural networks with second-order pooling, as a scikit-learn estimator.

    This is the base class of :class:`GraphClassifier` and :class:`GraphRegressor`. Graphs are given as a
    :class:`~sopool.data.PackedGraphs`, or as a list of PyG ``Data``, NetworkX graphs or SMILES strings. All models of
    the ensemble are trained at the same time.

    Args:
        pool: The pooling that turns node vectors into a graph vector, one of the names that ``sopool pools`` lists.
            Default: ``"sopool-bimap"``. If nodes have neither labels nor attributes, second-order poolings divide by
            the number of nodes. The mapping of ``sopool-bimap`` has a reduced learning rate.
        pool_options: Options of the pooling, such as ``{"rank": 16}``. Default: None, the pooling's defaults.
        gnn: The message-passing layers, such as ``"gin-0"`` (default), ``"gcn"`` or ``"graphsage"``; ``"gine"`` also
            uses labels (the bonds of molecules), categories and attributes of edges. All use the weights of edges.
        hidden: The width of the message-passing layers. None (default): 32.
        layers: The number of message-passing layers. Default: 4.
        blocks: The number of blocks of a hierarchical model, 1 to 3; 0 (default) pools once, after the last layer.
        system: The name of a trained system, such as ``"dgcnn"``, whose network takes the place of layers and pooling;
            ``sopool systems`` lists them. Its recipe then says how to train: of ``hidden``, ``epochs``, ``steps``,
            ``batch_size``, ``lr``, ``weight_decay``, ``average`` and ``patience``, those that you leave at their
            defaults are the recipe's, without the rule for many graphs. Default: None.
        system_options: Options of the system's network, such as ``{"k": 20}``. Default: None, the first values of its
            grid, and what follows from the training graphs.
        n_models: The number of models in the ensemble, whose predictions are averaged. Each starts from its own weights
            and holds out its own graphs. Default: 5.
        epochs: The largest number of epochs. None (default): 100 for up to 6,400 graphs, for more fewer in proportion
            to the square root of their number, such as 50 for 25,600 graphs.
        steps: Batches per epoch. None (default): one pass over the graphs, but at least 10 batches.
        batch_size: Graphs per batch. None (default): 32.
        lr: The learning rate of Adam, which is halved every 50 epochs, for more than 6,400 graphs earlier in proportion
            to the default of ``epochs``. None (default): 0.01.
        dropout: The dropout rate of the graph vector (of the scores, for first-order poolings of a classifier).
            Default: 0.5.
        weight_decay: The L2 penalty. If it is not zero, ``sopool-bimap`` uses ``lr_scale=1`` unless you set it.
            None (default): 0.
        average: The decay of the running mean of parameters and batch norm statistics. Held-out graphs are scored with
            this mean, and it is what is kept. None (default): 0.99; 0 turns averaging off.
        validation_fraction: The fraction of the graphs that each model holds out to choose its best epoch. With 0 it is
            trained on all graphs and the last epoch is kept. The only graph of a class is never held out, with a
            :class:`SingleGraphWarning`. Default: 0.1.
        patience: Epochs without improvement after which a model stops. ``"auto"`` (default): 30, for more than 6,400
            graphs fewer in proportion to the default of ``epochs``. None never stops early.
        encoder: How nodes become features, such as ``DegreeEncoder()``. None (default): node labels and attributes
            where graphs have them, degrees otherwise.
        device: ``"auto"`` (default), ``"cpu"`` or ``"cuda"``.
        random_state: A seed that makes results repeatable, in any thread. None (default) draws a new seed for each fit.
        callback: A function that is called with a :class:`FitProgress` after each epoch. Default: None.
        checkpoints: A folder in which ``fit`` saves its state as it trains, so that an interrupted fit with the same
            graphs and settings, and a ``random_state``, continues with the same results when it is run again. The
            folder may be shared by many fits, such as those of a search; delete it when they are done. Default: None.
        metric: The name of the metric by which each model chooses its best epoch, and a search its settings; one of
            :data:`sopool.objectives.METRICS`. Default: None, ``"accuracy"`` for classes, ``"roc_auc"`` for several
            labels, and ``"rmse"`` for numbers (``"mae"`` unless the loss is squared).

    Attributes:
        objective_: What is predicted, with its loss and its metrics.
        target_names_: The names of the targets; empty if one class is predicted.
        encoder_: The fitted encoder.
        edge_encoder_: The fitted encoder of what the GNN uses of edges; None if it uses nothing.
        graph_encoder_: The fitted encoder of the attributes of graphs; None if graphs have none.
        config_: The configuration of the models.
        history_: ``loss``, ``validation_loss`` and ``validation_score`` (by the metric), each ``[M, epochs]`` for M
            models; NaN after a model stopped.
        best_epochs_: The epoch that was kept of each model, counted from 0.
        about_: The data, the environment and the settings of the training; ``about_["training"]`` has the numbers that
            stood for None, such as the learning rate.
        seen_graphs_: Hashes of the training graphs, which :meth:`seen_in_training` compares; None in models of earlier
            versions. Set it to None before you save a model that must not reveal whether a graph was among them.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.estimator import GraphClassifier, GraphEstimator, GraphRegressor
        >>> isinstance(GraphClassifier(), GraphEstimator), isinstance(GraphRegressor(), GraphEstimator)
        (True, True)
    """

    pool: str = "sopool-bimap"
    pool_options: Mapping[str, Any] | None = None
    gnn: str = "gin-0"
    hidden: int | None = None
    layers: int = 4
    blocks: int = 0
    n_models: int = 5
    epochs: int | None = None
    steps: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    dropout: float = 0.5
    weight_decay: float | None = None
    average: float | None = None
    validation_fraction: float = 0.1
    patience: int | Literal["auto"] | None = "auto"
    encoder: Encoder | None = None
    device: str = "auto"
    random_state: int | np.random.RandomState | None = None
    callback: Callable[[FitProgress], Any] | None = None
    metric: str | None = None
    checkpoints: str | Path | None = None
    system: str | None = None
    system_options: Mapping[str, Any] | None = None

    objective_: Objective = field(init=False)
    target_names_: list[str] = field(init=False)
    encoder_: Encoder = field(init=False)
    edge_encoder_: EdgeEncoder | None = field(init=False)
    graph_encoder_: GraphAttributeEncoder | None = field(init=False)
    config_: ModelConfig = field(init=False)
    history_: dict[str, np.ndarray] = field(init=False)
    best_epochs_: list[int] = field(init=False)
    about_: dict[str, Any] = field(init=False)
    seen_graphs_: SeenGraphs | None = field(init=False)
    ensemble_: Ensemble = field(init=False)

    predicts: ClassVar[Predicts]
    """What is predicted: ``"classes"`` (or several labels) or ``"numbers"``."""

    def _fit(self: Own, graphs: Any, y: Any, sample_weight: Any) -> Own:
        """Train the ensemble; call this from ``fit`` itself, to which warnings then point."""
        given = type(self)(**check_settings(self.get_params(deep=False)))
        known = known_graphs(graphs, y, self.predicts)
        # Graphs that count for nothing shall have no influence, on the features and on batch norm neither.
        weights = sample_weights(sample_weight, known)
        learned = known if weights is None else known.take(weights > 0)
        learned.check()
        if learned.classes is not None:
            for message in single_messages(learned.classes, learned.counts, given.validation_fraction):
                warnings.warn(message, SingleGraphWarning, stacklevel=3)
        store = learned.store
        objective = learned.objective(given.metric, given.get_params(deep=False).get("loss"))
        encoder = copy.deepcopy(self.encoder) if self.encoder is not None else default_encoder(store)
        encoder.fit(store)
        config = model_for(store, given, learned.task)
        for message in unused_messages(store, given.system or given.gnn):
            warnings.warn(message, UnusedWarning, stacklevel=3)
        edge_encoder = edge_encoder_for(edges_used(config))
        edges = None if edge_encoder is None else edge_encoder.fit(store).transform(store)
        taken = store
        if config.system:  # whose extras read the edges
            edges, taken = None, for_extras(store, encoder, edge_encoder)
        graph_encoder = GraphAttributeEncoder().fit(store) if config.graph_attributes else None
        numbers = None if graph_encoder is None else graph_encoder.transform(store)
        tables = training_tables(taken, encoder.transform(store), edges, numbers, config, objective)
        if weights is not None:
            kept = weights[weights > 0]
            tables = replace(tables, weights=torch.from_numpy(kept / kept.mean()))
        device = choose_device(given.device)
        runs = run_configs(learned, given, objective, config, encoder)
        with threads(1) if device == "cpu" else nullcontext():  # the operators are too small to gain from more threads
            fitted = fit_ensemble(tables.to(device), encoder, runs, self.callback, given.checkpoints)
        # Assigned only now: a fit that fails or is interrupted leaves an earlier fit unchanged.
        self._learn(objective, learned.classes, learned.flat)
        self.encoder_ = encoder
        self.edge_encoder_ = edge_encoder
        self.graph_encoder_ = graph_encoder
        self.config_ = config
        self.ensemble_ = replace(fitted.ensemble, edges=edge_encoder, graphs=graph_encoder)
        self.history_ = fitted.history
        self.best_epochs_ = fitted.best_epochs
        self.about_ = training_facts(known, device, training_of(given, len(store)))
        self.seen_graphs_ = SeenGraphs.of(store, self.ensemble_.fields)
        return self

    def _learn(self, objective: Objective, classes: np.ndarray | None, flat: bool) -> None:
        """Set the attributes that say what is predicted.

        Args:
            objective: What is predicted.
            classes: The classes, of the type that was given; None for targets.
            flat: Whether a single target was given as a list, as which it is predicted then.
        """
        self.objective_ = objective
        self.target_names_ = [] if classes is not None else list(objective.names)

    def scores(
        self, graphs: Any, y: Any = None, sample_weight: Any = None, metrics: list[str] | None = None
    ) -> dict[str, float | None]:
        """Return the score by each metric on graphs whose true values are known.

        Scores of several targets are averaged over those for which they can be computed; errors in the unit of a target
        are divided by its standard deviation first.

        Args:
            graphs: The test graphs.
            y: What is true of each graph, as for ``fit``. Default: None, what the graphs carry.
            sample_weight: One weight per graph. Default: None, equal weights.
            metrics: The names of the metrics, see :data:`sopool.objectives.METRICS`. Default: None, all that suit.

        Returns:
            The scores by name; None if a score cannot be computed, such as a ROC-AUC of a single class.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> list(model.scores(graphs, metrics=["accuracy", "roc_auc"]))
            ['accuracy', 'roc_auc']
        """
        return self._scored(graphs, y, sample_weight, metrics)

    def _scored(self, graphs: Any, y: Any, sample_weight: Any, metrics: list[str] | None) -> dict[str, float | None]:
        """Return what :meth:`scores` returns; call this from a method that users call."""
        objective = self._objective()
        for name in metrics or ():
            check_metric(objective.task, name)
        known = known_graphs(graphs, y, self.predicts)
        weights = sample_weights(sample_weight, known)
        truth = self._truth(known)
        foreign = np.flatnonzero(truth < 0) if known.classes is not None else np.zeros(0, np.int64)
        if len(foreign):
            raise DataError(self._foreign(known, truth))
        combined = self._combined(known.store, level=5)
        return objective.score(objective.joint(combined), truth, metrics, weights)

    def outputs(self, graphs: Any) -> np.ndarray:
        """Return the joint prediction as metrics take it ``[G, W]``.

        These are the logarithms of the probabilities of the classes, the log-odds of the labels, or the numbers.

        Args:
            graphs: The graphs to predict.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> model.outputs(graphs[:3]).shape
            (3, 2)
        """
        return self._objective().joint(self._combined(graphs))

    def _truth(self, known: KnownGraphs) -> np.ndarray:
        """Return the true values as the models predict them, -1 for labels that are not one of the classes."""
        objective = self.objective_
        if (known.classes is None) != bool(self.target_names_):
            what = ("one class", "several labels")
            raise DataError(
                f"the graphs have {what[known.classes is None]} each, but the model predicts "
                f"{what[bool(self.target_names_)]}."
            )
        if known.classes is None:
            return match_targets(known, self.target_names_)
        found: np.ndarray = codes_of(known.classes, objective.names)[known.truth]
        return found

    def _foreign(self, known: KnownGraphs, truth: np.ndarray) -> str:
        """Return a message about labels that are not one of the classes."""
        assert known.classes is not None
        labels = known.classes[known.truth[truth < 0]].tolist()
        return foreign_message(labels, len(labels), len(truth), self.objective_.names)

    @property
    def trained_on_(self) -> dict[str, Any]:
        """The name, fingerprint and size of the training data."""
        data = self.about_.get("data")
        return data if isinstance(data, dict) else {}

    @property
    def columns_(self) -> TrainingColumns:
        """The columns that ``sopool fit`` read the training graphs from."""
        columns = dict(self.about_.get("columns") or {})
        return TrainingColumns(**columns | {"targets": tuple(columns.get("targets", ()))})

    def was_trained_on(self, graphs: Any, y: Any = None) -> bool:
        """Return whether these are exactly the graphs and true values of ``fit``.

        The score on training graphs says little about new graphs.

        Args:
            graphs: The graphs to compare with the training graphs.
            y: What is true of each graph. Default: None, what the graphs carry.
        """
        self._ensemble()
        known = known_graphs(graphs, y, self.predicts)
        known.check()
        return self.trained_on_.get("fingerprint") == known.fingerprint

    def seen_in_training(self, graphs: Any) -> np.ndarray:
        """Return whether each graph is one of the training graphs, whatever its label, bool ``[G]``.

        Scores on such graphs are too good for new ones. Graphs are compared by 64-bit hashes of what color refinement
        distinguishes of them: node and edge labels, and whatever else the model uses of nodes and edges. All are False
        for a model of an earlier version, which has no hashes.

        Args:
            graphs: The graphs to compare with the training graphs.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs[:150])
            >>> bool(model.seen_in_training(graphs[:150]).all()), int(model.seen_in_training(graphs[150:]).sum())
            (True, 0)
        """
        self._ensemble()
        store = as_store(graphs)
        return np.zeros(len(store), bool) if self.seen_graphs_ is None else self.seen_graphs_.contain(store)

    def transform(self, graphs: Any) -> np.ndarray:
        """Return the pooled vector of each graph ``[G, M * F]``, with the vectors of all M models side by side.

        Args:
            graphs: The graphs to embed.

        Raises:
            SettingError: If the models are networks of a system, which need not pool.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> len(model.transform(graphs[:3]))
            3
        """
        if self._ensemble().model.config.system:
            raise SettingError(
                f"a model with system={self.system!r} has no pooled vectors: use predict_proba, or fit a model with a "
                "pooling."
            )
        with threads(1) as cores:
            store, features = self._encode(graphs, level=3)
            each = check_finite(self.ensemble_.embeddings(store, features, cores), store, "embeddings")
        return each.movedim(0, 1).flatten(1).cpu().numpy()

    def explain(self, graphs: Any, top: int = 10) -> list[AnyExplanation]:
        """Explain each prediction by the contributions of nodes and of pairs of features.

        Args:
            graphs: The graphs whose predictions are explained.
            top: The number of feature pairs to return for each class or target. Default: 10.

        Returns:
            One :class:`Explanation` per graph, or one :class:`TargetExplanation` if targets are predicted.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> explanation = model.explain(graphs[:1], top=3)[0]
            >>> len(explanation.nodes) == graphs[0].num_nodes
            True
        """
        from sopool.estimator.explaining import explain_graphs

        top = check_setting("top", top, at_least(0))
        with threads(1) as cores:  # raises for graphs that cannot be predicted
            store, features = self._encode(graphs, level=3)
            check_finite(self.ensemble_.scores(store, features, cores), store, "scores")
        return list(explain_graphs(self, store.to("cpu"), features.to("cpu"), top))

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file, without pickle.

        The file holds the weights, the settings, the encoder and the classes or targets.

        Args:
            path: The file to write. An existing file is replaced.

        Examples:
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> with TemporaryDirectory() as folder:
            ...     model.save(Path(folder) / "mutag.model")
            ...     loaded = GraphClassifier.load(Path(folder) / "mutag.model")
            >>> bool((loaded.predict(graphs) == model.predict(graphs)).all())
            True
        """
        from sopool.estimator.model_file import write_model

        self._ensemble()
        write_model(self, path)

    def export(self, path: str | Path) -> None:
        """Write the fitted estimator as an ONNX file, which runs without PyTorch and without this package.

        The file has all networks, the tables of the encoders and a description of its inputs (see the page "Export" of
        the documentation). It needs the extra ``export``. An estimator cannot be read from it; use :meth:`save` for
        that.

        Args:
            path: The file to write. An existing file is replaced.

        Raises:
            SettingError: If the models cannot be exported, as with the pooling ``"eigenpool"`` or with ``system=``.
            MissingPackageError: If onnx or onnxscript is not installed.

        Examples:
            See :meth:`save`.
        """
        from sopool.estimator.export import write_onnx

        self._ensemble()
        write_onnx(self, path)

    @classmethod
    def load(cls: type[Own], path: str | Path, device: str = "auto") -> Own:
        """Read an estimator of this class that :meth:`save` wrote, on this or another machine.

        Args:
            path: The model file. It is checked, and nothing in it is executed.
            device: Where the models predict: ``"auto"`` (default), ``"cpu"`` or ``"cuda"``.

        Raises:
            DataError: If the file is not a valid model file, or one of another kind; :func:`load_model` reads both.

        Examples:
            See :meth:`save`.
        """
        from sopool.estimator.model_file import read_model

        return read_model(path, device, cls)

    def _ensemble(self) -> Ensemble:
        """Return the trained models; raise scikit-learn's ``NotFittedError`` if there are none."""
        check_is_fitted(self, "ensemble_")
        return self.ensemble_

    def _objective(self) -> Objective:
        """Return what is predicted; raise scikit-learn's ``NotFittedError`` if nothing is."""
        self._ensemble()
        return self.objective_

    def _combined(self, graphs: Any, level: int = 4) -> Combined:
        """Return the joint prediction; call this from a method that users call, to whose caller warnings then point."""
        with threads(1) as cores:  # the other cores process other parts of the graphs
            store, features = self._encode(graphs, level)
            return self.ensemble_.combine(check_finite(self.ensemble_.scores(store, features, cores), store, "scores"))

    def _encode(self, graphs: Any, level: int) -> tuple[PackedGraphs, NodeFeatures]:
        """Return the graphs and their node features; warn about values that no training graph has."""
        ensemble = self._ensemble()
        store = as_store(graphs, needed_features(ensemble.fields))
        if self.config_.system:
            check_accepted(store, self.config_.system)
        features = ensemble.encode(store)
        nodes = (features.unknown, store.num_nodes)
        edges = (ensemble.unknown_edges(store), store.num_edges)
        for message in (*unknown_messages(nodes, edges), *empty_messages(store)):
            warnings.warn(message, UnseenWarning, stacklevel=level)
        return store, features
