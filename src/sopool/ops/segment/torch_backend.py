"""The primitive in plain PyTorch, exact on any device.

Outside a bank, a small batch is padded to its largest graph if that does not double the rows. Otherwise, graphs of
similar size are stacked into one batched matrix product: sizes are rounded up to a few classes (about 10% more rows on
average, filled with zeros), graphs are sorted by class, and chunks of rows that fit into the cache are gathered and
multiplied class by class. A large graph is multiplied in place. The only workspace is one chunk. Grouping reads the
sizes, which on CUDA waits for the device once.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops.numba import dispatch as compiled
from sopool.ops.segment.segments import Segments, check_ptr_values
from sopool.ops.segment.size_classes import Plan, SizeClasses, blocks, segment_of_rows

HALF = (torch.float16, torch.bfloat16)


def segment_gram(x: Tensor, y: Tensor, ptr: Tensor, order: Tensor | None = None, plan: Plan | None = None) -> Tensor:
    """Return X_g^T Y_g of every segment: ``[N, P]``, ``[N, Q]`` to ``[G, P, Q]``.

    ``order`` sorts the rows, if they are not sorted, and ``plan`` is that of the segments.
    """
    plan = _checked(plan, ptr, x)
    p = x.shape[1]
    q = y.shape[1]
    if q == 1 and x.dtype != torch.float64:
        return _weighted_sum(x, y, ptr, order).unsqueeze_(2)  # in place: an operator must not return a view
    if p == 1 and x.dtype != torch.float64:
        return _weighted_sum(y, x, ptr, order).unsqueeze_(1)
    if order is not None:
        segments = Segments(ptr, order)
        same = y is x
        x = segments.sort(x)
        y = x if same else segments.sort(y)
    if p * q <= compiled.WIDEST and compiled.serves(x):
        return compiled.segment_gram(x, y, ptr)
    padding = plan.padding(ptr, p + q)
    if padding is not None and x.dtype not in HALF:
        padded = padding.pad(x)
        return torch.bmm(padded.transpose(1, 2), padded if y is x else padding.pad(y))
    return _gram_by_size(x, y, plan.group_by_size(ptr, p + q, p * q))


def _gram_by_size(x: Tensor, y: Tensor, grouped: SizeClasses) -> Tensor:
    p = x.shape[1]
    q = y.shape[1]
    out = x.new_empty(grouped.segments, p, q)
    most_rows, most_segments = grouped.most()
    x_space = _wide(x, most_rows, p)
    out_space = _wide(x, most_segments, p, q)
    y_space = x_space if y is x else _wide(y, most_rows, q)
    for chunk in grouped.chunks:
        part = out_space[: chunk.segments.numel()]
        lefts = chunk.split_rows(_gather(x, chunk.rows, x_space).index_fill_(0, chunk.pads, 0))
        rights = lefts
        if y is not x:
            rights = chunk.split_rows(_gather(y, chunk.rows, y_space).index_fill_(0, chunk.pads, 0))
        for a, b, o in zip(lefts, rights, chunk.split_segments(part), strict=True):
            torch.bmm(a.transpose(1, 2), b, out=o)
        out.index_copy_(0, chunk.segments, part.to(out.dtype))
    for segment, start, end in grouped.large:
        if x.dtype not in HALF:
            torch.mm(x[start:end].t(), y[start:end], out=out[segment])
            continue
        total = _wide(x, p, q).zero_()
        for rows in blocks(start, end, x.device, p + q):
            total.addmm_(widen(x[rows]).t(), widen(y[rows]))
        out[segment] = total
    return out


def segment_apply(
    y: Tensor,
    s: Tensor,
    ptr: Tensor,
    symmetrize: bool = False,
    order: Tensor | None = None,
    plan: Plan | None = None,
) -> Tensor:
    """Return S_g y_i, or (S_g + S_g^T) y_i, of every row i: ``[N, Q]``, ``[G, P, Q]`` to ``[N, P]``."""
    plan = _checked(plan, ptr, y)
    p, q = s.shape[1:]
    if symmetrize and p == 1:
        s = 2 * s
        symmetrize = False
    if q == 1:
        return s.squeeze(2).index_select(0, segment_of_rows(ptr, y.shape[0], order)).mul_(y)
    if p == 1:
        return _row_dot(y, s.squeeze(1), segment_of_rows(ptr, y.shape[0], order))
    if order is not None:
        segments = Segments(ptr, order)
        return segments.unsort(segment_apply(segments.sort(y), s, ptr, symmetrize, plan=plan))
    if p * q <= compiled.WIDEST and compiled.serves(y):
        return compiled.segment_apply(y, s, ptr, symmetrize)
    padding = plan.padding(ptr, p + q)
    if padding is not None and y.dtype not in HALF:
        padded = padding.pad(y)
        mapped = torch.bmm(padded, s.transpose(1, 2))
        return padding.unpad(mapped.baddbmm_(padded, s) if symmetrize else mapped)
    return _apply_by_size(y, s, plan.group_by_size(ptr, p + q, p * q), symmetrize)


def _apply_by_size(y: Tensor, s: Tensor, grouped: SizeClasses, symmetrize: bool) -> Tensor:
    p, q = s.shape[1:]
    out = y.new_empty(y.shape[0], p)
    most_rows, most_segments = grouped.most()
    y_space = _wide(y, most_rows, q)
    s_space = _wide(s, most_segments, p, q)
    out_space = _wide(y, most_rows, p)
    for chunk in grouped.chunks:
        ys = _gather(y, chunk.rows, y_space)
        ss = _gather(s, chunk.segments, s_space)
        ss = ss + ss.transpose(1, 2) if symmetrize else ss
        part = out_space[: chunk.rows.numel()]
        for a, b, o in zip(chunk.split_rows(ys), chunk.split_segments(ss), chunk.split_rows(part), strict=True):
            torch.bmm(a, b.transpose(1, 2), out=o)
        out.index_copy_(0, chunk.rows, part.to(out.dtype))
    for segment, start, end in grouped.large:
        _apply_to_large(y[start:end], widen(s[segment]).t(), symmetrize, out[start:end])
    return out


def _apply_to_large(y: Tensor, factor: Tensor, symmetrize: bool, out: Tensor) -> None:
    """Write the rows of one segment times the factor, or times the sum of the factor and its transpose."""
    if symmetrize and y.shape[0] < y.shape[1] and y.dtype not in HALF:  # a second product is faster than the sum
        torch.mm(y, factor, out=out).addmm_(y, factor.t())
        return
    factor = factor + factor.t() if symmetrize else factor
    if y.dtype not in HALF:
        torch.mm(y, factor, out=out)
        return
    for rows in blocks(0, y.shape[0], y.device, sum(factor.shape)):
        out[rows] = widen(y[rows]) @ factor


def segment_attend(
    x: Tensor, query: Tensor, bias: Tensor | None, ptr: Tensor, order: Tensor | None = None, plan: Plan | None = None
) -> tuple[Tensor, Tensor]:
    """Return X_g^T (X_g query + bias) ``[G, F, K]`` and the scores ``[N, K]`` in segment order."""
    plan = _checked(plan, ptr, x)
    if query.shape[1] == 1 and compiled.serves(x):
        return compiled.segment_attend(x, query, bias, ptr, order)
    if query.shape[1] == 1 and x.device.type == "cpu":  # takes a third of the time of MKL's matrix-vector product
        score = _row_dot(x, query.t())
        score = score if bias is None else score.add_(bias)
    else:
        score = x @ query if bias is None else torch.addmm(bias, x, query)
    return segment_gram(x, score, ptr, order, plan), Segments(ptr, order).sort(score)


def segment_attend_backward(
    x: Tensor,
    query: Tensor,
    score: Tensor,
    d_pooled: Tensor,
    d_score: Tensor | None,
    ptr: Tensor,
    order: Tensor | None = None,
    with_query: bool = True,
    plan: Plan | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of ``x``, of ``query`` on request, and of the scores. Scores are in segment order.

    dX_g = score_g d_pooled_g^T + s_g query^T with the scores' gradient s_g = d_score_g + X_g d_pooled_g.
    """
    plan = _checked(plan, ptr, x)
    if query.shape[1] == 1 and compiled.serves(x):
        return compiled.segment_attend_backward(x, query, score, d_pooled, d_score, ptr, order)
    segments = Segments(ptr, order)
    score = segments.unsort(score)
    d_score = None if d_score is None else segments.unsort(d_score)
    if query.shape[1] > 1:
        total = segment_apply(x, d_pooled.transpose(1, 2), ptr, order=order, plan=plan)
        total = total if d_score is None else total.add_(d_score)
        dx = segment_apply(score, d_pooled, ptr, order=order, plan=plan).addmm_(total, query.t())
        return dx, x.t() @ total if with_query else query.new_empty(0), total
    segment = plan.segment_of_rows(ptr, x.shape[0], order)
    return _attend_backward_in_blocks(x, query, score, d_pooled.squeeze(2), d_score, segment, with_query)


