"""Name the atoms of a molecule as chemists do, from the columns of its graph. RDKit is not needed."""

from collections.abc import Mapping
from typing import Any

from sopool.data.formats.atoms import NONE, WILDCARD
from sopool.data.graphs import PackedGraphs

UNTOLD = (None, NONE, "unspecified", "s")
"""Values of the hybridization or the chirality that say nothing about an atom."""


def node_names(graph: PackedGraphs) -> list[str]:
    """Return a name for each node: its label, and for atoms also hydrogens, charge, hybridization and chirality.

    Names of atoms are, for example, ``"CH3 (sp3)"``, ``"NH3+"``, ``"NH (aromatic)"`` or ``"CH (sp3, R)"``, as far as
    the graph has the columns of :data:`~sopool.data.formats.atoms.ATOM_COLUMNS`. Nodes without labels have empty names.
    """
    if graph.node_labels is None:
        return [""] * graph.num_nodes
    labels = [str(graph.node_label_names[code]) for code in graph.node_labels.tolist()]
    known = atom_values(graph)
    rows = [dict(zip(known, values, strict=True)) for values in zip(*known.values(), strict=True)]
    return list(map(_name, labels, rows)) if rows else labels


def atom_values(graph: PackedGraphs) -> dict[str, list[Any]]:
    """Return the values ``[N]`` of each column of node categories by its name."""
    if graph.node_categories is None:
        return {}
    columns = zip(graph.node_category_columns, graph.node_categories.T.tolist(), strict=True)
    return {column.name: [column.values[code] for code in codes] for column, codes in columns}


def _name(label: str, known: Mapping[str, Any]) -> str:
    if not (label.isalpha() or label == WILDCARD):
        return label
    hydrogens, charge = (whole(known.get(name)) for name in ("hydrogens", "charge"))
    bonded = "H" * (hydrogens > 0) + str(hydrogens) * (hydrogens > 1)
    sign = str(abs(charge)) * (abs(charge) > 1) + ("" if not charge else "+" if charge > 0 else "-")
    alone = known.get("degree") == 0  # a free ion has no meaningful hybridization
    shape = None if alone else "aromatic" if known.get("aromatic") == "yes" else known.get("hybridization")
    notes = [str(note) for note in (shape, known.get("chirality")) if note not in UNTOLD]
    return f"{label}{bonded}{sign}" + (f" ({', '.join(notes)})" if notes else "")


def whole(value: Any) -> int:
    """Return a number of hydrogens or a charge; 0 for what is not a whole number."""
    return value if isinstance(value, int) else 0
