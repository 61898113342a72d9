"""Parse lines of numbers to arrays in a stream, without a Python object per line or number for plain text."""

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sopool.data.formats import limits
from sopool.data.formats.archive import Text
from sopool.data.graphs import MAX_TARGET
from sopool.data.names import LabelNames
from sopool.errors import DataError

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DIGITS = b"0123456789"
NOT_SEPARATORS = bytes(sorted(set(range(256)) - set(b",\n")))
INT64 = np.iinfo(np.int64)


class Block(NamedTuple):
    """Complete lines of a file, without blank lines at the end."""

    text: bytes
    rows: int
    first: int
    """The number of its first line, from 1."""


def line_blocks(text: Text) -> Iterator[Block]:
    """Split chunks at line ends, without Windows line ends, a byte order mark and blank lines at the end."""
    first, blank, rest = 1, 0, b""
    for chunk in chain(text.chunks, (b"\n",)):
        joined = rest + chunk
        cut = joined.rfind(b"\n") + 1
        lines = joined[:cut]
        rest = joined[cut:]
        if len(rest) > limits.MAX_LINE:
            raise DataError(
                f"a line has more than {limits.MAX_LINE:,} bytes, expected short lines of numbers.", text.where, first
            )
        if first == 1:
            lines = lines.removeprefix(BYTE_ORDER_MARK)
        if b"\r" in lines:
            lines = lines.replace(b"\r\n", b"\n")
        body = lines.rstrip()
        if body and blank:
            raise DataError("a blank line, expected numbers.", text.where, first)
        rows = body.count(b"\n") + 1 if body else 0
        if body:
            yield Block(body + b"\n", rows, first)
        blank += lines.count(b"\n", len(body)) - (1 if body else 0)
        first += rows
    if first == 1:
        raise DataError("the file is empty.", text.where)


def integer_blocks(text: Text, what: str, columns: int | None = None, advice: str = "") -> Iterator[tuple[int, Ints]]:
    """Yield (line number, integers ``[rows, columns]``) for each block; the first line may define ``columns``.

    ``advice`` follows the error about a value that is not an integer.
    """
    for block in line_blocks(text):
        columns = columns or _width(block)
        values = _plain(block, columns)
        if values is None:
            values = _parsed(block, columns, int, np.int64)
        if values is None:
            _report(block, columns, _integer_fault, text.where, what, advice)
        yield block.first, values


def read_integers(text: Text, what: str, columns: int | None = None, advice: str = "") -> Ints:
    """Read a file of integers as ``[rows, columns]``; ``what`` is the word for one of them in errors."""
    return np.concatenate([values for _, values in integer_blocks(text, what, columns, advice)])


def read_floats(text: Text, what: str) -> Floats:
    """Read a file of finite numbers as float32 ``[rows, columns]``."""
    return np.concatenate(list(_float_blocks(text, what, _single, _float_fault)))


def read_targets(text: Text, what: str) -> Doubles:
    """Read a file of numbers as float64 ``[rows, columns]``; NaN is accepted."""
    return np.concatenate(list(_float_blocks(text, what, _targets, _target_fault)))


def _float_blocks(
    text: Text, what: str, convert: Callable[[Doubles], NDArray[Any] | None], fault: Callable[[bytes], str]
) -> Iterator[NDArray[Any]]:
    """Yield the numbers of each block; ``convert`` returns None if there is one with a ``fault``."""
    columns = 0
    for block in line_blocks(text):
        columns = columns or _width(block)
        values = _parsed(block, columns, float, np.float64)
        fine = None if values is None else convert(values)
        if fine is None:
            _report(block, columns, fault, text.where, what)
        yield fine


def _single(values: Doubles) -> Floats | None:
    with np.errstate(over="ignore"):
        small = values.astype(np.float32)
    return small if np.isfinite(small).all() else None


def _targets(values: Doubles) -> Doubles | None:
    return None if (np.abs(values) > MAX_TARGET).any() else values


def label_codes(labels: Ints) -> tuple[Tensor, LabelNames]:
    """Encode integers ``[N]`` as codes from 0 in the order of their values, and return these."""
    values, codes = np.unique(labels, return_inverse=True)
    return torch.from_numpy(codes), tuple(values.tolist())


def shown(field: bytes) -> str:
    """Return a part of a file for an error message."""
    text = field.strip()
    return repr(text if len(text) <= 40 else text[:40] + b"...").removeprefix("b")


def _width(block: Block) -> int:
    return block.text.count(b",", 0, block.text.index(b"\n")) + 1


def _repeats(text: bytes, line: bytes, rows: int) -> bool:
    return len(text) == len(line) * rows and text == line * rows


def _plain(block: Block, columns: int) -> Ints | None:
    """Parse digits with uniform separators in C; return None if the text has anything else or overflows."""
    # NumPy's parser accepts any blank as a separator and stops silently at unknown characters. The text without digits
    # shows that there are no such characters, and the number of values shows that none is missing.
    left = block.text.translate(None, DIGITS)
    if not any(_repeats(left, comma * (columns - 1) + b"\n", block.rows) for comma in (b", ", b",")):
        return None
    values: Ints = np.fromstring(block.text.replace(b",", b" "), np.int64, sep=" ")
    if values.size != block.rows * columns or values.max() == INT64.max:
        return None
    return values.reshape(block.rows, columns)


def _parsed(block: Block, columns: int, number: Callable[[bytes], float], dtype: type[Any]) -> NDArray[Any] | None:
    """Parse everything that Python accepts as numbers; return None if the text has anything else."""
    left = block.text.translate(None, NOT_SEPARATORS)
    if not _repeats(left, b"," * (columns - 1) + b"\n", block.rows) or b"_" in block.text:
        return None
    fields = block.text[:-1].replace(b"\n", b",").split(b",")
    try:
        return np.fromiter(map(number, fields), dtype, len(fields)).reshape(block.rows, columns)
    except (ValueError, OverflowError):
        return None


def _report(
    block: Block, columns: int, fault: Callable[[bytes], str], where: str, what: str, advice: str = ""
) -> NoReturn:
    """Raise the error for the first bad line of a block that could not be parsed."""
    for number, line in enumerate(block.text[:-1].split(b"\n"), block.first):
        if not line.strip():
            raise DataError("a blank line, expected numbers.", where, number)
        found = line.count(b",") + 1
        if found != columns:
            raise DataError(f"{found} columns, expected {columns} separated by commas: {shown(line)}.", where, number)
        for field in line.split(b","):
            if reason := fault(field):
                raise DataError(f"the {what} {shown(field)} is {reason}.{advice}", where, number)
    raise DataError(f"cannot be parsed as a table of {columns} columns.", where, block.first)


def _integer_fault(field: bytes) -> str:
    try:
        value = int(field)
    except ValueError:
        return "not an integer"
    if b"_" in field:
        return "not an integer"
    return "" if INT64.min <= value <= INT64.max else "too large for 64 bits"


def _float_fault(field: bytes) -> str:
    value = _number(field)
    if value is None:
        return "not a number"
    if not math.isfinite(value):
        return "not finite"
    with np.errstate(over="ignore"):
        return "" if np.isfinite(np.float32(value)) else "too large for float32"


def _target_fault(field: bytes) -> str:
    value = _number(field)
    if value is None:
        return "not a number; write nan if it is missing"
    return f"larger than {MAX_TARGET:g} in size" if abs(value) > MAX_TARGET else ""


def _number(field: bytes) -> float | None:
    try:
        value = float(field)
    except ValueError:
        return None
    return None if b"_" in field else value
