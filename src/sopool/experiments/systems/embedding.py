r"""Learn vectors of words that predict other words, with negative sampling, from a random seed.

A text is given by a function that draws inputs and targets: for the skip-gram model of word2vec an input is one word
and its target another word nearby; for the distributed memory model of paragraph vectors, the inputs are several words
and their document. With vectors :math:`x` of inputs and :math:`y` of targets, the loss of inputs S and a target t is

.. math:: -\log \sigma(\bar x_S^T y_t) - \sum_{j=1}^{k} \log \sigma(-\bar x_S^T y_{n_j}),

where :math:`\bar x_S` is a weighted mean over S, and the k targets :math:`n_j` are random, drawn with the power 3/4 of
their frequencies (Mikolov et al., NeurIPS 2013, https://arxiv.org/abs/1310.4546).
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from sopool.errors import SettingError

BATCH = 1024
"""The number of targets per step."""
NEGATIVES = 5
"""The number of random targets for each target."""
RATE = 0.1
"""The learning rate of Adagrad."""

Draw = Callable[[torch.Generator], tuple[Tensor, Tensor]]
"""A function that draws the inputs ``[B, S]`` and the targets ``[B]`` of a step; B may differ from step to step."""


def embed(
    draw: Draw,
    inputs: int,
    frequencies: np.ndarray,
    dimensions: int,
    steps: int,
    seed: int,
    weights: Sequence[float] = (1.0,),
) -> np.ndarray:
    """Return the vectors of all inputs, float32 ``[inputs, dimensions]``.

    Random numbers come from a generator of their own, so the result depends on the arguments only. The time of a step
    does not depend on the number of inputs and targets, which take 8 bytes per dimension each.

    Args:
        draw: The function that draws the inputs and targets of a step.
        inputs: The number of different inputs.
        frequencies: The number of times that each target occurs, ``[T]``.
        dimensions: The length of a vector.
        steps: The number of steps.
        seed: The random seed.
        weights: The weight of each of the S inputs of a target. Default: a single input.

    Examples:
        >>> import numpy as np
        >>> from sopool.experiments.systems.embedding import embed, near_words
        >>> words = np.array([0, 1] * 50 + [2, 3] * 50)  # 0 and 1 have the same neighbors, each other
        >>> draw = near_words(words, np.ones(200), np.array([0, 100, 200]), window=1)
        >>> vectors = embed(draw, 4, np.bincount(words), dimensions=4, steps=100, seed=0)
        >>> vectors.shape
        (4, 4)
    """
    if dimensions < 1:
        raise SettingError(f"dimensions={dimensions}, expected the length of a vector, at least 1.")
    generator = torch.Generator().manual_seed(seed)
    x = _Table((torch.rand(inputs, dimensions, generator=generator) - 0.5) / dimensions)
    y = _Table(torch.zeros(len(frequencies), dimensions))
    totals = torch.from_numpy(np.cumsum(frequencies.astype(np.float64) ** 0.75))
    for _ in range(steps if len(frequencies) else 0):
        chosen, targets = draw(generator)
        drawn = torch.rand(len(targets), NEGATIVES, dtype=torch.float64, generator=generator) * totals[-1]
        random = torch.searchsorted(totals, drawn, right=True).clamp_(max=len(totals) - 1)
        _step(x, y, chosen, torch.cat([targets[:, None], random], 1), torch.tensor(weights))
    found: np.ndarray = x.rows.numpy()
    return found


class _Table:
    """Vectors that are trained by Adagrad, a few at a time."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.squares = torch.zeros_like(rows)

    def descend(self, index: Tensor, gradients: Tensor) -> None:
        """Take a step against the sum of the gradients ``[..., dimensions]`` of each row in ``index`` ``[...]``."""
        used, place = index.flatten().unique(return_inverse=True)
        width = self.rows.shape[1]
        gradient = torch.zeros(len(used), width).index_add_(0, place, gradients.reshape(len(place), width))
        self.squares[used] += gradient**2
        self.rows[used] -= RATE * gradient / (self.squares[used].sqrt() + 1e-10)


def _step(x: _Table, y: _Table, chosen: Tensor, targets: Tensor, weights: Tensor) -> None:
    """Take a step for inputs ``[B, S]`` and targets ``[B, 1 + k]``, of which the first of each row is the right one."""
    mean = (weights[:, None] * x.rows[chosen]).sum(1)
    others = y.rows[targets]
    score_gradient = (others @ mean[:, :, None])[..., 0].sigmoid_()
    score_gradient[:, 0] -= 1
    x_gradient = score_gradient[:, None] @ others
    y.descend(targets, score_gradient[..., None] * mean[:, None])
    x.descend(chosen, weights[:, None] * x_gradient)


def near_words(words: np.ndarray, times: np.ndarray, ptr: np.ndarray, window: int, batch: int = BATCH) -> Draw:
    """Return a function that draws a word and one at most ``window`` words away in the same sentence.

    Args:
        words: The words of all sentences, numbered from 0, ``[W]``.
        times: How often each of them is repeated, ``[W]``.
        ptr: The position in ``words`` of the first word of each sentence, ``[sentences + 1]``.
        window: The largest distance of the two words.
        batch: The number of pairs per step, of which those are left out that leave a sentence. Default: ``BATCH``.
    """
    if window < 1:
        raise SettingError(f"window={window}, expected the largest distance of two words, at least 1.")
    text = torch.from_numpy(words.astype(np.int64))
    sentence = torch.from_numpy(np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)))
    ends = torch.from_numpy(np.cumsum(times.astype(np.int64)))

    def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if not len(text):
            return text[:, None], text
        place = torch.randint(int(ends[-1]), (batch,), generator=generator)
        step = torch.randint(1, window + 1, (batch,), generator=generator)
        step *= 2 * torch.randint(2, (batch,), generator=generator) - 1
        other = place + step
        inside = (other >= 0) & (other < ends[-1])
        first, second = (torch.searchsorted(ends, one[inside], right=True) for one in (place, other))
        same = sentence[first] == sentence[second]
        return text[first[same]][:, None], text[second[same]]

    return draw
