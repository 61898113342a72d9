"""Define ``GraphClassifier``, a graph classifier that follows scikit-learn's conventions."""

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from sopool.errors import DataError
from sopool.estimator.base import GraphEstimator
from sopool.estimator.truth import Predicts, known_graphs, sample_weights
from sopool.estimator.validation import UnseenWarning
from sopool.objectives import Objective
from sopool.objectives.calibration import fit_temperature


class Prediction(NamedTuple):
    """The result of :meth:`GraphClassifier.predict_with_uncertainty` for G graphs and C classes, or T labels.

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
    """The predicted class of each graph ``[G]``, or the predicted labels 0 or 1 ``[G, T]``."""
    probabilities: np.ndarray
    """The probability of each class ``[G, C]``, or that each label is 1 ``[G, T]``, averaged over the models."""
    uncertainty: np.ndarray
    """The standard deviation over the models of the predicted class's probability ``[G]``, or of each label's
    probability ``[G, T]``; NaN with a single model."""


@dataclass(eq=False, repr=False)
class GraphClassifier(ClassifierMixin, GraphEstimator):
    """A scikit-learn classifier of graphs: an ensemble of graph neural networks with second-order pooling.

    Graphs are given as a :class:`~sopool.data.PackedGraphs`, or as a list of PyG ``Data``, NetworkX graphs or SMILES
    strings. All models of the ensemble are trained at the same time.

    It predicts one class per graph or, if it is fitted to a matrix of labels that are 0, 1 or missing, several labels.
    Then ``predict`` and ``predict_proba`` both return ``[G, T]`` for T labels, the latter the probability that a label
    is 1, as scikit-learn's ``MLPClassifier`` and ``OneVsRestClassifier`` do.

    Args:
        class_weight: The weight of each class in the loss and in the choice of an epoch: None (default) weights all
            graphs equally, ``"balanced"`` all classes equally, and a dictionary gives a number for each class. For
            several labels, ``"balanced"`` weights the values 0 and 1 of each label equally in the loss.

    All other arguments are those of :class:`GraphEstimator`, such as ``pool``, ``gnn``, ``n_models`` and ``epochs``.

    Attributes:
        classes_: The classes, sorted, of the type that was given. For several labels, a list of arrays, one for each.

    All other attributes are those of :class:`GraphEstimator`.

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

    class_weight: Literal["balanced"] | Mapping[Any, float] | None = None

    classes_: Any = field(init=False)

    predicts: ClassVar[Predicts] = "classes"

    def fit(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> "GraphClassifier":
        """Train the ensemble on labeled graphs.

        Args:
            graphs: The training graphs.
            y: One label per graph: numbers, words or booleans; or a matrix ``[G, T]`` of several labels per graph that
                are 0, 1, or NaN or None where one is missing, also as a data frame, whose columns name the labels.
                Graphs of which no label is known are left out. Default: None, the labels that the graphs carry.
            sample_weight: One weight per graph, by which its loss counts, also in the choice of an epoch. Only the
                ratios of weights matter, and graphs of weight 0 are left out. Default: None, equal weights.

        Returns:
            The fitted classifier itself.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> model.classes_.tolist()
            [-1, 1]
            >>> labels = [[size > 17, size > 20] for size in graphs.sizes.tolist()]
            >>> model.fit(graphs, labels).predict_proba(graphs[:3]).shape
            (3, 2)
        """
        return self._fit(graphs, y, sample_weight)

    def predict(self, graphs: Any) -> np.ndarray:
        """Return the class of each graph ``[G]``, of the type that :meth:`fit` was given, or its labels ``[G, T]``.

        Args:
            graphs: The graphs to classify.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> set(model.predict(graphs).tolist()) <= {-1, 1}
            True
        """
        return self._named(self._combined(graphs).predicted)

    def predict_proba(self, graphs: Any) -> np.ndarray:
        """Return the probability of each class ``[G, C]``, or that each label is 1 ``[G, T]``.

        It is the mean over the models, see :meth:`calibrate` for its temperature.

        The columns are in the order of ``classes_`` or ``target_names_``. The result for a graph does not depend on the
        other graphs or their order, except for rounding in single precision, usually below 1e-6.

        Args:
            graphs: The graphs to classify.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> model.predict_proba(graphs[:3]).shape
            (3, 2)
        """
        shares = self._combined(graphs).probabilities
        assert shares is not None
        return shares

    def predict_with_uncertainty(self, graphs: Any) -> Prediction:
        """Return classes or labels, probabilities and the disagreement of the models.

        Args:
            graphs: The graphs to classify.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=2, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> labels, probabilities, uncertainty = model.predict_with_uncertainty(graphs[:3])
            >>> bool((uncertainty >= 0).all())
            True
        """
        predicted, shares, uncertainty = self._combined(graphs)
        assert shares is not None
        return Prediction(self._named(predicted), shares, uncertainty)

    def calibrate(self, graphs: Any, y: Any = None) -> "GraphClassifier":
        """Fit the temperature of the probabilities on graphs that the models were not trained on.

        The temperature divides the logarithms of the mean probabilities of the classes, or the log-odds of all labels,
        so that probabilities are neither too confident nor too cautious. Predicted classes stay the same, and so does
        ``uncertainty``. It is stored in model files. The command ``sopool fit`` needs no further graphs: it uses the
        test folds of its cross-validation.

        Args:
            graphs: At least 100 graphs or so, which are like those that will be predicted.
            y: What is true of each graph, as for :meth:`fit`. Default: None, what the graphs carry.

        Returns:
            The classifier itself.

        Raises:
            DataError: If these are the training graphs, or a label is not one of the classes.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphClassifier
            >>> graphs = load("MUTAG")
            >>> model = GraphClassifier(n_models=1, epochs=3, hidden=8, random_state=0).fit(graphs[::2])
            >>> before = model.predict_proba(graphs[:2])
            >>> after = model.calibrate(graphs[1::2]).predict_proba(graphs[:2])
            >>> bool((before.argmax(1) == after.argmax(1)).all())
            True
        """
        objective = self._objective()
        known = known_graphs(graphs, y, self.predicts)
        if self.trained_on_.get("fingerprint") == known.fingerprint:
            raise DataError(
                "these are the training graphs, on which the models are too confident: give graphs that they were not "
                "trained on."
            )
        truth = self._truth(known)
        if known.classes is not None and (truth < 0).any():
            raise DataError(self._foreign(known, truth))
        plain = copy.copy(self)
        plain.temperature_ = None
        self.temperature_ = fit_temperature(objective, objective.joint(plain._combined(known.store)), truth)
        return self

    @property
    def temperature_(self) -> float | None:
        """The temperature of the probabilities; None if they are not calibrated."""
        return self._ensemble().temperature

    @temperature_.setter
    def temperature_(self, temperature: float | None) -> None:
        self.ensemble_ = replace(self._ensemble(), temperature=temperature)

    def score(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on labeled graphs; :meth:`scores` has other metrics.

        A label that is not one of ``classes_`` counts as wrong, with an :class:`UnseenWarning`. For several labels, it
        is the accuracy over the known values of each label, averaged over the labels.

        Args:
            graphs: The test graphs.
            y: The labels, as for :meth:`fit`. Default: None, the labels that the graphs carry.
            sample_weight: One weight per graph. Default: None, equal weights.

        Raises:
            DataError: If none of the labels is one of ``classes_``.
        """
        if self._objective().task != "classification":
            found = self._scored(graphs, y, sample_weight, ["accuracy"])["accuracy"]
            if found is None:
                raise DataError("no label of any graph is known: give graphs with labels.")
            return found
        known = known_graphs(graphs, y, self.predicts)
        codes = self._truth(known)
        if (codes < 0).any():
            message = self._foreign(known, codes)
            if (codes < 0).all():
                raise DataError(message)
            warnings.warn(f"{message} They count as wrong.", UnseenWarning, stacklevel=2)
        predicted = self._combined(known.store).predicted
        return float(accuracy_score(codes, predicted, sample_weight=sample_weights(sample_weight, known)))

    def _learn(self, objective: Objective, classes: np.ndarray | None, flat: bool) -> None:
        super()._learn(objective, classes, flat)
        self.classes_ = [np.array([0, 1])] * objective.width if classes is None else classes

    def _named(self, predicted: np.ndarray) -> np.ndarray:
        """Return the classes of predicted class numbers; labels are returned unchanged."""
        found: np.ndarray = predicted if self.target_names_ else self.classes_[predicted]
        return found
