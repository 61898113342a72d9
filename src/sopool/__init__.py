"""Second-order pooling for graph neural networks."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sopool.estimator import GraphClassifier as GraphClassifier

__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    """Import ``GraphClassifier`` on first use, because PyTorch and scikit-learn take seconds to import."""
    if name == "GraphClassifier":
        from sopool.estimator import GraphClassifier

        return GraphClassifier
    raise AttributeError(f"module 'sopool' has no attribute {name!r}")