def _attend_backward_in_blocks(
    x: Tensor,
    query: Tensor,
    score: Tensor,
    d_pooled: Tensor,
    d_score: Tensor | None,
    segment: Tensor,
    with_query: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of :func:`segment_attend_backward` for one query, in one pass over ``x``."""
    parts = list(blocks(0, x.shape[0], x.device, 4 * x.shape[1]))
    if len(parts) == 1:
        dx, total = _attend_backward_of_block(x, query, score, d_pooled.index_select(0, segment), d_score)
        return dx, x.t() @ total if with_query else query.new_empty(0), total
    dx = torch.empty_like(x)
    total = torch.empty_like(score)
    d_query = _wide(query, *query.shape).zero_()
    for rows in parts:
        incoming = None if d_score is None else d_score[rows]
        spread = d_pooled.index_select(0, segment[rows])
        dx[rows], total[rows] = _attend_backward_of_block(x[rows], query, score[rows], spread, incoming)
        if with_query:
            d_query.addmm_(widen(x[rows]).t(), widen(total[rows]))
    return dx, d_query.to(query.dtype) if with_query else query.new_empty(0), total


def _attend_backward_of_block(
    x: Tensor, query: Tensor, score: Tensor, spread: Tensor, d_score: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the gradients of some rows and scores; ``spread`` is the gradient of their segments' pooled values."""
    factor = widen(spread)
    total = (factor * x).sum(1, keepdim=True)
    total = total if d_score is None else total.add_(d_score)
    total = total.to(x.dtype)
    return factor.mul_(score).addcmul_(widen(total), widen(query).t()).to(x.dtype), total


def _weighted_sum(x: Tensor, weight: Tensor, ptr: Tensor, order: Tensor | None) -> Tensor:
    """Return the weighted sum of the rows of every segment in one pass over x: ``[N, P]``, ``[N, 1]`` to ``[G, P]``."""
    if not x.shape[1]:  # embedding_bag with several threads fails on empty rows
        return x.new_zeros(ptr.numel() - 1, 0)
    rows = torch.arange(x.shape[0], device=x.device) if order is None else order
    weights = Segments(ptr, order).sort(weight.reshape(-1))
    return F.embedding_bag(rows, x, ptr, mode="sum", per_sample_weights=weights, include_last_offset=True)


def _row_dot(y: Tensor, s: Tensor, segment: Tensor | None = None) -> Tensor:
    """Return the dot product of y_i and s_g(i), or s_0 without segments: ``[N, Q]``, ``[G, Q]`` to ``[N, 1]``."""
    parts = list(blocks(0, y.shape[0], y.device, 4 * y.shape[1]))
    if len(parts) == 1:
        factor = s if segment is None else s.index_select(0, segment)
        return (widen(factor) * y).sum(1, keepdim=True).to(y.dtype)
    out = y.new_empty(y.shape[0], 1)
    for rows in parts:
        factor = s if segment is None else s.index_select(0, segment[rows])
        out[rows] = (widen(factor) * y[rows]).sum(1, keepdim=True)
    return out


def _checked(plan: Plan | None, ptr: Tensor, x: Tensor) -> Plan:
    """Return the plan of the segments after a check of ``ptr``, which is done once."""
    plan = Plan() if plan is None else plan
    if not plan.checked:
        check_ptr_values(ptr, x)
        plan.checked = True
    return plan


def widen(x: Tensor) -> Tensor:
    """Convert half types to float32 for sums: float16 counts exactly only to 2,048 and overflows past 65,504."""
    return x.to(wide_type(x))


def wide_type(x: Tensor) -> torch.dtype:
    """Return the dtype of widened values."""
    return torch.float32 if x.dtype in HALF else x.dtype


def _wide(like: Tensor, *shape: int) -> Tensor:
    """Allocate a workspace for widened values; all chunks share it, since allocation takes longer than the work."""
    return like.new_empty(shape, dtype=wide_type(like))


def _gather(source: Tensor, positions: Tensor, space: Tensor) -> Tensor:
    into = space[: positions.numel()]
    if source.dtype == into.dtype:
        return torch.index_select(source, 0, positions, out=into)
    return into.copy_(source.index_select(0, positions))
