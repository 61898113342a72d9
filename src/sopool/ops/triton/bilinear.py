"""Compute (X_g W)^T (X_g W) or X_g^T (X_g W + b): first P = X W for all rows, then the products of each graph.

P is a fifth of x or smaller, and the backward pass needs it. A single kernel for both steps was slower, because a
program reads nothing while it multiplies small matrices.
"""

import torch
from torch import Tensor

from sopool.ops.triton.gram import segment_gram
from sopool.ops.triton.linear import multiply_rows


def segment_bilinear(x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return P_g^T P_g ``[G, R, R]`` and P = X W ``[N, R]`` in segment order."""
    mapped = _project(x, weight, ptr)
    mapped = mapped if order is None else mapped.index_select(0, order)
    return segment_gram(mapped, mapped, ptr), mapped


def segment_attend(
    x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor, order: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return X_g^T P_g ``[G, F, K]`` and the scores P = X query + bias ``[N, K]`` in segment order."""
    score = _project(x, query, ptr)
    score = score if bias is None else score.add_(bias)
    pooled = segment_gram(x, score, ptr, order)
    return pooled, score if order is None else score.index_select(0, order)


def _project(x: Tensor, weight: Tensor, ptr: Tensor) -> Tensor:
    """Return X W in the order of x, with all rows but the spare ones treated as those of a single model."""
    ends = torch.cat([ptr[:1], ptr[-1:]])
    return multiply_rows(x, weight.unsqueeze(0), ends)
