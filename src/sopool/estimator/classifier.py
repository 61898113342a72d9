"""Define ``GraphClassifier``, a graph classifier that follows scikit-learn's conventions."""

import copy
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from sopool._runtime.devices import choose_device
from sopool._runtime.threads import threads
from sopool.data.features.edge_labels import EdgeLabelEncoder
from sopool.data.features.encoders import Encoder, default_encoder
from sopool.data.features.node_features import NodeFeatures
from sopool.data.formats.packed import content_key
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError
from sopool.estimator.ensemble import Ensemble, check_finite, training_tables
from sopool.estimator.fitting import FitProgress, fit_ensemble, model_for, run_configs, training_facts
from sopool.estimator.validation import (
    SingleGraphWarning,
    UnseenWarning,
    as_store,
    at_least,
    check_setting,
    check_settings,
    check_several,
    codes_of,
    empty_messages,
    foreign_message,
    label_graphs,
    single_messages,
    unknown_messages,
)
from sopool.models.config import ModelConfig
from sopool.models.explain.explanation import Explanation


class Prediction(NamedTuple):
    """The result of :meth:`GraphClassifier.predict_with_uncertainty` for G graphs and C classes.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.estimator import GraphClassifier
        >>> graphs = load("MUTAG")
        >>> model = GraphClassifier(n_models=2, epochs=1, hidden=8, random_state=0).fit(graphs)
        >>> found = model.predict_with_uncertainty(graphs[:3])
        >>> found.labels.shape, found.probabilities.shape, found.uncertainty.shape
        ((3,), (3, 2), (3,))
    """

    labels: np.ndarray
    """The predicted class of each graph ``[G]``."""
    probabilities: np.ndarray
    """The probability of each class ``[G, C]``, averaged over the models."""
    uncertainty: np.ndarray
    """The standard deviation over the models of the predicted class's probability ``[G]``; NaN with a single model."""


class GraphClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):
    """A scikit-learn classifier of graphs: an ensemble of graph neural networks with second-order pooling.

    Graphs are given as a :class:`~sopool.data.PackedGraphs`, or as a list of PyG ``Data``, NetworkX graphs or SMILES
    strings. All models of the ensemble are trained at the same time.

    Args:
        pool: The pooling that turns node vectors into a graph vector, one of the names that ``sopool pools`` lists.
            Default: ``"sopool-bimap"``. If nodes have neither labels nor attributes, second-order poolings divide by
            the number of nodes. The mapping of ``sopool-bimap`` has a reduced learning rate.
        pool_options: Options of the pooling, such as ``{"rank": 16}``. Default: None, the pooling's defaults.
        gnn: The message-passing layers, such as ``"gin-0"`` (default), ``"gcn"`` or ``"graphsage"``; ``"gine"`` also
            uses edge labels (the bonds of molecules).
        hidden: The width of the message-passing layers. Default: 32.
        layers: The number of message-passing layers. Default: 4.
        blocks: The number of blocks of a hierarchical model, 1 to 3; 0 (default) pools once, after the last layer.
        n_models: The number of models in the ensemble, whose probabilities are averaged. Each starts from its own
            weights and holds out its own graphs. Default: 5.
        epochs: The largest number of epochs. Default: 100.
        steps: Batches per epoch. None (default): one pass over the graphs, but at least 10 and at most 50 batches.
        batch_size: Graphs per batch. Default: 32.
        lr: The learning rate of Adam, which is halved every 50 epochs. Default: 0.01.
        dropout: The dropout rate of the graph vector (of the scores, for first-order poolings). Default: 0.5.
        weight_decay: The L2 penalty. If it is not zero, ``sopool-bimap`` uses ``lr_scale=1`` unless you set it.
            Default: 0.
        average: The decay of the running mean of parameters and batch norm statistics. Held-out graphs are scored with
            this mean, and it is what is kept. Default: 0.99; 0 turns averaging off.
        validation_fraction: The fraction of the graphs that each model holds out to choose its best epoch. With 0 it is
            trained on all graphs and the last epoch is kept. The only graph of a class is never held out, with a
            :class:`SingleGraphWarning`. Default: 0.1.
        patience: Epochs without improvement after which a model stops. Default: 30; None never stops early.
        class_weight: The weight of each class in the loss and in the choice of an epoch: None (default) weights all
            graphs equally, ``"balanced"`` all classes equally, and a dictionary gives a number for each class.
        encoder: How nodes become features, such as ``DegreeEncoder()``. None (default): node labels and attributes
            where graphs have them, degrees otherwise.
        device: ``"auto"`` (default), ``"cpu"`` or ``"cuda"``.
        random_state: A seed that makes results repeatable, in any thread. None (default) draws a new seed for each fit.
        callback: A function that is called with a :class:`FitProgress` after each epoch. Default: None.

    Attributes:
        classes_: The classes, sorted, of the type that was given.
        encoder_: The fitted encoder.
        edge_encoder_: The known edge labels; None if the GNN does not use them.
        config_: The configuration of the models.
        history_: ``loss``, ``validation_loss`` and ``validation_accuracy``, each ``[M, epochs]`` for M models; NaN
            after a model stopped.
        best_epochs_: The epoch that was kept of each model, counted from 0.
        about_: The data and the environment of the training.

    Examples:
        >>> from sopool.data import load
        >>> from sopool.estimator import GraphClassifier
        >>> graphs = load("MUTAG")
        >>> model = GraphClassifier(n_models=2, epochs=2, hidden=8, random_state=0).fit(graphs)
        >>> model.predict(graphs[:3]).shape
        (3,)
        >>> 0 <= model.score(graphs) <= 1
        True
    """

    classes_: np.ndarray
    encoder_: Encoder
    edge_encoder_: EdgeLabelEncoder | None
    config_: ModelConfig
    history_: dict[str, np.ndarray]
    best_epochs_: list[int]
    about_: dict[str, Any]

    def __init__(
        self,
        pool: str = "sopool-bimap",
        pool_options: Mapping[str, Any] | None = None,
        gnn: str = "gin-0",
        hidden: int = 32,
        layers: int = 4,
        blocks: int = 0,
        n_models: int = 5,
        epochs: int = 100,
        steps: int | None = None,
        batch_size: int = 32,
        lr: float = 0.01,
        dropout: float = 0.5,
        weight_decay: float = 0.0,
        average: float = 0.99,
        validation_fraction: float = 0.1,
        patience: int | None = 30,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        encoder: Encoder | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        callback: Callable[[FitProgress], Any] | None = None,
    ) -> None:
        self.pool = pool
        self.pool_options = pool_options
        self.gnn = gnn
        self.hidden = hidden
        self.layers = layers
        self.blocks = blocks
        self.n_models = n_models
        self.epochs = epochs
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.dropout = dropout
        self.weight_decay = weight_decay
        self.average = average
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.class_weight = class_weight
        self.encoder = encoder
        self.device = device
        self.random_state = random_state
        self.callback = callback

    def fit(self, graphs: Any, y: Any = None) -> "GraphClassifier":
        """Train the ensemble on labeled graphs.

        Args:
            graphs: The training graphs.
            y: One label per graph: numbers, words or booleans. Default: None, the labels that the graphs carry.

        Returns:
            The fitted classifier itself.

        Examples:
            >>> from sopool.data import load
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> model.classes_.tolist()
            [-1, 1]
        """
        given = type(self)(**check_settings(self.get_params(deep=False)))
        labelled = label_graphs(graphs, y)
        check_several(labelled.classes)
        for message in single_messages(labelled, given.validation_fraction):
            warnings.warn(message, SingleGraphWarning, stacklevel=2)
        store = labelled.store
        encoder = copy.deepcopy(self.encoder) if self.encoder is not None else default_encoder(store)
        encoder.fit(store)
        config = model_for(store, given)
        edge_encoder = EdgeLabelEncoder().fit(store) if config.edge_labels else None
        edges = None if edge_encoder is None else edge_encoder.transform(store)
        tables = training_tables(labelled.numbered, encoder.transform(store), edges, config)
        device = choose_device(given.device)
        runs = run_configs(labelled, given, config, encoder)
        with threads(1) if device == "cpu" else nullcontext():  # the operators are too small to gain from more threads
            fitted = fit_ensemble(tables.to(device), encoder, runs, self.callback)
        # Assigned only now: a fit that fails or is interrupted leaves an earlier fit unchanged.
        self.classes_ = labelled.classes
        self.encoder_ = encoder
        self.edge_encoder_ = edge_encoder
        self.config_ = config
        self.ensemble_ = replace(fitted.ensemble, edges=edge_encoder)
        self.history_ = fitted.history
        self.best_epochs_ = fitted.best_epochs
        self.about_ = training_facts(labelled, runs[0].fingerprint, device)
        return self

    def predict(self, graphs: Any) -> np.ndarray:
        """Return the class of each graph ``[G]``, of the type that :meth:`fit` was given.

        Args:
            graphs: The graphs to classify.

        Examples:
            >>> from sopool.data import load
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> set(model.predict(graphs).tolist()) <= {-1, 1}
            True
        """
        return self._predict(graphs).labels

    def predict_proba(self, graphs: Any) -> np.ndarray:
        """Return the probability of each class ``[G, C]``, averaged over the models.

        The columns are in the order of ``classes_``. The result for a graph does not depend on the other graphs or
        their
        order, except for rounding in single precision, usually below 1e-6.

        Args:
            graphs: The graphs to classify.

        Examples:
            >>> from sopool.data import load
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> model.predict_proba(graphs[:3]).shape
            (3, 2)
        """
        return self._predict(graphs).probabilities

    def predict_with_uncertainty(self, graphs: Any) -> Prediction:
        """Return classes, probabilities and the disagreement of the models.

        Args:
            graphs: The graphs to classify.

        Examples:
            >>> from sopool.data import load
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=2, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> labels, probabilities, uncertainty = model.predict_with_uncertainty(graphs[:3])
            >>> bool((uncertainty >= 0).all())
            True
        """
        return self._predict(graphs)

    def score(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on labeled graphs.

        A label that is not one of ``classes_`` counts as wrong, with an :class:`UnseenWarning`.

        Args:
            graphs: The test graphs.
            y: One label per graph. Default: None, the labels that the graphs carry.
            sample_weight: One weight per graph. Default: None, equal weights.

        Raises:
            DataError: If none of the labels is one of ``classes_``.
        """
        self._ensemble()
        store, names, numbers = label_graphs(graphs, y)
        codes = codes_of(names, self.classes_)[numbers]
        foreign = names[numbers[codes < 0]].tolist()
        if foreign:
            message = foreign_message(foreign, len(foreign), len(codes), self.classes_)
            if len(foreign) == len(codes):
                raise DataError(message)
            warnings.warn(f"{message} They count as wrong.", UnseenWarning, stacklevel=2)
        predicted = self._predict(store).probabilities.argmax(1)
        return float(accuracy_score(codes, predicted, sample_weight=sample_weight))

    @property
    def trained_on_(self) -> dict[str, Any]:
        """The name, fingerprint and size of the training data."""
        data = self.about_.get("data")
        return data if isinstance(data, dict) else {}

    def was_trained_on(self, graphs: Any, y: Any = None) -> bool:
        """Return whether these are exactly the graphs and labels of :meth:`fit`.

        The accuracy on training graphs says little about new graphs.

        Args:
            graphs: The graphs to compare with the training graphs.
            y: One label per graph. Default: None, the labels that the graphs carry.
        """
        self._ensemble()
        labelled = label_graphs(graphs, y)
        check_several(labelled.classes)
        return self.trained_on_.get("fingerprint") == content_key(labelled.numbered)

    def transform(self, graphs: Any) -> np.ndarray:
        """Return the pooled vector of each graph ``[G, M * F]``, with the vectors of all M models side by side.

        Args:
            graphs: The graphs to embed.

        Examples:
            >>> from sopool.data import load
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> len(model.transform(graphs[:3]))
            3
        """
        with threads(1) as cores:
            store, features = self._encode(graphs, level=3)
            each = check_finite(self.ensemble_.embeddings(store, features, cores), store, "embeddings")
        return each.movedim(0, 1).flatten(1).cpu().numpy()

    def explain(self, graphs: Any, top: int = 10) -> list[Explanation]:
        """Explain each prediction by the contributions of nodes and of pairs of features.

        Args:
            graphs: The graphs whose predictions are explained.
            top: The number of feature pairs to return for each class. Default: 10.

        Returns:
            One :class:`Explanation` per graph.

        Examples:
            >>> from sopool.data import load
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
        """Write the fitted classifier to one file, without pickle.

        The file holds the weights, the settings, the encoder and the classes.

        Args:
            path: The file to write. An existing file is replaced.

        Examples:
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> from sopool.data import load
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
        """Write the fitted classifier as an ONNX file, which runs without PyTorch and without this package.

        The file has all networks, the tables of the encoders and a description of its inputs (see the page "Export" of
        the documentation). It needs the extra ``export``. A classifier cannot be read from it; use :meth:`save` for
        that.

        Args:
            path: The file to write. An existing file is replaced.

        Raises:
            SettingError: If the models cannot be exported, as with the pooling ``"eigenpool"``.
            MissingPackageError: If onnx or onnxscript is not installed.

        Examples:
            See :meth:`save`.
        """
        from sopool.estimator.export import write_onnx

        self._ensemble()
        write_onnx(self, path)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "GraphClassifier":
        """Read a classifier that :meth:`save` wrote, on this or another machine.

        Args:
            path: The model file. It is checked, and nothing in it is executed.
            device: Where the models predict: ``"auto"`` (default), ``"cpu"`` or ``"cuda"``.

        Raises:
            DataError: If the file is not a valid model file.

        Examples:
            See :meth:`save`.
        """
        from sopool.estimator.model_file import read_model

        return read_model(cls, path, device)

    def _ensemble(self) -> Ensemble:
        """Return the trained models; raise scikit-learn's ``NotFittedError`` if there are none."""
        check_is_fitted(self, "ensemble_")
        return self.ensemble_

    def _predict(self, graphs: Any) -> Prediction:
        with threads(1) as cores:  # the other cores process other parts of the graphs
            store, features = self._encode(graphs, level=4)
            return self.combine(check_finite(self.ensemble_.scores(store, features, cores), store, "scores"))

    def combine(self, scores: Tensor) -> Prediction:
        """Average the models and return their joint prediction.

        Args:
            scores: The scores of M models for G graphs and C classes ``[M, G, C]``.
        """
        each = scores.double().softmax(2).cpu().numpy()
        mean = each.mean(0)
        chosen = mean.argmax(1)
        spread = each[:, np.arange(len(chosen)), chosen].std(0) if len(each) > 1 else np.full(len(chosen), np.nan)
        return Prediction(self.classes_[chosen], mean, spread)

    def _encode(self, graphs: Any, level: int) -> tuple[PackedGraphs, NodeFeatures]:
        """Return the graphs and their node features; warn about values that no training graph has."""
        ensemble = self._ensemble()
        store = as_store(graphs)
        features = ensemble.encode(store)
        nodes = (features.unknown, store.num_nodes)
        edges = (ensemble.unknown_edges(store), store.num_edges)
        for message in (*unknown_messages(nodes, edges), *empty_messages(store)):
            warnings.warn(message, UnseenWarning, stacklevel=level)
        return store, features
