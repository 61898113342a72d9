"""Compute descriptors and fingerprints of molecules with RDKit, as numbers that are given beside graphs.

The name of a number begins with its kind: ``rdkit2d MolWt``, ``morgan 17``, ``atom-pairs 3``. No number depends on the
order of the atoms or on whether hydrogens are written.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from sopool.data.formats.atoms import assign_stereochemistry
from sopool.data.formats.rdkit import rdkit_module
from sopool.data.graphs import MAX_TARGET
from sopool.data.pack import NamedNumbers
from sopool.errors import SettingError, check_name

BITS = 1024
"""The length of fingerprints."""
MORGAN_RADIUS = 2
"""The radius of Morgan fingerprints in bonds: 2 is that of ECFP4."""
UNSTABLE = {"Ipc", "AvgIpc", "MaxPartialCharge", "MinPartialCharge", "MaxAbsPartialCharge", "MinAbsPartialCharge"}
"""Descriptors of RDKit that depend on the order of the atoms. The information content Ipc is a sum of very large
numbers, of which rounding leaves nothing; the extreme partial charges are those before or after the first unknown one.
"""

Numbers = Callable[[Any], Any]
"""A function that returns the numbers of a molecule."""


def _rdkit2d_names() -> list[str]:
    """Return the names of RDKit's descriptors of the structural formula."""
    known = rdkit_module("Chem.Descriptors").CalcMolDescriptors(rdkit_module("Chem").MolFromSmiles("C"))
    return [name for name in known if name not in UNSTABLE]


def _rdkit2d(names: Sequence[str]) -> Numbers:
    module = rdkit_module("Chem.Descriptors")
    missing = next((name for name in names if not hasattr(module, name)), None)
    if missing is not None:
        version = rdkit_module("rdBase").rdkitVersion
        raise SettingError(
            f"RDKit {version} has no descriptor {missing!r}: install a version that has, or train the model again."
        )
    functions = [getattr(module, name) for name in names]
    return lambda molecule: [_number(function, molecule) for function in functions]


def _number(function: Callable[[Any], float], molecule: Any) -> float:
    """Return a descriptor, NaN if it is infinite, too large or cannot be computed."""
    try:
        value = float(function(molecule))
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        return float("nan")
    return value if abs(value) <= MAX_TARGET else float("nan")


def _places() -> list[str]:
    return list(map(str, range(BITS)))


def _fingerprint(generator: str, options: dict[str, int], names: Sequence[str]) -> Numbers:
    """Return a function for the counts of a fingerprint, which is folded to its length."""
    make = getattr(rdkit_module("Chem.rdFingerprintGenerator"), generator)
    count = make(fpSize=BITS, **options).GetCountFingerprintAsNumPy
    places = np.array(list(map(int, names)))
    return lambda molecule: count(molecule)[places]


KINDS: dict[str, tuple[Callable[[], list[str]], Callable[[Sequence[str]], Numbers]]] = {
    "rdkit2d": (_rdkit2d_names, _rdkit2d),
    "morgan": (_places, partial(_fingerprint, "GetMorganGenerator", {"radius": MORGAN_RADIUS})),
    "atom-pairs": (_places, partial(_fingerprint, "GetAtomPairGenerator", {})),
}
"""For each kind of descriptors, a function for their names, and one that makes the function for some of them."""


def descriptor_names(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all descriptors of some kinds.

    Args:
        kinds: Any of ``"rdkit2d"``, ``"morgan"`` and ``"atom-pairs"``.
    """
    if isinstance(kinds, str):
        raise SettingError(f"descriptors={kinds!r} is a string, expected a list such as [{kinds!r}].")
    for kind in kinds:
        check_name("kind of descriptors", kind, KINDS)
    return tuple(f"{kind} {name}" for kind in dict.fromkeys(kinds) for name in KINDS[kind][0]())


def is_descriptor(name: str) -> bool:
    """Return whether a number beside a graph is a descriptor, by its name."""
    kind, space, _ = name.partition(" ")
    return bool(space) and kind in KINDS


@lru_cache(maxsize=4)
def calculator(names: tuple[str, ...]) -> Callable[[Any], NamedNumbers]:
    """Return a function that computes descriptors of sanitized RDKit molecules, NaN where one cannot be computed.

    Args:
        names: The names of the descriptors, as :func:`descriptor_names` returns them.
    """
    order = {name: place for place, name in enumerate(names)}
    parts: list[tuple[list[int], Numbers]] = []
    split = [name.split(" ", 1) for name in names]
    for kind, (_, prepare) in KINDS.items():
        places = [place for place, (own, _) in enumerate(split) if own == kind]
        if places:
            parts.append((places, prepare([split[place][1] for place in places])))

    def compute(molecule: Any) -> NamedNumbers:
        if any(atom.GetAtomicNum() == 1 for atom in molecule.GetAtoms()):
            molecule = rdkit_module("Chem").RemoveHs(molecule)
        assign_stereochemistry(molecule)
        values = np.empty(len(names), np.float32)
        for places, numbers in parts:
            values[places] = numbers(molecule)
        return NamedNumbers(order, values)

    return compute
