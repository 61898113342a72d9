"""Check what a file holds, JSON or arrays, against a description of what it must hold.

A file may come from anywhere, and a right digest proves nothing: whoever forges a file can compute it. So each kind of
file has a description, made of the functions below, and nothing in the file is used before it was checked against it.
A check takes a value and the name of its field, and returns the value or raises a ``DataError`` that says what was
found there and what was expected.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as show
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from sopool._files.regular import read_regular
from sopool.errors import DataError, UserError

Check = Callable[[Any, str], Any]

MOST_BYTES = 2**24
"""The size of a JSON file. What is parsed may take thirty times as much memory."""
MOST_DEPTH = 20
"""Lists and objects inside each other, in any file of ours."""
MOST_TEXT = 2**16
LARGEST = 2**53
FLOATS = (torch.float32, torch.float64)


def read_json(path: str | Path, most: int = MOST_BYTES) -> Any:
    """Return the content of a JSON file of at most ``most`` bytes; ``OSError`` if it cannot be read.

    A ``DataError`` about its content does not name the file: read it within :func:`blamed_on`.
    """
    return parse_json(read_regular(path, most))


def parse_json(content: str | bytes) -> Any:
    """Return what JSON from a file stands for, if all texts can be written and it is nested at most ``MOST_DEPTH``."""
    value = parse_strictly(content)
    level = [value]
    for _ in range(MOST_DEPTH):
        if any(type(one) is float and not math.isfinite(one) for one in level):  # 1e999
            raise DataError("a number is too large, expected finite numbers.")
        nested = [one.values() if type(one) is dict else one for one in level if type(one) in (dict, list)]
        level = [inner for values in nested for inner in values]
        if not level:
            break
    else:
        raise DataError(f"nested too deeply, expected at most {MOST_DEPTH} lists and objects inside each other.")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"a text has half a character (a lone surrogate): {show(error.object)}.") from error
    return value


def parse_strictly(content: str | bytes) -> Any:
    """Return what JSON stands for; no key may be there twice, and no number NaN or infinite."""
    try:
        return json.loads(content, parse_constant=_refuse, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg} (column {error.colno}).", line=error.lineno) from error
    except DataError:
        raise
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of too many digits, lists in lists in lists
        raise DataError(f"not JSON: {error}.") from error


def _refuse(constant: str) -> NoReturn:
    raise DataError(f"{constant} is not JSON: numbers must be finite.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise DataError(f"the key {show(key)} is there twice.")
    return record


@contextmanager
def blamed_on(path: str | Path, what: str = "") -> Iterator[None]:
    """Add the file, and ``what`` is wrong with it, to a ``UserError`` that names no file yet."""
    try:
        yield
    except UserError as error:
        if error.path is not None:
            raise
        raise DataError(f"{what}{error}", path, error.line) from error


def value_check(fits: Callable[[Any], bool], expected: str) -> Check:
    """Return a check of a single value; ``expected`` says in words what ``fits`` asks for."""

    def check(value: Any, where: str) -> Any:
        if not fits(value):
            raise DataError(f"{where} is {show(value)}, expected {expected}.")
        return value

    return check


def whole(low: int = 0, high: int = LARGEST) -> Check:
    """Return a check of a whole number, ``true`` and ``1.0`` not among them."""
    return value_check(
        lambda value: type(value) is int and low <= value <= high, f"a whole number from {low} to {high}"
    )


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """Return a check of a finite number."""
    words = " and ".join([f"at least {low:g}"] * (low > -math.inf) + [f"at most {high:g}"] * (high < math.inf))
    return value_check(
        lambda value: type(value) in (int, float) and low <= value <= high and abs(value) < math.inf,
        f"a finite number{' of ' * bool(words)}{words}",
    )


def text(pattern: str = "", most: int = MOST_TEXT) -> Check:
    """Return a check of a text that is not too long and, if a ``pattern`` is given, matches all of it."""
    expected = f"a text that matches {pattern}" if pattern else f"a text of at most {most:,} characters"
    matches = re.compile(pattern or ".*", re.DOTALL).fullmatch
    return value_check(lambda value: type(value) is str and len(value) <= most and bool(matches(value)), expected)


def choice(*values: str) -> Check:
    """Return a check of one text out of a few."""
    return value_check(lambda value: type(value) is str and value in values, f"one of {', '.join(values)}")


BOOLEAN = value_check(lambda value: type(value) is bool, "true or false")
SHARE = number(0, 1)
SCALAR = value_check(
    lambda value: value is None or type(value) in (bool, int, float, str), "a number, a text, true, false or null"
)


def anything(value: Any, where: str) -> Any:
    """Accept any JSON, for what is passed on and never looked into."""
    return value


def optional(check: Check) -> Check:
    """Return a check that also accepts null."""
    return lambda value, where: None if value is None else check(value, where)


def list_of(check: Check, least: int = 0, most: int = 2**20) -> Check:
    """Return a check of a list, each item by ``check``."""
    is_list = value_check(
        lambda value: type(value) is list and least <= len(value) <= most, f"a list of {least:,} to {most:,} values"
    )

    def check_all(value: Any, where: str) -> list[Any]:
        return [check(one, f"{where}[{place}]") for place, one in enumerate(is_list(value, where))]

    return check_all


def tuple_of(check: Check, least: int = 0, most: int = 2**20) -> Check:
    """Return the check of :func:`list_of`, which gives a tuple."""
    as_list = list_of(check, least, most)
    return lambda value, where: tuple(as_list(value, where))


def mapping_of(check: Check) -> Check:
    """Return a check of an object with any keys, each value by ``check``."""
    is_mapping = value_check(lambda value: type(value) is dict, "an object")

    def check_all(value: Any, where: str) -> dict[str, Any]:
        return {name: check(one, _inside(where, name)) for name, one in is_mapping(value, where).items()}

    return check_all


def record(fields: Mapping[str, Check], defaults: Mapping[str, Any] | None = None, more: Check | None = None) -> Check:
    """Return a check of an object with these ``fields``.

    Those with one of the ``defaults`` may be absent, and the result has the default then. Others than these fields are
    refused, or checked by ``more``.
    """
    defaults = defaults or {}
    is_mapping = value_check(lambda value: type(value) is dict, f"an object with {', '.join(fields)}")

    def check_all(value: Any, where: str) -> dict[str, Any]:
        found = {**defaults, **is_mapping(value, where)}
        missing = next((name for name in fields if name not in found), None)
        if missing is not None:
            raise DataError(f"{where} lacks {missing}: damaged, or of another version.")
        checks = {name: fields.get(name, more) for name in found}
        unknown = next((name for name, check in checks.items() if check is None), None)
        if unknown is not None:
            raise DataError(f"{where} has {show(unknown)}, which this version does not know.")
        return {
            name: found[name] if name in defaults and name not in value else check(found[name], _inside(where, name))
            for name, check in checks.items()
            if check is not None
        }

    return check_all


def _inside(where: str, name: str) -> str:
    """Name a field of an object; a key from a file may be of any length."""
    return f"{where}.{name if name.isidentifier() and len(name) < 40 else show(name)}"


class Array(NamedTuple):
    """What an array of a file must be."""

    shape: tuple[int | str, ...]
    """Sizes; one that is given by a name may be any, and is the same wherever that name is."""
    dtypes: tuple[torch.dtype, ...] = FLOATS
    low: float | None = None
    high: float | None = None
    """All values are finite and within these; only ``math.inf`` here allows for an infinite one."""
    gaps: bool = False
    """Whether NaN may stand for a value that there is none of."""


def check_arrays(found: Mapping[str, Tensor], expected: Mapping[str, Array]) -> dict[str, int]:
    """Raise a ``DataError`` unless the arrays are those ``expected``; return the sizes that have a name."""
    for name in sorted(found.keys() ^ expected.keys()):
        raise DataError(f"the array {show(name)} is {'missing' if name in expected else 'not expected'}.")
    sizes: dict[str, int] = {}
    for name, rule in expected.items():
        _check_array(name, found[name], rule, sizes)
    return sizes


def _check_array(name: str, found: Tensor, rule: Array, sizes: dict[str, int]) -> None:
    if found.dim() == len(rule.shape):
        for size, known in zip(found.shape, rule.shape, strict=True):
            if isinstance(known, str):
                sizes.setdefault(known, size)
    shape = [sizes.get(size, size) if isinstance(size, str) else size for size in rule.shape]
    if found.dtype not in rule.dtypes or list(found.shape) != shape:
        kinds = " or ".join(map(_dtype_name, rule.dtypes))
        raise DataError(
            f"the array {name} is {_dtype_name(found.dtype)} {list(found.shape)}, expected {kinds} {shape}."
        )
    fits = _fits(found, rule)
    if not bool(fits.all()):
        place = [int(one) for one in (~fits).nonzero()[0]]
        raise DataError(f"{name}{place} is {found[tuple(place)].item()}, expected {_range_in_words(rule)}.")


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _fits(values: Tensor, rule: Array) -> Tensor:
    fits = ~values.isnan() if rule.high == math.inf else values.isfinite()
    if rule.low is not None:
        fits &= values >= rule.low
    if rule.high is not None:
        fits &= values <= rule.high
    return fits | values.isnan() if rule.gaps else fits


def _range_in_words(rule: Array) -> str:
    low = f" of at least {rule.low:g}" if rule.low is not None else ""
    high = f" of at most {rule.high:g}" if rule.high is not None else ""
    return f"a number{low}{' and' * bool(low and high)}{high}" if low or high else "a finite number"
