"""``GraphClassifier``: graphs in, classes out, by scikit-learn's conventions."""

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
    """What :meth:`GraphClassifier.predict_with_uncertainty` gives."""

    labels: np.ndarray
    """[n]."""
    probabilities: np.ndarray
    """[n, classes], the mean over the models."""
    uncertainty: np.ndarray
    """[n]: the standard deviation over the models of the probability of the predicted class; NaN with one model."""


class GraphClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):
    """A classifier of graphs: message passing, second-order pooling, linear scores; an ensemble trained as one bank.

    Graphs are a :class:`~sopool.data.PackedGraphs`, or a list of PyG ``Data``, of NetworkX graphs or of SMILES.

    Args:
        pool: How node vectors become a graph vector: a name that ``sopool pools`` lists. Where nodes have neither
            labels nor attributes, second-order ones are divided by the number of nodes; the mapping of ``sopool-bimap``
            learns slowly.
        pool_options: Options of that pooling, such as ``{"rank": 16}``.
        gnn: The message-passing layers, such as ``"gin-0"``, ``"gcn"`` or ``"graphsage"``; ``"gine"`` also uses edge
            labels (the bonds of molecules).
        hidden: Their width.
        layers: How many of them.
        blocks: 0 pools once, at the end; 1 to 3 make a hierarchy of so many layers and poolings.
        n_models: Models that are trained side by side and vote. Each starts from other weights and holds out other
            graphs; how far they disagree is the uncertainty.
        epochs: Rounds of training at most.
        steps: Batches in an epoch; None: as many as it takes to see each graph once, but at least 10 and at most 50.
        batch_size: Graphs in a batch.
        lr: The learning rate of Adam. It is halved every 50 epochs.
        dropout: The share of a graph's vector (of its scores, for first-order pools) that is dropped in training.
        weight_decay: The L2 penalty. If it is not zero, ``sopool-bimap`` uses ``lr_scale=1`` unless you set it.
        average: How much of the running mean of a model's parameters (and of its batch norms' statistics) stays at each
            step; held-out graphs are looked at, and models kept, with that mean. 0: as they are.
        validation_fraction: The share of the graphs that is held out from a model, to choose its best epoch on; 0
            trains all epochs on all graphs, and keeps the last. The only graph of a class is never held out, with a
            :class:`SingleGraphWarning`.
        patience: Epochs without a better one after which a model is stopped; None never stops.
        class_weight: How much each class counts in the loss and in the choice of an epoch: None for all graphs alike,
            ``"balanced"`` for all classes alike, or a number for each class.
        encoder: How nodes become features, such as ``DegreeEncoder()``; None: node labels and attributes as far as they
            are there, else degrees.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        random_state: A number for results that can be repeated, in any thread; None draws a new one for each fit.
        callback: Called with a :class:`FitProgress` after each epoch.

    Attributes:
        classes_: The classes, sorted, of the type that was given.
        encoder_: The fitted encoder.
        edge_encoder_: Which edge labels are known; None if the GNN does not use them.
        config_: The shape of the models.
        history_: ``loss``, ``validation_loss`` and ``validation_accuracy`` [models, epochs], NaN once a model stopped.
        best_epochs_: The epoch that was kept of each model, from 0.
        about_: What it was trained on, and with what.
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
        """Train on graphs with a label each; without ``y`` on the labels that the graphs carry."""
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
        with threads(1) if device == "cpu" else nullcontext():  # its operators are too small for more
            fitted = fit_ensemble(tables.to(device), encoder, runs, self.callback)
        # All at the end: what fails or is interrupted leaves a model that was fitted before as it was.
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
        """The class of each graph [n], of the type that :meth:`fit` was given."""
        return self._predict(graphs).labels

    def predict_proba(self, graphs: Any) -> np.ndarray:
        """Return the probability of each class [n, classes], in the order of ``classes_``: the mean over the models.

        They do not depend on the graphs beside a graph, nor on the order, up to rounding in single precision: as a
        rule below 1e-6, since products of matrices may be added up in another order for another number of rows.
        """
        return self._predict(graphs).probabilities

    def predict_with_uncertainty(self, graphs: Any) -> Prediction:
        """The class of each graph, the probability of each class, and how far the models disagree."""
        return self._predict(graphs)

    def score(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy; without ``y`` by the labels that the graphs carry.

        A label that is no class counts as wrong, with an :class:`UnseenWarning`; if all are, it is a ``DataError``.
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
        """What is known of the graphs that it was trained on: their name, fingerprint, and how many they are."""
        data = self.about_.get("data")
        return data if isinstance(data, dict) else {}

    def was_trained_on(self, graphs: Any, y: Any = None) -> bool:
        """Whether these are the very graphs and labels of :meth:`fit`: how it does on them says little of new ones."""
        self._ensemble()
        labelled = label_graphs(graphs, y)
        check_several(labelled.classes)
        return self.trained_on_.get("fingerprint") == content_key(labelled.numbered)

    def transform(self, graphs: Any) -> np.ndarray:
        """The embeddings of the graphs [n, models x width]: what each model pools a graph into, side by side."""
        with threads(1) as cores:
            store, features = self._encode(graphs, level=3)
            each = check_finite(self.ensemble_.embeddings(store, features, cores), store, "embeddings")
        return each.movedim(0, 1).flatten(1).cpu().numpy()

    def explain(self, graphs: Any, top: int = 10) -> list[Explanation]:
        """Why each graph gets its class: the share of each node, and ``top`` pairs of features for each class."""
        from sopool.estimator.explaining import explain_graphs

        top = check_setting("top", top, at_least(0))
        with threads(1) as cores:  # what cannot be predicted is not to be explained
            store, features = self._encode(graphs, level=3)
            check_finite(self.ensemble_.scores(store, features, cores), store, "scores")
        return list(explain_graphs(self, store.to("cpu"), features.to("cpu"), top))

    def save(self, path: str | Path) -> None:
        """Write everything that :meth:`load` needs to one file: weights, settings, vocabulary, classes. No pickle."""
        from sopool.estimator.model_file import write_model

        self._ensemble()
        write_model(self, path)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "GraphClassifier":
        """Read what :meth:`save` wrote, on this or any other machine; ``DataError`` if it is anything else."""
        from sopool.estimator.model_file import read_model

        return read_model(cls, path, device)

    def _ensemble(self) -> Ensemble:
        check_is_fitted(self, "ensemble_")
        return self.ensemble_

    def _predict(self, graphs: Any) -> Prediction:
        with threads(1) as cores:  # more are for whole pieces: the operators are too small for them
            store, features = self._encode(graphs, level=4)
            return self.vote(check_finite(self.ensemble_.scores(store, features, cores), store, "scores"))

    def vote(self, scores: Tensor) -> Prediction:
        """What the scores of the models [models, n, classes] come to."""
        each = scores.double().softmax(2).cpu().numpy()
        mean = each.mean(0)
        chosen = mean.argmax(1)
        spread = each[:, np.arange(len(chosen)), chosen].std(0) if len(each) > 1 else np.full(len(chosen), np.nan)
        return Prediction(self.classes_[chosen], mean, spread)

    def _encode(self, graphs: Any, level: int) -> tuple[PackedGraphs, NodeFeatures]:
        """Graphs and the features of their nodes, with a warning about what no training graph has."""
        ensemble = self._ensemble()
        store = as_store(graphs)
        features = ensemble.encode(store)
        nodes = (features.unknown, store.num_nodes)
        edges = (ensemble.unknown_edges(store), store.num_edges)
        for message in (*unknown_messages(nodes, edges), *empty_messages(store)):
            warnings.warn(message, UnseenWarning, stacklevel=level)
        return store, features
