"""Score the same graphs at every epoch."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from sopool.training.bank.batching import Capacity, GraphTables
from sopool.training.bank.capture import capture, run_aside

CACHEFUL = 2048
"""The number of nodes per model that are scored together on a CPU."""
NUMBERS = 1 << 27
"""The number of values in the features of all nodes that are scored together on a GPU: half a gigabyte."""


def nodes_together(device: str, models: int, width: int) -> int:
    """Return how many nodes per model are scored together if each has ``width`` features."""
    return CACHEFUL if device == "cpu" else max(1, NUMBERS // (models * width))


Score = Callable[[Tensor, Capacity | None], Tensor]
"""A function from graphs ``[M, g]`` to scores ``[M, g, W]``."""


class RepeatedScorer:
    """Score graphs of each model, some at a time.

    The scoring function is passed to :meth:`scores` and not stored: it belongs to a bank, and a reference cycle would
    keep
    both alive.
    """

    def __init__(
        self,
        tables: GraphTables,
        graphs: Sequence[np.ndarray],
        captured: bool,
        width: int,
    ) -> None:
        """Prepare the graphs of each model; a node has ``width`` features, those of all layers together."""
        self.graphs = list(graphs)
        self._width = width
        self._captured = captured
        self._parts = [
            (torch.from_numpy(part).to(tables.device), self._capacity(tables, part)) for part in self._cut(tables)
        ]
        self._out: Tensor | None = None
        self._replay: torch.cuda.CUDAGraph | None = None

    def serves(self, graphs: Sequence[np.ndarray]) -> bool:
        """Return whether these are the graphs that it was made for."""
        return len(graphs) == len(self.graphs) and all(map(np.array_equal, self.graphs, graphs))

    def scores(self, score: Score) -> list[np.ndarray]:
        """Return the scores ``[n, W]`` of each model in its current state."""
        if self._captured and self._out is None:  # not captured yet: there may be no second call
            run_aside(lambda: self._run(score))
        elif self._captured:
            self._replay = self._replay or capture(lambda: self._run(score))
            self._replay.replay()
        else:
            self._run(score)
        assert self._out is not None
        every = self._out.cpu().numpy()
        return [scores[: len(numbers)] for scores, numbers in zip(every, self.graphs, strict=True)]

    def _run(self, score: Score) -> None:
        self._out = torch.cat([score(part, capacity) for part, capacity in self._parts], dim=1)

    def _capacity(self, tables: GraphTables, part: np.ndarray) -> Capacity | None:
        return tables.capacity(part) if self._captured else None

    def _cut(self, tables: GraphTables) -> list[np.ndarray]:
        """Divide the graphs into equal parts for each model ``[M, g]``; a model with fewer graphs repeats them."""
        most = max(len(numbers) for numbers in self.graphs)
        nodes = nodes_together(tables.device.type, len(self.graphs), self._width)
        pieces = -(-most // max(1, int(nodes / max(1.0, tables.mean_nodes))))
        chunk = -(-most // max(1, pieces))
        padded = np.stack([np.resize(numbers, pieces * chunk) for numbers in self.graphs])
        return np.split(padded, max(1, pieces), axis=1)
