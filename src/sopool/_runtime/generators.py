"""Give modules a random generator of their own.

Modules of PyTorch, PyG and users draw their initial weights from PyTorch's global generator. All threads share it, so
seeding it, drawing and restoring it gives other weights if two threads do so at the same time, and it affects all other
code that draws from it. Here, the operators that draw get another generator instead, in the calling thread only. The
numbers are those that ``torch.manual_seed`` with the same seed would give.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ONE_AT_A_TIME = threading.RLock()
"""Entering and leaving a dispatch mode sets global flags that ``torch.compile`` reads, and overlapping threads would
leave them set. Creating a model takes milliseconds, so other threads can wait."""


@contextmanager
def drawing_from(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Draw all random numbers of PyTorch in the block from a new generator with this seed, of a device.

    New tensors are on the CPU by default. A generator that is passed to an operator explicitly is kept. A
    ``RuntimeError`` names an operator that accepts no generator, because its numbers could not depend on the seed.
    """
    generator = torch.Generator(device).manual_seed(seed)
    with _ONE_AT_A_TIME, torch.device("cpu"), _Drawing(generator):
        yield


@contextmanager
def drawing_in(modules: Sequence[torch.nn.Module], seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Draw as in :func:`drawing_from`, but only while one of the modules is called, so that others are not slower."""
    drawing = _Drawing(torch.Generator(device).manual_seed(seed))

    def drawn(forward: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with _ONE_AT_A_TIME, drawing:
                return forward(*args, **kwargs)

        return call

    for module in modules:
        module.forward = drawn(module.forward)
    try:
        yield
    finally:
        for module in modules:
            del module.forward  # the method of the class is left


@contextmanager
def planning() -> Iterator[None]:
    """Create modules of any size in the block without memory for parameters, on the meta device."""
    with drawing_from(0), torch.device("meta"):
        yield


class _Drawing(TorchDispatchMode):
    """A dispatch mode that passes a generator to every operator that draws; modes affect only their own thread."""

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
        if func is torch.ops.aten.native_dropout.default:
            return self._dropout(*args)
        given = dict(kwargs or {})
        if not _is_seeded(func):
            return func(*args, **given)
        own = any(isinstance(value, torch.Generator) for value in (*args, *given.values()))
        if not own and _draws(func, args, given):
            func = _with_generator(func)
            given["generator"] = self.generator
        return func(*args, **given)

    def _dropout(self, x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what the operator for dropout on a GPU returns, which takes no generator."""
        kept = 1 - p if train in (None, True) else 1.0
        mask = torch.empty_like(x, dtype=torch.bool).bernoulli_(kept, generator=self.generator)
        return x * mask * (1 / kept if kept else 0.0), mask


@cache
def _is_seeded(operator: Any) -> bool:
    """Return whether an operator may draw numbers; asked for every operator that a network calls."""
    return torch.Tag.nondeterministic_seeded in operator.tags


def _draws(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call draws numbers: attention without dropout does not."""
    given = dict(zip((one.name for one in operator._schema.arguments), args, strict=False)) | dict(kwargs)
    defaults = {one.name: one.default_value for one in operator._schema.arguments}
    return bool(given.get("dropout_p", defaults.get("dropout_p", 1.0)) != 0.0)


@cache
def _with_generator(operator: Any) -> Callable[..., Any]:
    """Return the overload of an operator that takes a generator and otherwise the same arguments."""
    others = (getattr(operator.overloadpacket, name) for name in operator.overloadpacket.overloads())
    for overload in (operator, *others):
        arguments = _arguments(overload)
        if arguments.pop("generator", None) is not None and arguments == _arguments(operator, without="generator"):
            return overload  # type: ignore[no-any-return]
    raise RuntimeError(
        f"{operator} draws random numbers but takes no generator, so they cannot depend on the seed of a run. Use "
        "another operator to initialize a module, such as those of torch.nn.init."
    )


def _arguments(operator: Any, without: str = "") -> dict[str, str]:
    """Return the names and types of an operator's arguments."""
    return {one.name: str(one.type) for one in operator._schema.arguments if one.name != without}
