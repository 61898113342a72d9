"""Batches and operators for the checks on a CUDA device, and how errors are measured there."""

from collections.abc import Callable

import torch
from torch import Tensor

from sopool.ops import (
    segment_apply,
    segment_attend,
    segment_bilinear,
    segment_covariance,
    segment_gram,
    segment_mean,
    segment_softmax,
    segment_sum,
)
from sopool.ops.segment.largest import segment_max

SIZES = [0, 40, 1, 0, 900, 3, 3, 17, 0]
UNEQUAL = [100_000, 1, 0, 1, 30_000, 2, *[0, 5, 60, 300] * 200, 1]
LIMITS = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}
PRECISIONS = {"tf32x3": 2e-6, "ieee": 2e-6, "tf32": 5e-3}
CHANNELS, RANK = 40, 24

# Of rows x, a weight [CHANNELS, RANK] and ptr.
OPERATORS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "gram": lambda x, w, ptr: segment_gram(x, x, ptr),
    "gram of two": lambda x, w, ptr: segment_gram(x, x[:, 3:8], ptr),
    "apply": lambda x, w, ptr: segment_apply(x, w.t().expand(ptr.numel() - 1, -1, -1), ptr),
    "bilinear": lambda x, w, ptr: segment_bilinear(x, w, ptr),
    "attend": lambda x, w, ptr: segment_attend(x, w[:, :1], ptr, w[0, :1]),
    "attend, 7 queries": lambda x, w, ptr: segment_attend(x, w[:, :7], ptr, w[0, :7]),
    "covariance": lambda x, w, ptr: segment_covariance(x, ptr),
    "sum": lambda x, w, ptr: segment_sum(x, ptr),
    "mean": lambda x, w, ptr: segment_mean(x, ptr),
    "softmax": lambda x, w, ptr: segment_softmax(x, ptr),
    "max": lambda x, w, ptr: segment_max(x, ptr),
}
BAD = {
    "ptr that goes down": "segment_gram(x, x, at(0, 7, 3, 9))",
    "ptr that starts late": "segment_gram(x, x, at(1, 9))",
    "ptr past the end": "segment_gram(x, x, at(0, 12))",
    "ptr past the end, apply": "segment_apply(x, x.new_ones(1, 2, 3), at(0, 12))",
    "ptr past the end, bilinear": "segment_bilinear(x, x.new_ones(3, 2), at(0, 12))",
    "ptr past the end, attend": "segment_attend(x, x.new_ones(3, 1), at(0, 12))",
    "ptr past the end, covariance": "segment_covariance(x, at(0, 12))",
    "ptr past the end, softmax": "segment_softmax(x, at(0, 12))",
    "index out of range": "segment_gram(x, x, index=at(*[5] * 9), dim_size=2)",
    "negative index": "segment_gram(x, x, index=at(*[-1] * 9), dim_size=2)",
}


def batch(sizes: list[int] = SIZES, channels: int = CHANNELS) -> tuple[Tensor, Tensor, Tensor]:
    """Rows in double precision, ptr and index."""
    torch.manual_seed(0)
    counts = torch.tensor(sizes)
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    index = torch.repeat_interleave(torch.arange(len(sizes)), counts)
    return torch.randn(int(ptr[-1]), channels, dtype=torch.float64), ptr, index


def error(got: Tensor, want: Tensor) -> float:
    assert got.isfinite().all(), "not finite"
    size = float(want.detach().norm())
    return float((got.detach().cpu().double() - want.detach()).norm()) / (size or 1.0)


def check(label: str, value: float, limit: float) -> None:
    print(f"{label:64s} {value:.1e} (at most {limit:.0e})")
    if not value <= limit:
        raise SystemExit(f"{label}: {value:.3e} is more than {limit:.0e}")


def results(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """The value, and the gradient of a weighting of it with respect to each input that has one."""
    inputs = tuple(tensor.detach().requires_grad_() for tensor in inputs)
    out = function(*inputs)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradients = torch.autograd.grad(out, inputs, weights.to(out), allow_unused=True)
    return [out, *(gradient for gradient in gradients if gradient is not None)]


def worst(got: list[Tensor], want: list[Tensor]) -> float:
    return max(error(mine, right) for mine, right in zip(got, want, strict=True))
