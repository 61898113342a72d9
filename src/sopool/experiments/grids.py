"""Infer which runs of a store belong together: settings that were compared in a grid, or evaluated one by one.

This is for stores of earlier versions and for runs that no request names, see :mod:`sopool.training.runs.requests`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sopool.models.config import Setting
from sopool.training.runs.config import RunConfig

Settings = frozenset[Setting]


def by_length(group: Sequence[RunConfig]) -> list[list[RunConfig]]:
    """Separate runs whose lengths were given; keep those together whose lengths follow from fold and batch size."""
    parts = [list(group)]
    for which in range(len(group[0].lengths)):
        parts = [piece for part in parts for piece in _by_length(part, which)]
    return parts


def _by_length(group: list[RunConfig], which: int) -> list[list[RunConfig]]:
    """Separate runs by one length, which was given if every fold and batch size has it and some have others, too."""
    found: dict[tuple[int, int], set[object]] = defaultdict(set)
    for config in group:
        found[config.fold, config.batch_size].add(config.lengths[which])
    if all(len(lengths) == 1 for lengths in found.values()):
        return [group]
    asked = set.intersection(*found.values())
    each_its_own = all(len(lengths - asked) <= 1 for lengths in found.values())
    parts: dict[object, list[RunConfig]] = defaultdict(list)
    for config in group:
        own = config.lengths[which]
        parts["its own" if each_its_own and own not in asked else own].append(config)
    return list(parts.values())


def by_grid(parts: Iterable[tuple[str, list[RunConfig]]]) -> list[tuple[list[RunConfig], Settings | None]]:
    """Split the parts of a store, each with the key of its place, where settings were evaluated one by one.

    Final runs at a setting without validation runs were requested on their own. So were some settings among many, under
    any protocol, if they are all the settings that another pooling of the same place has: for example two presets in
    one
    store, a sum with and without dropout, and another pooling with each. Runs that belong to one of these grids, of any
    pooling and protocol, are grouped, together with their settings; if there is only one grid, its settings are left
    out.
    """
    every = [(where, _Asked(part)) for where, part in parts]
    known: dict[str, set[Settings]] = defaultdict(set)
    for where, asked in every:
        known[where] |= {*asked.alone, asked.test, asked.validation} - {Settings()}
    apart: dict[str, set[Settings]] = defaultdict(set)
    for where, asked in every:
        test, fair = asked.grids(known[where])
        if len(test) > 1 or len(fair) > 1:
            apart[where] |= {*test, *fair}
    return [piece for where, asked in every for piece in asked.pieces(known[where], apart[where])]


class _Asked:
    """The settings of one pooling's runs, by the graphs that they are scored on."""

    def __init__(self, part: list[RunConfig]) -> None:
        self.part = part
        self.test = Settings(config.setting for config in part if config.looks == "test")
        self.validation = Settings(config.setting for config in part if config.looks == "validation")
        final = {config.setting for config in part if config.looks == "chosen"}
        self.alone = [Settings([setting]) for setting in sorted(final - self.validation)]

    def grids(self, known: set[Settings]) -> tuple[list[Settings], list[Settings]]:
        """Return the grids of the protocols that score the test folds at every epoch, and those of ``fair``."""
        return _split(self.test, known), [*_split(self.validation, known), *self.alone]

    def pieces(self, known: set[Settings], apart: set[Settings]) -> list[tuple[list[RunConfig], Settings | None]]:
        """Return its runs by grid if any of its grids stands ``apart``; otherwise all of them."""
        test, fair = self.grids(known)
        grids = dict.fromkeys([*test, *fair])
        if not apart & set(grids):
            return [(self.part, None)]
        found = []
        for grid in grids:
            looks = ["test"] * (grid in test) + ["validation", "chosen"] * (grid in fair)
            runs = [config for config in self.part if config.looks in looks and config.setting in grid]
            found.append((runs, grid if grid in apart else None))
        return found


def _split(grid: Settings, known: set[Settings]) -> list[Settings]:
    """Split a grid into the smaller ones it consists of, if they are ``known``; otherwise return it as it is."""
    smaller = [one for one in known if one < grid]
    largest = sorted((one for one in smaller if not any(one < other for other in smaller)), key=sorted)
    if sum(map(len, largest)) == len(grid) and Settings().union(*largest) == grid:
        return [piece for one in largest for piece in _split(one, known)]
    return [grid] if grid else []
