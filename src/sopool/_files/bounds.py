"""Check arrays of indices before they are used."""

import numpy as np
import torch
from torch import Tensor

from sopool.errors import DataError


def check_pointers(name: str, pointers: Tensor) -> None:
    """Raise a ``DataError`` unless ``pointers``, ``[G + 1]``, start at 0 and never decrease."""
    # Compared instead of subtracted, because the difference of two forged numbers may overflow.
    if int(pointers[0]) != 0 or bool((pointers[1:] < pointers[:-1]).any()):
        raise DataError(f"{name} must start at 0 and never decrease.")


def first_outside(values: Tensor, pointers: Tensor, sizes: Tensor) -> int | None:
    """Return the position of the first of ``values``, ``[..., M]``, that is outside its segment, or None.

    Segment s holds the values from ``pointers[s]`` to ``pointers[s + 1]``; each must be at least 0 and less than
    ``sizes[s]``. The values are read once and not copied.
    """
    filled = pointers.diff().gt(0).nonzero().flatten()
    if not filled.numel():
        return None
    array = values.cpu().numpy()
    starts = pointers[filled].cpu().numpy()
    least = np.minimum.reduceat(array, starts, axis=-1)
    most = np.maximum.reduceat(array, starts, axis=-1)
    wrong = torch.from_numpy((least < 0) | (most >= sizes[filled].cpu().numpy())).reshape(-1, len(starts)).any(0)
    if not bool(wrong.any()):
        return None
    segment = int(filled[wrong.nonzero()[0, 0]])
    start = int(pointers[segment])
    end = int(pointers[segment + 1])
    own = values[..., start:end].reshape(-1, end - start)
    return start + int(((own < 0) | (own >= sizes[segment])).any(0).nonzero()[0, 0])
