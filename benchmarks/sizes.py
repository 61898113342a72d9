"""Draw graph sizes like those of real data sets, by linear interpolation of measured quantiles."""

import numpy as np

LEVELS = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1]
QUANTILES = {
    "MUTAG": [10, 12, 13, 15, 16, 17, 19, 21, 22, 23, 25, 28, 28],
    "NCI1": [3, 17, 20, 22, 24, 27, 30, 33, 38, 46, 59, 79, 111],
    "PROTEINS": [4, 9, 13, 18, 22, 26, 32, 39, 54, 80, 111, 205, 620],
    "REDDIT-BINARY": [6, 38, 67, 115, 213, 304, 369, 411, 470, 1000, 1653, 2860, 3783],
}


def draw_sizes(like: str, graphs: int, seed: int = 0) -> np.ndarray:
    """Draw the number of nodes of each of ``graphs`` graphs, including the largest of the data set."""
    levels = np.random.default_rng(seed).random(graphs)
    levels[graphs // 2] = 1
    return np.interp(levels, LEVELS, QUANTILES[like]).astype(int)
