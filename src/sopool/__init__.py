"""Second-order pooling for graph neural networks."""

__version__ = "0.1.0.dev0"
