"""Match the categories of nodes and edges by name, so that stores may number them differently."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sopool.data.graphs import CATEGORIES, PackedGraphs
from sopool.data.names import CategoryColumn, LabelNames, check_column_names
from sopool.errors import DataError


def occurring(codes: Tensor, names: Sequence[str | int]) -> list[str | int]:
    """Return the values that some codes ``[n]`` stand for, numbers before strings."""
    return sorted((names[code] for code in codes.unique().tolist()), key=lambda value: (isinstance(value, str), value))


def matched(codes: Tensor, names: Sequence[str | int], known: Sequence[str | int]) -> Tensor:
    """Return the position of each value among the K known ones, int32 ``[n]``, and K for all other values."""
    number = {value: i for i, value in enumerate(known)}
    table = [number.get(name, len(number)) for name in names]
    return torch.tensor(table, dtype=torch.int32, device=codes.device)[codes.long()]


def column_of(store: PackedGraphs, field: str, name: str) -> tuple[Tensor, LabelNames]:
    """Return the codes and the values of a column of ``node_categories`` or ``edge_categories`` by its name."""
    columns: tuple[CategoryColumn, ...] = getattr(store, CATEGORIES[field])
    names = [column.name for column in columns]
    if name not in names:
        raise DataError(
            f"the {field} of {store.name} have the columns {names}, but not {name!r}, which the training graphs had."
        )
    place = names.index(name)
    return getattr(store, field)[:, place], columns[place].values


def values_from_json(saved: Any, where: str) -> list[str | int]:
    """Return distinct strings or integers from a file; raise a ``DataError`` if they are not."""
    plain = isinstance(saved, list) and saved and all(type(value) in (str, int) for value in saved)
    if not plain or len(set(saved)) < len(saved):
        raise DataError(f"{where}: expected a list of distinct strings or integers.")
    found: list[str | int] = saved
    return found


def columns_from_json(saved: Any, where: str) -> list[CategoryColumn]:
    """Return the columns that :func:`columns_to_json` made; raise a ``DataError`` if they are invalid."""
    keys = {"name", "values"}
    if not isinstance(saved, list) or not all(isinstance(one, dict) and set(one) == keys for one in saved):
        raise DataError(f"{where}: expected a list of columns, each with a name and values.")
    try:
        check_column_names("column", [one["name"] for one in saved])
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    return [CategoryColumn(one["name"], tuple(values_from_json(one["values"], where))) for one in saved]


def columns_to_json(columns: Sequence[CategoryColumn]) -> list[dict[str, Any]]:
    """Return columns as JSON."""
    return [{"name": column.name, "values": list(column.values)} for column in columns]
