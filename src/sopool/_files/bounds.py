"""Checks of numbers that point into other arrays, made before anything is looked up with them."""

import numpy as np
import torch
from torch import Tensor

from sopool.errors import DataError


def check_pointers(name: str, pointers: Tensor) -> None:
    """Raise a ``DataError`` unless ``pointers`` [G + 1] start at 0 and never decrease."""
    # Neighbours are compared, not subtracted: the difference of two forged numbers may overflow.
    if int(pointers[0]) != 0 or bool((pointers[1:] < pointers[:-1]).any()):
        raise DataError(f"{name} must start at 0 and never decrease.")


def first_outside(values: Tensor, pointers: Tensor, sizes: Tensor) -> int | None:
    """Return where the first of ``values`` [..., M] lies outside its segment, None if all lie inside.

    Segment s holds the values from ``pointers[s]`` to ``pointers[s + 1]``; each of them must be 0 or more and less than
    ``sizes[s]``. One pass over the values, without a copy of them.
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
