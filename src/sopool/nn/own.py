"""Readouts of a user's own, put into ``READOUTS`` from outside: which they are, and what tells their versions apart."""

import hashlib
import inspect
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from sopool.nn.registry import READOUTS, SHIPPED

ELSEWHERE = {"sopool", "torch", "torch_geometric", *sys.stdlib_module_names}
"""Packages whose classes count by their names: a user does not edit them."""


def own_readouts() -> dict[str, Callable[..., Any]]:
    """Those that are not the package's, by name."""
    return {name: make for name, make in READOUTS.items() if make is not SHIPPED.get(name)}


def source_of(name: str) -> str:
    """A hash of the source of a user's own readout and its bases; of any other pooling, an empty string.

    Where there is no source, as for a class typed into a prompt, its qualified name stands for it.
    """
    make = own_readouts().get(name)
    return "" if make is None else _hash(make)


@cache  # the class in memory stays as it is when its file is edited later
def _hash(make: Callable[..., Any]) -> str:
    parts = _parts(make)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16] if parts else ""


def _parts(make: Callable[..., Any]) -> list[str]:
    if isinstance(make, partial):
        given = f"{make.args} {sorted(make.keywords.items())}"
        return [getattr(make.func, "__qualname__", ""), given, *_parts(make.func)]
    plain = inspect.isclass(make) or inspect.isroutine(make)
    kinds = inspect.getmro(make) if inspect.isclass(make) else (make if plain else type(make),)
    return [_text(kind) for kind in kinds if str(kind.__module__).partition(".")[0] not in ELSEWHERE]


def _text(kind: Any) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return f"{kind.__module__}.{kind.__qualname__}"
