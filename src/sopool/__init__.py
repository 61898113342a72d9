"""Second-order pooling for graph neural networks."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sopool.estimator import GraphClassifier as GraphClassifier
    from sopool.estimator import GraphRegressor as GraphRegressor

__version__ = "0.1.0.dev0"

ESTIMATORS = ("GraphClassifier", "GraphRegressor")


def __getattr__(name: str) -> Any:
    """Import the estimators on first use, because PyTorch and scikit-learn take seconds to import."""
    if name in ESTIMATORS:
        from sopool import estimator

        return getattr(estimator, name)
    raise AttributeError(f"module 'sopool' has no attribute {name!r}")
