"""Calls of operators: without the dispatcher of ``torch.library`` in plain eager code, and under transforms.

The dispatcher takes longer than the work on a batch of small graphs. :class:`Operator` avoids it where nothing
intercepts the call.

An operator that is registered with ``torch.library`` has a reverse-mode gradient only: forward mode silently treats it
as a constant, and ``torch.func.grad`` raises an error. While such a transform is active, the primitive
(:mod:`sopool.ops.segment.gram`) therefore uses an ``autograd.Function`` that defines all derivatives, and the other
operators are expressed in terms of the primitive. The same forms, with standard operators in place of the primitive,
are used while a program is exported (:mod:`sopool.ops.segment.standard`).

Under ``vmap``, the samples of an operator over rows are concatenated along the rows, as the graphs of a batch are. The
samples of an operator that treats each column separately are concatenated along the columns.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch
from torch.autograd import forward_ad

from sopool.ops.segment.segments import Segments, is_traced
from sopool.ops.segment.size_classes import Plan, may_pad
from sopool.ops.segment.standard import exporting


def transformed() -> bool:
    """Return whether operators need their general form.

    That is the case while a program is exported, in forward mode, and in a ``torch.func`` transform that differentiates
    or batches.
    """
    # _at_work() is a constant in compiled code. The second condition makes compiled code guard on forward mode.
    return exporting() or _at_work() or forward_ad._current_level >= 0


def _look() -> bool:
    innermost = _functorch.peek_interpreter_stack()
    by_function = innermost is not None and innermost.key() != _functorch.TransformType.Functionalize
    return by_function or forward_ad._current_level >= 0


# The compiler traces the transforms inside compiled code itself, so this is a constant to it.
_at_work: Callable[[], bool] = torch.compiler.assume_constant_result(_look)


class Operator:
    """An operator of ``torch.library`` that plain eager code calls without the dispatcher.

    Args:
        registered: The operator.
        compute: The function that computes it. It accepts a :class:`Plan` in addition, as the last argument.
        save: The function that is registered as ``setup_context``. Default: None, the operator has no gradient.
        backward: The function that is registered as its gradient. It finds the plan of the forward pass with
            :func:`plan_of`. Default: None.
        formula: A function that computes the operator under transforms. Default: None, the operator itself.
    """

    def __init__(
        self,
        registered: Callable[..., Any],
        compute: Callable[..., Any],
        save: Callable[..., None] | None = None,
        backward: Callable[..., Any] | None = None,
        formula: Callable[..., Any] | None = None,
    ) -> None:
        self.registered = registered
        self.compute = compute
        self.differentiable = None
        if save is not None and backward is not None:
            self.differentiable = _make_function(compute, save, backward)
        self.formula = formula

    def __call__(self, *arguments: Any, plan: Plan | None = None) -> Any:
        """Compute the operator; ``plan`` is that of an operator on the same segments, if there was one."""
        if is_intercepted(arguments):
            if self.formula is not None and transformed():
                return self.formula(*arguments)
            return self.registered(*arguments)
        if self.differentiable is not None and torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
            return self.differentiable(*arguments)
        return self.compute(*arguments, Plan(may_pad()) if plan is None else plan)


def is_intercepted(arguments: tuple[Any, ...]) -> bool:
    """Return whether a trace, a transform, a mode or a subclass of tensors must see the operator."""
    if (
        is_traced()
        or _functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
    ):
        return True
    for one in arguments:
        kind = type(one)
        if kind is Tensor or kind is torch.nn.Parameter:
            if one.is_meta or _functorch.is_legacy_batchedtensor(one):  # the latter: torch.autograd.grad in batches
                return True
        elif isinstance(one, Tensor):
            return True
    return False


def plan_of(ctx: Any) -> Plan | None:
    """Return the plan of the forward pass; None if the dispatcher called it."""
    return getattr(ctx, "plan", None)


def _make_function(
    compute: Callable[..., Any], save: Callable[..., None], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function with the gradient ``backward``."""

    def forward(ctx: Any, *arguments: Any) -> Any:
        ctx.plan = Plan(may_pad())
        output = compute(*arguments, ctx.plan)
        save(ctx, arguments, output)
        return output

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return apply_directly(type(compute.__name__, (torch.autograd.Function,), methods))


def apply_directly(function: Any) -> Callable[..., Any]:
    """Return what ``function.apply`` calls if no transform is active, without its checks for transforms."""
    apply: Callable[..., Any] = super(torch.autograd.Function, function).apply
    return apply


def samples_of(count: int, dims: tuple[int | None, ...], *values: Tensor | None) -> list[Any]:
    """Return the inputs of ``vmap`` with the sample dimension in front; missing trailing ``dims`` count as None."""
    known = (*dims, *[None] * len(values))
    return [None if value is None else _in_front(value, dim, count) for value, dim in zip(values, known, strict=False)]


def lay_end_to_end(ptr: Tensor, order: Tensor | None, num_rows: int) -> Segments:
    """Return the segments of B concatenated samples with ``num_rows`` rows each.

    Each sample ends with an additional segment for its spare rows, those past ``ptr[-1]``. ``ptr`` is ``[B, G + 1]``
    and ``order`` is ``[B, N]``.
    """
    shift = num_rows * torch.arange(len(ptr), device=ptr.device).unsqueeze(1)
    end = shift.new_full((1,), len(ptr) * num_rows)
    return Segments(torch.cat([(ptr + shift).flatten(), end]), None if order is None else (order + shift).flatten())


def by_columns(operator: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, int]]:
    """Return the ``vmap`` rule of an operator on ``x`` ``[N, F]`` and ``ptr`` that treats each column separately."""

    def batched(info: Any, in_dims: tuple[int | None, ...], x: Tensor, ptr: Tensor) -> tuple[Tensor, int]:
        if in_dims[1] is not None:
            raise ValueError("ptr differs between the samples of vmap: pass the same ptr for all samples.")
        samples = _in_front(x, in_dims[0], info.batch_size)
        out = operator(samples.movedim(0, 1).flatten(1), ptr)
        return out.unflatten(1, samples.shape[::2]), 1

    return batched


def _in_front(value: Tensor, dim: int | None, count: int) -> Tensor:
    return value.expand(count, *value.shape) if dim is None else value.movedim(dim, 0)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Make a ``backward`` constant to autograd, and raise an error if its derivative is requested.

    ``torch.autograd.function.once_differentiable`` does not always raise: if the incoming gradient is constant, or if
    ``torch.autograd.grad`` is called with explicit inputs, it silently drops the terms that depend on this gradient.
    """

    @wraps(backward)
    def wrapper(ctx: Any, *gradients: Tensor) -> Any:
        with torch.no_grad():
            results = backward(ctx, *gradients)
        if not torch.is_grad_enabled():
            return results
        results = results if isinstance(results, tuple) else (results,)
        return _refuse(type(ctx).__name__, len(results), *results, *gradients, *ctx.saved_tensors)

    return wrapper


class _Refuse(torch.autograd.Function):
    """Return the first ``count`` tensors; differentiating them with respect to any of the tensors raises an error."""

    @staticmethod
    def forward(ctx: Any, name: str, count: int, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        ctx.name = name
        return tensors[:count]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        raise RuntimeError(
            f"{ctx.name} has no second derivative: message passing along labeled edges or by the maximum, and layers "
            "of several models, can be differentiated only once. Take second derivatives of readouts and poolings "
            "only, with respect to their input node features."
        )


_refuse: Callable[..., Any] = _Refuse.apply
