"""Fingerprints and descriptors of molecules, which are read beside the graphs."""

from functools import partial
from typing import Any

import numpy as np

from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError
from sopool.experiments.systems.registry import fixed

KINDS = {
    "morgan": ("the substructures of up to 2 bonds around each atom (Morgan fingerprint)", "Rogers and Hahn, 2010"),
    "atom-pairs": ("the pairs of atoms by their distance (atom-pair fingerprint)", "Carhart et al., 1985"),
    "rdkit2d": ("RDKit's descriptors of the molecule", "-"),
}
"""What each kind of descriptors sees, and its source."""


def without(kind: str, store: PackedGraphs) -> str | None:
    """Refuse graphs without a kind of descriptors."""
    if _columns(kind, store):
        return None
    return f"needs molecules read with descriptors={kind}, in commands --descriptors {kind}"


def descriptors(kind: str, store: PackedGraphs) -> np.ndarray:
    """Return the fingerprint or the descriptors of each molecule, NaN where RDKit cannot compute one.

    They are computed when molecules are read: ``load("molecules.csv", descriptors=["morgan"])``. Fingerprints are
    counts, folded to 1,024 numbers; see :mod:`sopool.data.formats.descriptors`. Trees accept NaN.

    Args:
        kind: ``"morgan"``, ``"atom-pairs"`` or ``"rdkit2d"``.
        store: The molecules.

    Returns:
        Dense ``[G, F]``.

    Examples:
        >>> from sopool.data import Graph, pack
        >>> from sopool.experiments.systems.fixed.molecules import descriptors
        >>> water = pack([Graph(1, graph_attributes={"rdkit2d MolWt": 18.0, "price": 1.0})])
        >>> descriptors("rdkit2d", water).tolist()
        [[18.0]]
    """
    columns = _columns(kind, store)
    if not columns or store.graph_attributes is None:
        raise DataError(
            f"the graphs of {store.name} have no {kind} numbers: read molecules with descriptors=[{kind!r}]."
        )
    found: np.ndarray = store.graph_attributes.cpu().numpy()[:, columns]
    return found


def _columns(kind: str, store: PackedGraphs) -> list[int]:
    return [place for place, name in enumerate(store.graph_attribute_names) if name.startswith(f"{kind} ")]


def _represent(kind: str) -> Any:
    """Return the function of a store that the registry keeps."""

    def represent(store: PackedGraphs) -> np.ndarray:
        return descriptors(kind, store)

    return represent


for _kind, (_sees, _paper) in KINDS.items():
    for _learner in ("forest", "boosting"):
        fixed(
            f"{_kind}-{_learner}",
            sees=_sees,
            learner=_learner,
            paper=_paper,
            cost="N",
            refuses=partial(without, _kind),
        )(_represent(_kind))
