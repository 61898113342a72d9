"""Define ``GraphRegressor``, which predicts numbers of graphs and follows scikit-learn's conventions."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin

from sopool.errors import DataError
from sopool.estimator.base import GraphEstimator
from sopool.estimator.truth import Predicts
from sopool.objectives import Objective


class NumberPrediction(NamedTuple):
    """The result of :meth:`GraphRegressor.predict_with_uncertainty` for G graphs and T targets.

    Examples:
        >>> from sopool.data import make_measurements
        >>> from sopool.estimator import GraphRegressor
        >>> graphs = make_measurements(40)
        >>> model = GraphRegressor(n_models=2, epochs=1, hidden=8, random_state=0).fit(graphs)
        >>> found = model.predict_with_uncertainty(graphs[:3])
        >>> found.values.shape, found.uncertainty.shape
        ((3, 2), (3, 2))
    """

    values: np.ndarray
    """The predicted numbers ``[G]`` or ``[G, T]``, averaged over the models."""
    uncertainty: np.ndarray
    """The standard deviation of each number over the models, of the same shape; NaN with a single model."""


@dataclass(eq=False, repr=False)
class GraphRegressor(RegressorMixin, GraphEstimator):
    """A scikit-learn regressor of graphs: an ensemble of graph neural networks with second-order pooling.

    Graphs are given as a :class:`~sopool.data.PackedGraphs`, or as a list of PyG ``Data``, NetworkX graphs or SMILES
    strings. It predicts one number per graph or several, of which some may be missing in training. Each model is
    trained on standardized targets; predictions have the targets' own units.

    Args:
        dropout: The dropout rate of the graph vector. Default: 0.
        loss: ``"squared"`` (default), ``"absolute"`` or ``"huber"``, which is squared up to one standard deviation of
            the target and absolute beyond, and so depends less on outliers.

    All other arguments are those of :class:`GraphEstimator`, such as ``pool``, ``gnn``, ``n_models`` and ``epochs``.
    The attributes are those of :class:`GraphEstimator`.

    Examples:
        >>> from sopool.data import make_measurements
        >>> from sopool.estimator import GraphRegressor
        >>> graphs = make_measurements(60)
        >>> model = GraphRegressor(n_models=2, epochs=2, hidden=8, random_state=0).fit(graphs)
        >>> model.target_names_
        ['edges', 'spread']
        >>> model.predict(graphs[:3]).shape
        (3, 2)
        >>> model.fit(graphs, graphs.sizes.tolist()).predict(graphs[:3]).shape
        (3,)
    """

    dropout: float = 0.0
    loss: Literal["squared", "absolute", "huber"] = "squared"

    predicts: ClassVar[Predicts] = "numbers"
    flat_: bool = field(init=False)
    """Whether predictions have one dimension, as the numbers had that the regressor was fitted to."""

    def fit(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> "GraphRegressor":
        """Train the ensemble on graphs with known numbers.

        Args:
            graphs: The training graphs.
            y: One number per graph ``[G]``, or a matrix with several ``[G, T]``, NaN or None where one is missing, also
                as a data frame, whose columns name the targets. Graphs of which no number is known are left out.
                Default: None, the targets that the graphs carry.
            sample_weight: One weight per graph, by which its loss counts, also in the choice of an epoch. Only the
                ratios of weights matter, and graphs of weight 0 are left out. Default: None, equal weights.

        Returns:
            The fitted regressor itself.

        Examples:
            >>> from sopool.data import load
            >>> from sopool.estimator import GraphRegressor
            >>> graphs = load("MUTAG")
            >>> model = GraphRegressor(n_models=1, epochs=1, hidden=8, random_state=0)
            >>> model.fit(graphs, graphs.sizes.tolist()).predict(graphs[:3]).dtype
            dtype('float64')
        """
        return self._fit(graphs, y, sample_weight)

    def predict(self, graphs: Any) -> np.ndarray:
        """Return the predicted numbers, ``[G]`` or ``[G, T]`` as those that :meth:`fit` was given, float64.

        Args:
            graphs: The graphs to predict.

        Examples:
            >>> from sopool.data import make_measurements
            >>> from sopool.estimator import GraphRegressor
            >>> graphs = make_measurements(40)
            >>> model = GraphRegressor(n_models=1, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> model.predict(graphs[:3]).shape
            (3, 2)
        """
        return self._shaped(self._combined(graphs).predicted)

    def predict_with_uncertainty(self, graphs: Any) -> NumberPrediction:
        """Return the predicted numbers and the disagreement of the models.

        Args:
            graphs: The graphs to predict.

        Examples:
            >>> from sopool.data import make_measurements
            >>> from sopool.estimator import GraphRegressor
            >>> graphs = make_measurements(40)
            >>> model = GraphRegressor(n_models=2, epochs=1, hidden=8, random_state=0).fit(graphs)
            >>> values, uncertainty = model.predict_with_uncertainty(graphs[:3])
            >>> bool((uncertainty >= 0).all())
            True
        """
        predicted, _, uncertainty = self._combined(graphs)
        return NumberPrediction(self._shaped(predicted), self._shaped(uncertainty))

    def score(self, graphs: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the R2 of the known numbers, averaged over the targets; :meth:`scores` has other metrics.

        Args:
            graphs: The test graphs.
            y: The numbers, as for :meth:`fit`. Default: None, the targets that the graphs carry.
            sample_weight: One weight per graph. Default: None, equal weights.

        Raises:
            DataError: If fewer than two numbers of each target are known.
        """
        self._ensemble()
        found = self._scored(graphs, y, sample_weight, ["r2"])["r2"]
        if found is None:
            raise DataError("fewer than two numbers are known of each target, which R2 needs: give more graphs.")
        return found

    def _learn(self, objective: Objective, classes: np.ndarray | None, flat: bool) -> None:
        super()._learn(objective, classes, flat)
        self.flat_ = flat

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.flat_ else values
