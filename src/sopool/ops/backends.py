"""Which backend computes: Triton's kernels for tensors on an NVIDIA GPU where Triton is installed, else plain PyTorch.

    with sopool.ops.backend("torch"):
        ...

Triton is imported when its kernels are first needed, never before. Its interpreter (``TRITON_INTERPRET=1``, set before
that) runs them on a CPU: slowly, for tests.
"""

import importlib.util
import os
import re
from functools import cache
from types import TracebackType
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

Name = Literal["torch", "triton"]
Precision = Literal["tf32x3", "ieee", "tf32"]
OLDEST = (3, 4)
"""The version of Triton from which on it runs the kernels: older ones, of torch before 2.8, fail on some."""
SERVED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class BackendChoice(NamedTuple):
    """A backend, None for the automatic choice, and how Triton multiplies float32."""

    name: Name | None = None
    precision: Precision = "tf32x3"


# Not a context variable: a backward pass on CUDA runs in a thread of its own and must see the same choice.
_chosen = BackendChoice()


def backend(name: Name | None, precision: Precision = "tf32x3") -> "Restore":
    """Choose the backend from here on, or inside a ``with`` block only.

    Args:
        name: ``"torch"``, ``"triton"``, or None for the automatic choice by device.
        precision: How Triton multiplies float32: ``"tf32x3"``, three passes of the tensor cores, as exact as float32;
            ``"ieee"``, plain float32, slower; ``"tf32"``, one pass, three digits.
    """
    if name is not None and name not in get_args(Name):
        raise ValueError(f"backend {name!r} does not exist: choose 'torch', 'triton' or None, the automatic choice.")
    if precision not in get_args(Precision):
        raise ValueError(f"precision={precision!r}: choose one of {', '.join(get_args(Precision))}.")
    if name == "triton" and not installed():
        here = ".".join(map(str, triton_version())) or "none"
        raise ValueError(
            f"backend 'triton' needs Triton {'.'.join(map(str, OLDEST))} or newer, and here is {here}: "
            "pip install triton (it comes with torch 2.8 and newer for CUDA)."
        )
    before = _chosen
    _choose(BackendChoice(name, precision))
    return Restore(before)


class Restore:
    """Leaving the ``with`` block brings back what held before."""

    def __init__(self, before: BackendChoice) -> None:
        self._before = before

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _choose(self._before)


def chosen() -> BackendChoice:
    """What holds now."""
    return _chosen


def serves(x: Tensor) -> bool:
    """Whether Triton's kernels work on this tensor."""
    if _chosen.name == "torch" or x.dtype not in SERVED:
        return False
    if x.device.type == "cuda":
        return installed() and (_chosen.name == "triton" or _is_able(x.device))
    if x.device.type != "cpu" or _chosen.name is None:
        return False
    if not interprets():
        raise RuntimeError(
            "backend 'triton' is forced, but the tensors are on a CPU: move them to a GPU, choose another backend, or "
            "set TRITON_INTERPRET=1 before Triton is imported to run its kernels in its (slow) interpreter."
        )
    return True


def interprets() -> bool:
    """Whether Triton's kernels run in its interpreter."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1" and installed()


def installed() -> bool:
    """Whether there is a Triton that runs the kernels."""
    return triton_version() >= OLDEST


@cache
def triton_version() -> tuple[int, ...]:
    """Of the Triton that can be imported; empty if there is none."""
    if importlib.util.find_spec("triton") is None:
        return ()
    import triton

    return tuple(map(int, re.findall(r"\d+", triton.__version__)[:2]))


@cache
def _is_able(device: torch.device) -> bool:
    """Tensor cores that take tf32 and bfloat16: NVIDIA's, from compute capability 8.0 on."""
    return torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= (8, 0)


def _choose(choice: BackendChoice) -> None:
    global _chosen
    _chosen = choice
