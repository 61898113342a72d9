"""Convert labels and class names between files, Python and integer codes."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.errors import DataError

LabelNames = tuple[str | int, ...]
WHOLE = re.compile(r"([+-]?[0-9]{1,18})(\.0*)?")
"""How a file may write an integer label: 1, 01 or, as pandas does in a column with missing values, 1.0."""


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


def refuse_fractions(labels: Sequence[Any]) -> None:
    """Raise a ``DataError`` if labels have fractions, because they are measurements and not classes."""
    odd = [label for label in labels if isinstance(label, float) and not label.is_integer()]
    if odd:
        others = f", and neither are {len(odd) - 1:,} others of {len(labels):,}" if len(odd) > 1 else ""
        raise DataError(
            f"the label {odd[0]} is not a class{others}: numbers with fractions are for regression. Give classes as "
            "strings or whole numbers."
        )


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
