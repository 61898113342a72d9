"""Numbers of nodes, edges or graphs, and the mean and spread by which they are standardized."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor

from sopool.errors import DataError

LARGEST = 3.5e38
"""A bound that no float32 exceeds."""
TOGETHER = 2**24
"""The number of values in double precision from which moments are computed at a time."""


class Moments(NamedTuple):
    """What is subtracted from each column of numbers, and what it is divided by then.

    Examples:
        >>> import torch
        >>> from sopool.data.features.numbers import Moments
        >>> Moments.neutral(2).scale
        tensor([1., 1.], dtype=torch.float64)
    """

    shift: Tensor
    """The mean of each of D columns, float64 ``[..., D]``."""
    scale: Tensor
    """The standard deviation of each column, float64 ``[..., D]``; 1 for columns that are not divided."""

    @classmethod
    def neutral(cls, columns: int, device: torch.device | str = "cpu") -> "Moments":
        """Return the moments that leave numbers as they are."""
        zeros = torch.zeros(columns, dtype=torch.float64, device=device)
        return cls(zeros, torch.ones_like(zeros))

    @classmethod
    def stack(cls, each: Sequence["Moments"]) -> "Moments":
        """Return the moments of M models as rows ``[M, D]``."""
        shifts, scales = zip(*each, strict=True)
        return cls(torch.stack(shifts), torch.stack(scales))

    def to(self, device: torch.device | str) -> "Moments":
        """Return the moments on another device."""
        return Moments(self.shift.to(device), self.scale.to(device))

    def rows(self, rows: Tensor | slice | list[int]) -> "Moments":
        """Return some rows of the moments of several models."""
        return Moments(self.shift[rows], self.scale[rows])


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers as they were given, and the moments by which they are standardized.

    Examples:
        >>> import torch
        >>> from sopool.data.features.numbers import Numbers
        >>> numbers = Numbers.of(torch.tensor([[1.0], [3.0]]))
        >>> numbers.values.flatten(), numbers.take().flatten()
        (tensor([1., 3.]), tensor([-1.,  1.]))
    """

    values: Tensor
    """The numbers, float32 ``[N, D]``; NaN where one is missing."""
    moments: Moments
    """The moments of the encoder, ``[D]`` each."""
    rounding: Tensor
    """The standard deviation up to which each column counts as constant, float64 ``[D]``; NaN for columns that are
    never standardized."""

    @classmethod
    def of(cls, values: Tensor, standardize: bool = True, rounding: float = 0.0) -> "Numbers":
        """Return numbers with their own moments."""
        numbers = cls.given(values, Moments.neutral(values.shape[1]), standardize, rounding)
        return replace(numbers, moments=numbers.moments_of())

    @classmethod
    def given(cls, values: Tensor, moments: Moments, standardize: bool = True, rounding: float = 0.0) -> "Numbers":
        """Return numbers with the given moments."""
        limit = rounding if standardize else float("nan")
        limits = torch.full((values.shape[1],), limit, dtype=torch.float64, device=values.device)
        return cls(values, moments.to(values.device), limits)

    @property
    def width(self) -> int:
        """The number of columns D."""
        return self.values.shape[1]

    def moments_of(self, rows: Tensor | None = None) -> Moments:
        """Return the moments of some rows, computed in double precision from these alone.

        Constant columns are centered only. Columns of zeros and ones, which say whether something is so, and those that
        are never standardized keep their values.

        Args:
            rows: The indices of the rows, or a mask. Default: None, all rows.
        """
        count = len(self.values) if rows is None else int(rows.sum()) if rows.dtype == torch.bool else len(rows)
        if not count or not self.width:
            return Moments.neutral(self.width, self.values.device)
        each = []
        for some in torch.arange(self.width, device=self.values.device).split(max(1, TOGETHER // count)):
            values = self.values[:, some] if self.width > len(some) else self.values
            each.append(_moments((values if rows is None else values[rows]).double(), self.rounding[some]))
        shifts, scales = zip(*each, strict=True)
        return Moments(torch.cat(shifts), torch.cat(scales))

    def take(self, rows: Tensor | None = None, moments: Moments | None = None, models: Tensor | None = None) -> Tensor:
        """Return some or all rows standardized, float32 ``[n, D]``.

        Args:
            rows: The indices of the rows. Default: None, all rows.
            moments: The moments of M models, ``[M, D]`` each. Default: None, the encoder's.
            models: The model for each row, int64 ``[n]``; needed with ``moments``. Default: None.
        """
        shift, scale = self.moments
        if moments is not None and models is not None:
            shift, scale = (each.index_select(0, models) for each in moments)
        values = self.values if rows is None else self.values.index_select(0, rows)
        # In double precision: the mean may be much larger than the spread.
        return ((values - shift) / scale).float()

    def stretch(self, first: int, last: int) -> "Numbers":
        """Return the rows from ``first`` up to but not including ``last``, as a view."""
        return replace(self, values=self.values[first:last])

    def to(self, device: torch.device | str) -> "Numbers":
        """Return the numbers on another device."""
        return Numbers(self.values.to(device), self.moments.to(device), self.rounding.to(device))


def moments_to_json(moments: Moments) -> dict[str, list[float]]:
    """Return the moments of a single encoder as JSON."""
    return {"mean": moments.shift.tolist(), "std": moments.scale.tolist()}


def moments_from_json(saved: Any, where: str) -> Moments:
    """Return what :func:`moments_to_json` made; raise a ``DataError`` if it is invalid."""
    known = isinstance(saved, dict) and set(saved) == {"mean", "std"}
    mean, std = (saved["mean"], saved["std"]) if known else (None, None)
    if not (_are_numbers(mean) and _are_numbers(std) and len(mean) == len(std) and min(std) > 0):
        raise DataError(f"{where}: expected mean and std to be equally long lists of finite numbers, std above 0.")
    return Moments(*torch.tensor([mean, std], dtype=torch.float64))


def _are_numbers(values: Any) -> TypeGuard[list[float]]:
    """Return whether this is a non-empty list of finite numbers; a comparison with NaN is false."""
    some = isinstance(values, list) and len(values) > 0
    return some and all(type(value) in (float, int) and abs(value) < LARGEST for value in values)


def side_by_side(parts: Sequence[Numbers]) -> Numbers:
    """Return numbers with the columns of all parts."""
    shifts, scales = zip(*(part.moments for part in parts), strict=True)
    return Numbers(
        torch.cat([part.values for part in parts], 1),
        Moments(torch.cat(shifts), torch.cat(scales)),
        torch.cat([part.rounding for part in parts]),
    )


def _moments(values: Tensor, rounding: Tensor) -> Moments:
    """Return the moments of numbers, float64 ``[n, D]``, as :meth:`Numbers.moments_of`."""
    known = ~values.isnan()
    count = known.sum(0).clamp(min=1)
    mean = values.where(known, 0).sum(0) / count
    std = ((values - mean).where(known, 0).square().sum(0) / count).sqrt()
    low = values.where(known, torch.inf).amin(0)
    high = values.where(known, -torch.inf).amax(0)
    constant = (low == high) | (std <= rounding)  # the computed deviation of equal numbers is not always zero
    flags = ((values == 0) | (values == 1) | ~known).all(0) & (rounding == 0)  # rounded numbers only look like them
    as_given = flags | rounding.isnan()
    shift = torch.where(constant, low, mean).where(~as_given, 0)
    return Moments(shift, std.where(~(constant | as_given), 1))
