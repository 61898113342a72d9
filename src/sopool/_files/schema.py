"""Check the content of a file, JSON or arrays, against a description of what is expected.

A file may come from anyone, and a correct digest proves nothing, because anyone can compute it. Each kind of file
therefore has a description made of the functions below, and its content is checked before it is used. A check takes a
value and the name of its field, and returns the value or raises a ``DataError`` that says what was found and what was
expected.
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
"""The largest size of a JSON file; the parsed values may take thirty times as much memory."""
MOST_DEPTH = 20
"""The largest nesting depth of lists and objects."""
MOST_TEXT = 2**16
LARGEST = 2**53
FLOATS = (torch.float32, torch.float64)


def read_json(path: str | Path, most: int = MOST_BYTES) -> Any:
    """Return the content of a JSON file of at most ``most`` bytes; raise an ``OSError`` if it cannot be read.

    A ``DataError`` about its content does not name the file: call it inside :func:`blamed_on`.
    """
    return parse_json(read_regular(path, most))


def parse_json(content: str | bytes) -> Any:
    """Parse JSON from a file; raise if strings cannot be encoded or values are nested deeper than ``MOST_DEPTH``."""
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
        raise DataError(f"nested too deeply, expected at most {MOST_DEPTH} levels of lists and objects.")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"a string contains half a character (a lone surrogate): {show(error.object)}.") from error
    return value


def parse_strictly(content: str | bytes) -> Any:
    """Parse JSON; raise if a key is repeated or a number is NaN or infinite."""
    try:
        return json.loads(content, parse_constant=_refuse, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg} (column {error.colno}).", line=error.lineno) from error
    except DataError:
        raise
    except (ValueError, RecursionError) as error:  # not UTF-8, a number with too many digits, or nested too deeply
        raise DataError(f"not JSON: {error}.") from error


def _refuse(constant: str) -> NoReturn:
    raise DataError(f"{constant} is not JSON: numbers must be finite.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise DataError(f"the key {show(key)} occurs twice.")
    return record


@contextmanager
def blamed_on(path: str | Path, what: str = "") -> Iterator[None]:
    """Add ``path``, and ``what`` at the start of the message, to a ``UserError`` that names no file yet."""
    try:
        yield
    except UserError as error:
        if error.path is not None:
            raise
        raise DataError(f"{what}{error}", path, error.line) from error


def value_check(fits: Callable[[Any], bool], expected: str) -> Check:
    """Return a check of a single value; ``expected`` describes what ``fits`` accepts."""

    def check(value: Any, where: str) -> Any:
        if not fits(value):
            raise DataError(f"{where} is {show(value)}, expected {expected}.")
        return value

    return check


def whole(low: int = 0, high: int = LARGEST) -> Check:
    """Return a check for an integer; ``true`` and ``1.0`` are not accepted."""
    return value_check(
        lambda value: type(value) is int and low <= value <= high, f"a whole number from {low} to {high}"
    )


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """Return a check for a finite number."""
    words = " and ".join([f"at least {low:g}"] * (low > -math.inf) + [f"at most {high:g}"] * (high < math.inf))
    return value_check(
        lambda value: type(value) in (int, float) and low <= value <= high and abs(value) < math.inf,
        f"a finite number{' of ' * bool(words)}{words}",
    )


def text(pattern: str = "", most: int = MOST_TEXT) -> Check:
    """Return a check for a string of bounded length that fully matches ``pattern``, if given."""
    expected = f"a string that matches {pattern}" if pattern else f"a string of at most {most:,} characters"
    matches = re.compile(pattern or ".*", re.DOTALL).fullmatch
    return value_check(lambda value: type(value) is str and len(value) <= most and bool(matches(value)), expected)


def choice(*values: str) -> Check:
    """Return a check for one of several strings."""
    return value_check(lambda value: type(value) is str and value in values, f"one of {', '.join(values)}")


BOOLEAN = value_check(lambda value: type(value) is bool, "true or false")
SHARE = number(0, 1)
SCALAR = value_check(
    lambda value: value is None or type(value) in (bool, int, float, str), "a number, a string, true, false or null"
)


def anything(value: Any, where: str) -> Any:
    """Accept any JSON value, for values that are only passed on."""
    return value


def optional(check: Check) -> Check:
    """Return a check that also accepts null."""
    return lambda value, where: None if value is None else check(value, where)


def list_of(check: Check, least: int = 0, most: int = 2**20) -> Check:
    """Return a check for a list whose items pass ``check``."""
    is_list = value_check(
        lambda value: type(value) is list and least <= len(value) <= most, f"a list of {least:,} to {most:,} values"
    )

    def check_all(value: Any, where: str) -> list[Any]:
        return [check(one, f"{where}[{place}]") for place, one in enumerate(is_list(value, where))]

    return check_all


def tuple_of(check: Check, least: int = 0, most: int = 2**20) -> Check:
    """Return the check of :func:`list_of`, with a tuple as its result."""
    as_list = list_of(check, least, most)
    return lambda value, where: tuple(as_list(value, where))


def mapping_of(check: Check) -> Check:
    """Return a check for an object with any keys whose values pass ``check``."""
    is_mapping = value_check(lambda value: type(value) is dict, "an object")

    def check_all(value: Any, where: str) -> dict[str, Any]:
        return {name: check(one, _inside(where, name)) for name, one in is_mapping(value, where).items()}

    return check_all


def record(fields: Mapping[str, Check], defaults: Mapping[str, Any] | None = None, more: Check | None = None) -> Check:
    """Return a check for an object with these ``fields``.

    Fields with a default may be missing, and the result then has the default. Other fields must pass ``more``, or are
    not accepted if it is None.
    """
    defaults = defaults or {}
    is_mapping = value_check(lambda value: type(value) is dict, f"an object with {', '.join(fields)}")

    def check_all(value: Any, where: str) -> dict[str, Any]:
        found = {**defaults, **is_mapping(value, where)}
        missing = next((name for name in fields if name not in found), None)
        if missing is not None:
            raise DataError(f"{where} lacks {missing}: the file is damaged or from another version.")
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
    """Return the name of a field of an object; a long key is shortened."""
    return f"{where}.{name if name.isidentifier() and len(name) < 40 else show(name)}"


class Array(NamedTuple):
    """The expected shape, type and range of an array in a file."""

    shape: tuple[int | str, ...]
    """The sizes; a named size may have any value, but the same wherever the name occurs."""
    dtypes: tuple[torch.dtype, ...] = FLOATS
    low: float | None = None
    high: float | None = None
    """The largest value; all values must be finite, except that ``math.inf`` here allows infinite values."""
    gaps: bool = False
    """Whether NaN may stand for a missing value."""


def check_arrays(found: Mapping[str, Tensor], expected: Mapping[str, Array]) -> dict[str, int]:
    """Raise a ``DataError`` unless the arrays are as ``expected``; return the named sizes."""
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
