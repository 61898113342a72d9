"""The choice of the backend: Triton kernels on NVIDIA GPUs if Triton is installed, plain PyTorch otherwise.

Triton is imported when a kernel is first needed. Its interpreter (set ``TRITON_INTERPRET=1`` before that) runs the
kernels on a CPU; it is slow and meant for tests.
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
"""The oldest version of Triton that runs all kernels. Older versions, which come with PyTorch before 2.8, fail on some.
"""
SERVED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class BackendChoice(NamedTuple):
    """The name of a backend (None for the automatic choice) and the precision of float32 products in Triton."""

    name: Name | None = None
    precision: Precision = "tf32x3"


# A global, not a context variable: a backward pass on CUDA runs in its own thread and must see the same choice.
_chosen = BackendChoice()


def backend(name: Name | None, precision: Precision = "tf32x3") -> "Restore":
    """Select the backend of all operators, either from now on or inside a ``with`` block only.

    Args:
        name: ``"torch"``, ``"triton"``, or None for the automatic choice by device.
        precision: How Triton multiplies float32 matrices: ``"tf32x3"`` (default) uses three passes of the tensor cores
            and is as exact as float32; ``"ieee"`` is plain float32 and slower; ``"tf32"`` uses one pass and has three
            significant digits.

    Returns:
        A context manager that restores the previous backend on exit.

    Raises:
        ValueError: If an argument has an unknown value, or if ``"triton"`` is selected without a recent Triton.

    Examples:
        >>> import torch
        >>> from sopool.ops import backend, segment_sum
        >>> with backend("torch"):
        ...     segment_sum(torch.ones(3, 2), torch.tensor([0, 1, 3]))
        tensor([[1., 1.],
                [2., 2.]])
    """
    if name is not None and name not in get_args(Name):
        raise ValueError(f"backend {name!r} does not exist: choose 'torch', 'triton' or None (automatic).")
    if precision not in get_args(Precision):
        raise ValueError(f"precision={precision!r} does not exist: choose one of {', '.join(get_args(Precision))}.")
    if name == "triton" and not installed():
        version = ".".join(map(str, triton_version()))
        found = f"version {version} is installed" if version else "it is not installed"
        raise ValueError(
            f"backend 'triton' needs Triton {'.'.join(map(str, OLDEST))} or newer, but {found}: run "
            "pip install --upgrade triton (PyTorch 2.8 and newer for CUDA include it)."
        )
    before = _chosen
    _choose(BackendChoice(name, precision))
    return Restore(before)


class Restore:
    """A context manager that restores the previous backend on exit."""

    def __init__(self, before: BackendChoice) -> None:
        self._before = before

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _choose(self._before)


def chosen() -> BackendChoice:
    """Return the current choice."""
    return _chosen


def serves(x: Tensor) -> bool:
    """Return whether the Triton kernels are used for this tensor."""
    if _chosen.name == "torch" or x.dtype not in SERVED:
        return False
    if x.device.type == "cuda":
        return installed() and (_chosen.name == "triton" or _is_able(x.device))
    if x.device.type != "cpu" or _chosen.name is None:
        return False
    if not interprets():
        raise RuntimeError(
            "backend 'triton' is selected, but the tensors are on a CPU: move them to a GPU, select another backend, "
            "or set TRITON_INTERPRET=1 before Triton is imported to run the kernels in its (slow) interpreter."
        )
    return True


def interprets() -> bool:
    """Return whether Triton kernels run in Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1" and installed()


def installed() -> bool:
    """Return whether a version of Triton is installed that runs all kernels."""
    return triton_version() >= OLDEST


@cache
def triton_version() -> tuple[int, ...]:
    """Return the major and minor version of the installed Triton, or an empty tuple if there is none."""
    if importlib.util.find_spec("triton") is None:
        return ()
    import triton

    return tuple(map(int, re.findall(r"\d+", triton.__version__)[:2]))


@cache
def _is_able(device: torch.device) -> bool:
    """Return whether a GPU has tensor cores for tf32 and bfloat16 (NVIDIA, compute capability 8.0 or newer)."""
    return torch.version.cuda is not None and torch.cuda.get_device_capability(device) >= (8, 0)


def _choose(choice: BackendChoice) -> None:
    global _chosen
    _chosen = choice
