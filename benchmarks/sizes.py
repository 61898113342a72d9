"""Graph sizes like those of real data sets, as ``sopool bench`` draws them."""

from sopool.experiments.bench.sizes import draw_sizes

__all__ = ["draw_sizes"]
