"""Labels and classes as users write them: words and whole numbers, none of which reads like another."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool.errors import DataError

LabelNames = tuple[str | int, ...]
WHOLE = re.compile(r"([+-]?[0-9]{1,18})(\.0*)?")
"""How a file may write a label that is a whole number: 1, 01, and 1.0, as pandas does where a label is missing."""


def plain(value: Any) -> Any:
    """What NumPy or PyTorch wraps as Python has it, also inside of lists and mappings; anything else as it is."""
    if isinstance(value, Mapping):
        return {plain(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    if isinstance(value, Tensor):
        return value.item() if value.numel() == 1 else value.tolist()
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def whole_number(text: str) -> int | None:
    """The whole number that a label of a file stands for; None for a word."""
    found = WHOLE.fullmatch(text)
    return int(found[1]) if found else None


def refuse_fractions(labels: Sequence[Any], path: str | Path | None = None) -> None:
    """Raise a ``DataError`` where labels are numbers with fractions: measurements, which are no classes."""
    odd = [label for label in labels if isinstance(label, float) and not label.is_integer()]
    if odd:
        others = f", and neither are {len(odd) - 1:,} others of {len(labels):,}" if len(odd) > 1 else ""
        raise DataError(
            f"the label {odd[0]} is no class{others}: numbers with fractions are for regression, which is not "
            "available yet. Give classes, named by words or by whole numbers.",
            path,
        )


def labels_of_texts(texts: Sequence[str], path: str | Path | None = None) -> Sequence[str | int]:
    """Return the labels that the texts of a file stand for: whole numbers if all of them are, else the texts."""
    refuse_fractions([number_in(text) for text in texts], path)
    numbers = [whole_number(text) for text in texts]
    whole = [number for number in numbers if number is not None]
    return whole if len(whole) == len(texts) else texts


def number_in(text: str) -> float | None:
    """Return the finite number that a label of a file is; None for a word."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def reads(value: Any) -> str:
    """How a label reads in a file; 1.0 as 1 does."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def sort_names(values: Sequence[Any]) -> list[Any]:
    """The distinct ones, numbers before words; a ``DataError`` where a number and a word read alike."""
    names = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    words = {name for name in names if isinstance(name, str)}
    # All of them are looked at, since one name stands for False, 0 and 0.0.
    twice = next((value for value in words and values if not isinstance(value, str) and reads(value) in words), None)
    if twice is not None:
        raise DataError(
            f"both {twice!r}, of type {type(twice).__name__}, and the text {reads(twice)!r} are among the labels: they "
            "read alike. Write both as numbers or both as texts."
        )
    return names


def name_array(values: Sequence[Any]) -> np.ndarray:
    """Words and numbers as an array of one type that gives them back as they are; of objects if there is none."""
    array = np.array(values)
    exact = array.tolist() == list(values)  # large numbers would be rounded, numbers beside words become words
    return array if exact else np.array(values, dtype=object)


def number_names(values: Sequence[str | int]) -> tuple[Tensor, LabelNames]:
    """Labels of any kind as numbers from 0 [len], and the names they stand for, sorted (numbers before words)."""
    names = sort_names(values)
    number = {name: i for i, name in enumerate(names)}
    codes = np.fromiter(map(number.__getitem__, values), np.int64, len(values))
    return torch.from_numpy(codes), tuple(names)
