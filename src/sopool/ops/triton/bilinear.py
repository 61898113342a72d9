"""(X_g W)^T (X_g W) or X_g^T (X_g W + b) of every graph: first P = X W of all rows, then the products of each graph.

P is a fifth of x or less, and the backward pass needs it. One kernel for both was slower: while a program multiplies
small matrices it reads nothing.
"""

import torch
from torch import Tensor

from sopool.ops.triton.gram import segment_gram
from sopool.ops.triton.linear import multiply_rows


def segment_bilinear(x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """P_g^T P_g and P = X W, this in segment order: [N, f], [f, r] -> [G, r, r], [N, r]."""
    mapped = _project(x, weight, ptr)
    mapped = mapped if order is None else mapped.index_select(0, order)
    return segment_gram(mapped, mapped, ptr), mapped


def segment_attend(
    x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor, order: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """X_g^T P_g and the scores P = X query + bias, these in segment order: [N, f], [f, k] -> [G, f, k], [N, k]."""
    score = _project(x, query, ptr)
    score = score if bias is None else score.add_(bias)
    pooled = segment_gram(x, score, ptr, order)
    return pooled, score if order is None else score.index_select(0, order)


def _project(x: Tensor, weight: Tensor, ptr: Tensor) -> Tensor:
    """X W in the order of x: all rows but those that belong to no graph are one model's. (An order leaves none.)"""
    ends = torch.cat([ptr[:1], ptr[-1:]])
    return multiply_rows(x, weight.unsqueeze(0), ends)
