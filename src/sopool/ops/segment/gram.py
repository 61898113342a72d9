"""The segment primitive and its adjoint.

    segment_gram(x, y, ptr)[g]  = X_g^T Y_g      [N, P], [N, Q]    -> [G, P, Q]
    segment_apply(y, s, ptr)[i] = S_g(i) y_i     [N, Q], [G, P, Q] -> [N, P]

The gradient of each is computed by the other, so the pair is closed under differentiation. Both are PyTorch operators
(``torch.ops.sopool``): opaque to ``torch.compile``, with output shapes that are known in advance.
:mod:`sopool.ops.backends` selects the implementation; exported programs have standard operators instead
(:mod:`sopool.ops.segment.standard`). Rows that are not sorted by segment come with a permutation
``order`` ``[N]`` that sorts them; kernels then read them in place.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops import backends
from sopool.ops._autograd import Operator, lay_end_to_end, plan_of, samples_of
from sopool.ops._products import without_autocast
from sopool.ops.segment import standard, torch_backend
from sopool.ops.segment.segments import Segments, check_sizes, find_segments, owners
from sopool.ops.segment.size_classes import Plan

# y = None marks the symmetric case, which needs one gather in the forward and one product in the backward pass.
GRAM = "(Tensor x, Tensor? y, Tensor ptr, Tensor? order=None) -> Tensor"
APPLY = "(Tensor y, Tensor s, Tensor ptr, bool symmetrize=False, Tensor? order=None) -> Tensor"


def segment_gram(
    x: Tensor,
    y: Tensor,
    ptr: Tensor | None = None,
    *,
    index: Tensor | None = None,
    dim_size: int | None = None,
    order: Tensor | None = None,
) -> Tensor:
    """Return ``X_g^T Y_g`` of every segment g.

    Segments are given as ``ptr`` or as ``index``; if both are given, ``ptr`` is used. Half types accumulate in float32.
    Under autocast the result is float32.

    Args:
        x: Rows ``[N, P]``.
        y: Rows ``[N, Q]``. Pass the same tensor as ``x`` for the symmetric case, which is faster.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``. Default: None.
        index: The segment of each row ``[N]``, in any order. Default: None.
        dim_size: The number of segments G, for use with ``index``. Default: None, ``index.max() + 1``, which on CUDA
            waits for the device.
        order: Permutation ``[N]`` that sorts the rows by segment, for use with ``ptr``. Default: None, the rows are
            sorted.

    Returns:
        One matrix for each segment, ``[G, P, Q]``.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_gram
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> s = segment_gram(x, x, torch.tensor([0, 1, 3]))
        >>> s.shape
        torch.Size([2, 2, 2])
        >>> s[1]
        tensor([[34., 42.],
                [42., 52.]])
        >>> torch.equal(s, segment_gram(x, x, index=torch.tensor([0, 1, 1])))
        True
    """
    check_rows("x", x)
    if y is not x:
        check_rows("y", y)
        if x.shape[0] != y.shape[0]:
            raise ValueError(f"x has {x.shape[0]} rows and y has {y.shape[0]}: they must have the same number of rows.")
    segments = find_segments(x.shape[0], x.device, ptr, index, dim_size, order)
    rows = promote(x)
    others = None if y is x else promote(y)
    if others is not None:
        check_alike("x", rows, "y", others)
    out: Tensor = _multiply(rows, others, segments.ptr, segments.order)
    return out


def segment_apply(
    y: Tensor,
    s: Tensor,
    ptr: Tensor | None = None,
    *,
    index: Tensor | None = None,
    order: Tensor | None = None,
) -> Tensor:
    """Return ``S_g y_i`` for every row i of every segment g, the adjoint of :func:`segment_gram`.

    Args:
        y: Rows ``[N, Q]``.
        s: One matrix for each segment ``[G, P, Q]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``. Default: None.
        index: The segment of each row ``[N]``, in any order; used if ``ptr`` is None. Default: None.
        order: Permutation ``[N]`` that sorts the rows by segment, for use with ``ptr``. Default: None, the rows are
            sorted.

    Returns:
        Rows ``[N, P]``, in the order of ``y``.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_apply
        >>> y = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> s = torch.stack([torch.eye(2), 10 * torch.eye(2)])
        >>> segment_apply(y, s, torch.tensor([0, 1, 3]))
        tensor([[ 1.,  2.],
                [30., 40.],
                [50., 60.]])
    """
    check_rows("y", y)
    if s.dim() != 3 or s.shape[2] != y.shape[1]:
        raise ValueError(f"s has shape {list(s.shape)}: it must be [segments, p, {y.shape[1]}] for y {list(y.shape)}.")
    segments = find_segments(y.shape[0], y.device, ptr, index, s.shape[0], order)
    rows = promote(y)
    matrices = promote(s)
    check_alike("y", rows, "s", matrices)
    out: Tensor = _map(rows, matrices, segments.ptr, False, segments.order)
    return out


@without_autocast
def _compute_gram(
    x: Tensor, y: Tensor | None, ptr: Tensor, order: Tensor | None = None, plan: Plan | None = None
) -> Tensor:
    check_sizes(ptr, x, order, y=y)
    if backends.serves(x):
        from sopool.ops.triton.gram import segment_gram

        return segment_gram(x, x if y is None else y, ptr, order)
    return torch_backend.segment_gram(x, x if y is None else y, ptr, order, plan)


@without_autocast
def _compute_apply(
    y: Tensor,
    s: Tensor,
    ptr: Tensor,
    symmetrize: bool = False,
    order: Tensor | None = None,
    plan: Plan | None = None,
) -> Tensor:
    """Return S_g y_i, or (S_g + S_g^T) y_i with ``symmetrize``; this sum, as large as S, is never stored."""
    check_sizes(ptr, y, order, s=s)
    if backends.serves(y):
        from sopool.ops.triton.apply import segment_apply

        return segment_apply(y, s, ptr, symmetrize, order, order)
    return torch_backend.segment_apply(y, s, ptr, symmetrize, order, plan)


_gram = torch.library.custom_op("sopool::segment_gram", _compute_gram, mutates_args=(), schema=GRAM)
_apply = torch.library.custom_op("sopool::segment_apply", _compute_apply, mutates_args=(), schema=APPLY)


@_gram.register_fake
def _(x: Tensor, y: Tensor | None, ptr: Tensor, order: Tensor | None = None) -> Tensor:
    return x.new_empty(ptr.shape[0] - 1, x.shape[1], (x if y is None else y).shape[1])


@_apply.register_fake
def _(y: Tensor, s: Tensor, ptr: Tensor, symmetrize: bool = False, order: Tensor | None = None) -> Tensor:
    return y.new_empty(y.shape[0], s.shape[1])


def _save_for_gram(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _save_for_apply(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    y, s, ptr, ctx.symmetrize, order = inputs
    ctx.save_for_backward(y, s, ptr, order)


def _gram_backward(ctx: Any, ds: Tensor) -> tuple[Tensor | None, ...]:
    x, y, ptr, order = ctx.saved_tensors
    plan = plan_of(ctx)
    if y is None:
        return _map(x, ds, ptr, True, order, plan=plan), None, None, None
    dx = _map(y, ds, ptr, False, order, plan=plan) if ctx.needs_input_grad[0] else None
    dy = _map(x, ds.transpose(1, 2), ptr, False, order, plan=plan) if ctx.needs_input_grad[1] else None
    return dx, dy, None, None


def _apply_backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
    y, s, ptr, order = ctx.saved_tensors
    plan = plan_of(ctx)
    dy = _map(dout, s.transpose(1, 2), ptr, ctx.symmetrize, order, plan=plan) if ctx.needs_input_grad[0] else None
    ds = _multiply(dout, y, ptr, order, plan=plan) if ctx.needs_input_grad[1] else None
    if ds is not None and ctx.symmetrize:
        ds = ds + ds.transpose(1, 2)
    return dy, ds, None, None, None


_gram.register_autograd(_gram_backward, setup_context=_save_for_gram)
_apply.register_autograd(_apply_backward, setup_context=_save_for_apply)


@_gram.register_vmap
def _(
    info: Any, in_dims: tuple[int | None, ...], x: Tensor, y: Tensor | None, ptr: Tensor, order: Tensor | None = None
) -> tuple[Tensor, int]:
    x, y, ptr, order = samples_of(info.batch_size, in_dims, x, y, ptr, order)
    rows = lay_end_to_end(ptr, order, x.shape[1])
    out = _gram(x.flatten(0, 1), None if y is None else y.flatten(0, 1), *rows)
    return out.unflatten(0, ptr.shape)[:, :-1], 0


@_apply.register_vmap
def _(
    info: Any,
    in_dims: tuple[int | None, ...],
    y: Tensor,
    s: Tensor,
    ptr: Tensor,
    symmetrize: bool = False,
    order: Tensor | None = None,
) -> tuple[Tensor, int]:
    y, s, ptr, order = samples_of(info.batch_size, (*in_dims[:3], *in_dims[4:]), y, s, ptr, order)
    rows = lay_end_to_end(ptr, order, y.shape[1])
    out = _apply(y.flatten(0, 1), F.pad(s, (0, 0, 0, 0, 0, 1)).flatten(0, 1), rows.ptr, symmetrize, rows.order)
    spare = torch.arange(y.shape[1], device=y.device) >= ptr[:, -1:]
    return out.unflatten(0, y.shape[:2]).masked_fill(spare.unsqueeze(2), 0), 0


class _Product(torch.autograd.Function):
    """The operator gram(a, b) or apply(a, b) with derivatives of every mode; it is linear in each factor."""

    generate_vmap_rule = True

    @staticmethod
    def forward(is_gram: bool, a: Tensor, b: Tensor, ptr: Tensor, order: Tensor | None) -> Tensor:
        out: Tensor = _gram(a, b, ptr, order) if is_gram else _apply(a, b, ptr, False, order)
        return out

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.is_gram, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        a, b, *rows = ctx.saved_tensors
        if ctx.is_gram:
            return None, _product(False, b, gradient, *rows), _product(False, a, gradient.mT, *rows), None, None
        return None, _product(False, gradient, b.mT, *rows), _product(True, gradient, a, *rows), None, None

    @staticmethod
    def jvp(ctx: Any, _: None, da: Tensor, db: Tensor, *none: None) -> Tensor:
        a, b, *rows = ctx.saved_tensors
        return _product(ctx.is_gram, da, b, *rows) + _product(ctx.is_gram, a, db, *rows)


def _product(is_gram: bool, a: Tensor, b: Tensor, ptr: Tensor, order: Tensor | None) -> Tensor:
    """Compute gram or apply under a transform; compiled code, which cannot use ``_Product``, uses basic operators."""
    if not torch.compiler.is_compiling():
        return _by_function(is_gram, a, b, ptr, order)
    segment = Segments(ptr, order).unsort(owners(ptr, a.shape[0]))
    if is_gram and standard.exporting() and min(a.shape[1], b.shape[1]) > 1:
        rows = Segments(ptr, order)
        return standard.gram(rows.sort(a), rows.sort(b), ptr)
    if is_gram:  # the last matrix collects the spare rows
        return standard.total(a.unsqueeze(2) * b.unsqueeze(1), segment, ptr.shape[0])[:-1]
    return (F.pad(b, (0, 0, 0, 0, 0, 1)).index_select(0, segment) * a.unsqueeze(1)).sum(2)


_by_function: Callable[..., Tensor] = _Product.apply


def _gram_formula(x: Tensor, y: Tensor | None, ptr: Tensor, order: Tensor | None) -> Tensor:
    return _product(True, x, x if y is None else y, ptr, order)


def _apply_formula(y: Tensor, s: Tensor, ptr: Tensor, symmetrize: bool, order: Tensor | None) -> Tensor:
    return _product(False, y, s + s.mT if symmetrize else s, ptr, order)


_multiply = Operator(_gram, _compute_gram, _save_for_gram, _gram_backward, _gram_formula)
_map = Operator(_apply, _compute_apply, _save_for_apply, _apply_backward, _apply_formula)


def promote(x: Tensor) -> Tensor:
    """Convert half types to float32 under autocast, where sums over nodes would overflow or lose small terms."""
    half = x.dtype in torch_backend.HALF and x.device.type != "meta"
    return x.float() if half and torch.is_autocast_enabled(x.device.type) else x


def check_rows(name: str, x: Tensor) -> None:
    """Raise an error unless ``x`` is a floating-point tensor ``[rows, channels]``."""
    if x.dim() != 2:
        raise ValueError(f"{name} has shape {list(x.shape)}: it must be [rows, channels].")
    if not x.is_floating_point():
        raise TypeError(f"{name} has dtype {x.dtype}: pass floating-point features, for example {name}.float().")


def check_alike(name: str, x: Tensor, other: str, y: Tensor) -> None:
    """Raise an error unless both tensors have the same dtype and device."""
    if x.device != y.device:
        raise ValueError(f"{name} is on {x.device} and {other} on {y.device}: move them to one device.")
    if x.dtype != y.dtype:
        raise TypeError(f"{name} has dtype {x.dtype} and {other} {y.dtype}: convert one to the dtype of the other.")
