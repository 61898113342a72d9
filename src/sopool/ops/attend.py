"""Attentional second-order pooling as one operator: the primitive with its second factor computed from the first.

    segment_attend(x, query, ptr)[g] = X_g^T (X_g query + bias)     [N, f], [f, k] -> [G, f, k]

The gradient of x has a part from either factor. Apart, each would need an array as large as x, and memory is most of
the cost; here both go into one, written once.
"""

from typing import Any

import torch
from torch import Tensor

from sopool.ops import gram, torch_backend

ATTEND_BACKWARD = (
    "(Tensor x, Tensor query, Tensor score, Tensor d_pooled, Tensor d_score, Tensor ptr) -> (Tensor, Tensor)"
)
ATTEND = "(Tensor x, Tensor query, Tensor? bias, Tensor ptr) -> (Tensor, Tensor)"


def segment_attend(x: Tensor, query: Tensor, ptr: Tensor, bias: Tensor | None = None) -> Tensor:
    """X_g^T (X_g query + bias) of every segment: [N, f], [f, k], [k] -> [G, f, k]."""
    gram.check_rows("x", x)
    x, query = gram.promote(x), gram.promote(query)
    gram.check_alike("x", x, "query", query)
    pooled: Tensor = _attend(x, query, bias, ptr)[0]
    return pooled


@torch.library.custom_op("sopool::segment_attend", mutates_args=(), schema=ATTEND)
def _attend(x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """The pooled values, and the scores X query + bias [N, k] that the backward pass needs again."""
    with torch.autocast(x.device.type, enabled=False):
        return torch_backend.segment_attend(x, query, bias, ptr)


@_attend.register_fake
def _(x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(ptr.shape[0] - 1, *query.shape), x.new_empty(x.shape[0], query.shape[1])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, query, _, ptr = inputs
    ctx.save_for_backward(x, query, ptr, output[1])


def _backward(ctx: Any, d_pooled: Tensor, d_score: Tensor) -> tuple[Tensor | None, ...]:
    x, query, ptr, score = ctx.saved_tensors
    if torch.is_grad_enabled():  # to be differentiated again: the same, in terms of operators that can be
        d_score = d_score + gram.segment_apply(x, d_pooled.transpose(1, 2), ptr)
        dx = gram.segment_apply(score, d_pooled, ptr) + d_score @ query.t()
    else:
        dx, d_score = _attend_backward(x, query, score, d_pooled, d_score, ptr)
    d_query = x.t() @ d_score if ctx.needs_input_grad[1] else None
    d_bias = d_score.sum(0) if ctx.needs_input_grad[2] else None
    return dx, d_query, d_bias, None


@torch.library.custom_op("sopool::segment_attend_backward", mutates_args=(), schema=ATTEND_BACKWARD)
def _attend_backward(
    x: Tensor, query: Tensor, score: Tensor, d_pooled: Tensor, d_score: Tensor, ptr: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of x, and of the scores with what reaches them through the pooled values."""
    with torch.autocast(x.device.type, enabled=False):
        return torch_backend.segment_attend_backward(x, query, score, d_pooled, d_score, ptr)


@_attend_backward.register_fake
def _(x: Tensor, query: Tensor, score: Tensor, d_pooled: Tensor, d_score: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(score)


_attend.register_autograd(_backward, setup_context=_save)
