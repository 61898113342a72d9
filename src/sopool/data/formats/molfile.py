"""Count the atoms and rings of an SDF record without RDKit.

RDKit searches for rings as soon as it reads a record, and the memory and time for that may be unbounded, so they are
counted first. If a record is malformed, too many rings are counted, never too few.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sopool.errors import DataError

V3000 = "M  V30 "
"""The start of each line in the newer of the two formats."""


class MolfileSize(NamedTuple):
    """The size of a molecule, on which the cost of reading it depends."""

    atoms: int
    bonds: int
    rings: int
    """The number of bonds that close a ring."""


def molfile_size(text: str) -> MolfileSize:
    """Count the atoms, bonds and rings of a molecule from its text."""
    lines = text.split("\n")
    counts = lines[3] if len(lines) > 3 else ""
    if counts[34:39] == "V3000":
        return _size_v3000(text)
    atoms = _count(counts[:3])
    bonds = _count(counts[3:6])
    ends = ((line[:3], line[3:6]) for line in lines[4 + atoms : 4 + atoms + bonds])
    return MolfileSize(atoms, bonds, bonds - _tree_bonds(ends))


def _size_v3000(text: str) -> MolfileSize:
    # A line that ends in a hyphen continues on the next one.
    joined = "\n".join(line.rstrip() for line in text.split("\n")[4:]).replace(f"-\n{V3000}", "")
    lines = [line.removeprefix(V3000).split() for line in joined.split("\n")]
    if len(lines) < 2 or len(lines[1]) < 3 or lines[1][0] != "COUNTS":
        raise DataError("The record has no line of counts, 'M  V30 COUNTS atoms bonds ...'.")
    atoms = _count(lines[1][1])
    bonds = _count(lines[1][2])
    start = 2 + (atoms + 2 if atoms else 0)
    block = lines[start : start + 1 + bonds]
    if ["END", "BOND"] in block:
        block = block[: block.index(["END", "BOND"])]
    ends = ((line[2], line[3]) for line in block[1:] if len(line) > 3)
    known = _tree_bonds(ends) if block[:1] == [["BEGIN", "BOND"]] else 0
    return MolfileSize(atoms, bonds, bonds - known)


def _count(text: str) -> int:
    """Parse a number of atoms or bonds; a blank means 0."""
    try:
        count = int(text.strip() or 0)
    except ValueError:
        count = -1
    if count < 0:
        raise DataError(f"The record gives {text!r} as a number of atoms or bonds, expected an integer.")
    return count


def _tree_bonds(ends: Iterable[tuple[str, str]]) -> int:
    """Return the number of bonds that join two atoms which the bonds before them do not connect."""
    above: dict[int, int] = {}

    def top(atom: int) -> int:
        while (next_one := above.get(atom, atom)) != atom:
            above[atom] = above.get(next_one, next_one)
            atom = next_one
        return atom

    joined = 0
    for pair in ends:
        try:
            first, second = (top(int(end)) for end in pair)
        except ValueError:
            continue
        if first != second:
            above[first] = second
            joined += 1
    return joined
