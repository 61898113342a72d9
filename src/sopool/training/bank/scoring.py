"""The scores of the same graphs, epoch after epoch."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from sopool.training.bank.batching import Capacity, GraphTables
from sopool.training.bank.capture import capture, run_aside

CACHEFUL = 2048
"""Nodes of each model that are scored together on a CPU."""
NUMBERS = 1 << 27
"""In the vectors of the nodes that are scored together on a GPU, of all models: half a gigabyte."""


def nodes_together(device: str, models: int, width: int) -> int:
    """Nodes of each of the models that are scored together, if their vectors have so many entries."""
    return CACHEFUL if device == "cpu" else max(1, NUMBERS // (models * width))


Score = Callable[[Tensor, Capacity | None], Tensor]
"""[M, g] -> [M, g, classes]."""


class RepeatedScorer:
    """Scores graphs of its own for each model, some at a time.

    What scores them is given to :meth:`scores`, not kept: it is a bank's, and the two would keep one another alive.
    """

    def __init__(
        self,
        tables: GraphTables,
        graphs: Sequence[np.ndarray],
        captured: bool,
        width: int,
    ) -> None:
        """The vectors of nodes have ``width`` entries, those of all layers side by side."""
        self.graphs = list(graphs)
        self._width = width
        self._captured = captured
        self._parts = [
            (torch.from_numpy(part).to(tables.device), self._capacity(tables, part)) for part in self._cut(tables)
        ]
        self._out: Tensor | None = None
        self._replay: torch.cuda.CUDAGraph | None = None

    def serves(self, graphs: Sequence[np.ndarray]) -> bool:
        """Whether these are the graphs it watches."""
        return len(graphs) == len(self.graphs) and all(map(np.array_equal, self.graphs, graphs))

    def scores(self, score: Score) -> list[np.ndarray]:
        """As the models are now: [n, classes] each."""
        if self._captured and self._out is None:  # who asks once may not ask again
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
        """As many graphs for each model, [M, g] at a time; a model with fewer begins anew."""
        most = max(len(numbers) for numbers in self.graphs)
        nodes = nodes_together(tables.device.type, len(self.graphs), self._width)
        pieces = -(-most // max(1, int(nodes / max(1.0, tables.mean_nodes))))
        chunk = -(-most // max(1, pieces))
        padded = np.stack([np.resize(numbers, pieces * chunk) for numbers in self.graphs])
        return np.split(padded, max(1, pieces), axis=1)
