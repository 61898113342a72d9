"""Convert labels and class names between files, Python and integer codes."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sopool.errors import DataError

LabelNames = tuple[str | int, ...]
Needed = int | tuple[str, ...] | None
"""What a model needs of a field of graphs: that it is there (None), a number of columns, or the columns it names."""
WHOLE = re.compile(r"([+-]?[0-9]{1,18})(\.0*)?")
"""How a file may write an integer label: 1, 01 or, as pandas does in a column with missing values, 1.0."""


class CategoryColumn(NamedTuple):
    """A column of categories of nodes or edges, such as the formal charges of atoms.

    Examples:
        >>> from sopool.data import CategoryColumn
        >>> CategoryColumn("charge", (-1, 0, 1)).values[2]
        1
    """

    name: str
    values: LabelNames
    """The values that the codes of the column stand for, numbers before strings."""


def smallest_integers(codes: Tensor, columns: Sequence[CategoryColumn]) -> Tensor:
    """Return the codes of categories ``[N, C]`` in the smallest integer type that holds those of every column."""
    most = max((len(column.values) for column in columns), default=0)
    return codes.to(
        next(dtype for dtype, held in ((torch.uint8, 2**8), (torch.int16, 2**15), (torch.int32, 2**31)) if most <= held)
    )


def check_column_names(kind: str, names: Sequence[Any]) -> None:
    """Raise a ``DataError`` unless all names are different strings that can be written to a file.

    ``kind`` says what they are the names of, such as ``"target"``.
    """
    for name in names:
        if not isinstance(name, str) or not name:
            raise DataError(f"{name!r} is the name of a {kind}, expected strings that are not empty.")
    ((twice, times),) = Counter(names).most_common(1) if names else (("", 0),)
    if times > 1:
        raise DataError(f"{twice!r} is the name of more than one {kind}: give each a name of its own.")
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"the name of a {kind} contains half a character (a lone surrogate).") from error


def plain(value: Any) -> Any:
    """Convert NumPy and PyTorch values to plain Python, also inside lists and mappings; return others unchanged."""
    if isinstance(value, Mapping):
        return {plain(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    if isinstance(value, Tensor):
        return value.item() if value.numel() == 1 else value.tolist()
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def whole_number(text: str) -> int | None:
    """Return the integer that a label in a file stands for, or None for other strings."""
    found = WHOLE.fullmatch(text)
    return int(found[1]) if found else None


def label_of_text(text: str) -> str | float:
    """Return the number that a string in a file stands for if it has a fraction, else the string."""
    number = number_in(text)
    return text if number is None or number.is_integer() else number


def labels_of_texts(labels: Sequence[str | float]) -> Sequence[str | int | float]:
    """Return the labels that the results of :func:`label_of_text` stand for together.

    If one of them is a number with a fraction, all numbers become floats. Otherwise they are integers if all of them
    are integers, else strings.
    """
    texts = [label for label in labels if isinstance(label, str)]
    if len(texts) < len(labels):
        numbers = [number_in(label) if isinstance(label, str) else label for label in labels]
        return [label if number is None else number for label, number in zip(labels, numbers, strict=True)]
    whole = [number for number in map(whole_number, texts) if number is not None]
    return whole if len(whole) == len(texts) else texts


def number_in(text: str) -> float | None:
    """Return the finite number that a label in a file stands for, or None for other strings."""
    if "_" in text or not text.isascii():  # Python reads 1_000 and digits of all scripts
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def reads(value: Any) -> str:
    """Return a label as it is written in a file; 1.0 is written as 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def sort_names(values: Sequence[Any]) -> list[Any]:
    """Return the distinct labels, numbers before strings; raise if a number and a string are written alike."""
    names = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    words = {name for name in names if isinstance(name, str)}
    # All values are checked, because False, 0 and 0.0 are a single name.
    twice = next((value for value in words and values if not isinstance(value, str) and reads(value) in words), None)
    if twice is not None:
        raise DataError(
            f"the labels contain both {twice!r}, of type {type(twice).__name__}, and the string {reads(twice)!r}, "
            "which look the same in a file. Write both as numbers or both as strings."
        )
    return names


def name_array(values: Sequence[Any]) -> np.ndarray:
    """Return labels as an array of one type that keeps each value exactly, of objects if there is no such type."""
    array = np.array(values)
    exact = array.tolist() == list(values)  # NumPy rounds large numbers and converts numbers next to strings
    return array if exact else np.array(values, dtype=object)


def number_names(values: Sequence[str | int]) -> tuple[Tensor, LabelNames]:
    """Return labels as codes from 0, int64 ``[N]``, and the sorted names of the codes, numbers before strings."""
    names = sort_names(values)
    number = {name: i for i, name in enumerate(names)}
    codes = np.fromiter(map(number.__getitem__, values), np.int64, len(values))
    return torch.from_numpy(codes), tuple(names)
