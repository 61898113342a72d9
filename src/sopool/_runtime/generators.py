"""Modules whose random numbers come from a generator of their own.

PyTorch's modules, PyG's and those of a user draw their first weights from PyTorch's global generator. That generator is
shared by all threads, so seeding it, drawing and restoring it gives other weights as soon as two threads do so at the
same time, and disturbs whoever else draws from it. Here the operators that draw are given another generator instead,
in the calling thread only. The numbers are those that ``torch.manual_seed`` with the same seed would give.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ONE_AT_A_TIME = threading.RLock()
"""Entering and leaving a dispatch mode sets flags of the whole process that ``torch.compile`` reads; two threads that
overlap would leave them set. Making a model takes milliseconds, so the others can wait."""


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Draw all random numbers of PyTorch inside from a new generator on the CPU, where new tensors lie by default.

    A generator that is passed to an operator explicitly is left alone. A ``RuntimeError`` names an operator that takes
    no generator, since what it draws could not follow from the seed.
    """
    generator = torch.Generator().manual_seed(seed)
    with _ONE_AT_A_TIME, torch.device("cpu"), _Drawing(generator):
        yield


@contextmanager
def planning() -> Iterator[None]:
    """Make modules of any size without memory for their parameters, on the meta device, and without random numbers."""
    with drawing_from(0), torch.device("meta"):
        yield


class _Drawing(TorchDispatchMode):
    """Passes a generator to every operator that draws random numbers; modes are active in their own thread only."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.generator = generator

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        own = any(isinstance(value, torch.Generator) for value in (*args, *given.values()))
        if torch.Tag.nondeterministic_seeded in func.tags and not own:
            func = _with_generator(func)
            given["generator"] = self.generator
        return func(*args, **given)


@cache
def _with_generator(operator: Any) -> Callable[..., Any]:
    """The overload of an operator that takes a generator, and else just what the operator takes."""
    others = (getattr(operator.overloadpacket, name) for name in operator.overloadpacket.overloads())
    for overload in (operator, *others):
        arguments = _arguments(overload)
        if arguments.pop("generator", None) is not None and arguments == _arguments(operator, without="generator"):
            return overload  # type: ignore[no-any-return]
    raise RuntimeError(
        f"{operator} draws random numbers and takes no generator, so they cannot follow from the seed of a run: use "
        "another operator where a module is made, such as those of torch.nn.init."
    )


def _arguments(operator: Any, without: str = "") -> dict[str, str]:
    """The names of what an operator takes, with their types."""
    return {one.name: str(one.type) for one in operator._schema.arguments if one.name != without}
