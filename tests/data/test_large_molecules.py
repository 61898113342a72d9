"""Molecules whose rings would take too much memory to find are bad before RDKit looks for them."""

import io
import sys
from itertools import product
from types import SimpleNamespace

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.cli import options
from sopool.data import load
from sopool.data.formats import limits
from sopool.data.formats.drawable import molecule_of
from sopool.data.formats.molecules import read_sdf, read_smiles_csv, smiles_to_store
from sopool.data.formats.molfile import molfile_size
from sopool.data.formats.rows import row_options
from sopool.data.pack import Graph, pack
from sopool.data.sources.find_graph import find_graph
from sopool.data.sources.stream import stream_graphs
from sopool.errors import DataError

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit, the extra chem")

RING = "C1" + "C" * 2000 + "C1"
HUBS = list(product(range(5), range(5, 75)))  # 276 rings of 75 atoms: each of five atoms is bound to each of seventy


@pytest.fixture(autouse=True)
def no_search_for_rings_in_hopeless_cases(monkeypatch):
    """Sanitize small molecules only: a test of the limit must not cost what the limit is there to save."""
    sanitize = Chem.SanitizeMol

    def check_first(molecule, *arguments, **options):
        assert molecule.GetNumAtoms() <= 1000, "RDKit was asked to sanitize a large molecule"
        assert molecule.GetNumBonds() - molecule.GetNumAtoms() < 125, "RDKit was asked to find many rings"
        return sanitize(molecule, *arguments, **options)

    monkeypatch.setattr(Chem, "SanitizeMol", check_first)


def smiles_of(bonds):
    """The molecule of these bonds, with a closure for each of them."""
    atoms = max(map(max, bonds)) + 1
    closures = [[] for _ in range(atoms)]
    for number, pair in enumerate(bonds, 10):
        for atom in pair:
            closures[atom].append(f"%({number})")
    return ".".join("*" + "".join(some) for some in closures)


def record_of(bonds, extra=0, v3000=False):
    """A record as text: RDKit would look for rings in order to write it."""
    return (v3000_of if v3000 else v2000_of)(max(map(max, bonds)) + 1 + extra, bonds)


def v2000_of(atoms, bonds):
    lines = ["", "", "", f"{atoms:3}{len(bonds):3}  0  0  0  0  0  0  0  0999 V2000"]
    lines += ["    0.0000    0.0000    0.0000 *   0  0"] * atoms
    lines += [f"{first + 1:3}{second + 1:3}  1  0" for first, second in bonds]
    return "\n".join([*lines, "M  END\n"])


def v3000_of(atoms, bonds):
    numbers = [f"{number} 1 {first + 1} {second + 1}" for number, (first, second) in enumerate(bonds, 1)]
    lines = ["BEGIN CTAB", f"COUNTS {atoms} {len(bonds)} 0 0 0"]
    if atoms:
        lines += ["BEGIN ATOM", *(f"{atom} * 0 0 0 0" for atom in range(1, atoms + 1)), "END ATOM"]
    if bonds:
        lines += ["BEGIN BOND", *numbers, "END BOND"]
    body = "".join(f"M  V30 {line}\n" for line in [*lines, "END CTAB"])
    return f"\n\n\n  0  0  0     0  0            999 V3000\n{body}M  END\n"


def ring_bonds(size):
    return [(atom, (atom + 1) % size) for atom in range(size)]


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        (RING, "The molecule has 2,002 atoms, but the limit is 1,000. Increase max_atoms to read it."),
        ("C" * 20_001, "The SMILES has 20,001 characters, but the limit is 20,000"),
        ("C |" + "x" * 20_000 + "|", "The SMILES has 20,004 characters"),
        (
            smiles_of(HUBS),
            "The molecule has 276 rings, but the limit is 125 for max_atoms=1000",
        ),
        ("C." * 700 + smiles_of(HUBS), "The molecule has 276 rings"),
    ],
    ids=["ring", "long text", "long extension", "many rings", "many rings beside single atoms"],
)
def test_a_smiles_of_too_large_a_molecule_is_bad(smiles, reason, tmp_path, monkeypatch):
    store, bad = smiles_to_store(["CC", smiles, "C"])
    assert store.sizes.tolist() == [2, 1]
    assert bad[0].row == 1
    assert bad[0].reason.startswith(reason)
    assert len(bad[0].text) <= 1000
    path = tmp_path / "a.csv"
    path.write_text(f"smiles,label\nCC,1\n{smiles},1\nC,1\n")
    assert [one.reason for one in read_smiles_csv(path)[1]] == [bad[0].reason]
    with pytest.raises(DataError, match=r"a\.csv, line 3: The (molecule|SMILES) has"):
        load(path, on_error="raise")
    text = f"CC\n{smiles.split()[0]} name\nC\n".encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    if "|" not in smiles:
        (chunk,) = stream_graphs("-", {})
        assert chunk.rows == [1, 3]
        assert chunk.bad[0].reason.startswith(reason)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (record_of(ring_bonds(2000), v3000=True), "The molecule has 2,000 atoms, but the limit is 1,000."),
        (record_of(HUBS), "The molecule has 276 rings, but the limit is 125"),
        (record_of(HUBS, v3000=True), "The molecule has 276 rings, but the limit is 125"),
        (record_of(HUBS, extra=600), "The molecule has 276 rings, but the limit is 125"),
        (record_of(HUBS, extra=600, v3000=True), "The molecule has 276 rings, but the limit is 125"),
        (record_of([(0, 1)]).replace("M  END", "M  CHG  1   1   1\n" * 12_000 + "M  END"), "The record has 216,"),
        (record_of([(0, 1)]).replace("  2  1  0", " -2  1  0"), "The record gives ' -2' as a number of atoms"),
        (record_of([(0, 1)]).replace("  2  1  0", "  2  x  0"), "The record gives '  x' as a number of atoms"),
        (record_of([(0, 1)], v3000=True).replace("COUNTS", "COUNT"), "The record has no line of counts"),
    ],
    ids=["ring", "V2000", "V3000", "single atoms V2000", "single atoms V3000", "long", "negative", "word", "no counts"],
)
def test_a_record_of_too_large_a_molecule_is_bad(record, reason, tmp_path, monkeypatch):
    monkeypatch.setattr(Chem, "MolFromMolBlock", small_records_only)
    path = tmp_path / "a.sdf"
    good = record_of([(0, 1)]) + "> <label>\n1\n\n$$$$\n"
    path.write_text(good + "title" + record + "> <label>\n1\n\n$$$$\n" + good)
    store, bad = read_sdf(path)
    assert len(store) == 2
    assert [(one.row, one.text) for one in bad] == [(2, "title")]
    assert bad[0].reason.startswith(reason)
    (chunk,) = stream_graphs(path, {})
    assert chunk.rows == [1, 3]
    assert chunk.bad[0].reason == bad[0].reason
    with pytest.raises(DataError, match=r"a\.sdf: record 2: The (molecule|record)"):
        load(path, on_error="raise")


def small_records_only(text, **options):
    """RDKit looks for rings while it reads: what is too large must not get so far."""
    assert len(text) < 2000, "RDKit was given a large record"
    return PARSE(text, **options)


PARSE = Chem.MolFromMolBlock


def test_the_limit_can_be_raised_and_lowered(tmp_path):
    smiles = "C" * 30
    assert len(smiles_to_store(["C", smiles], max_atoms=29)[1]) == 1
    assert smiles_to_store([smiles], max_atoms=30)[1] == []
    path = tmp_path / "a.csv"
    path.write_text(f"smiles,label\nC,1\n{smiles},0\n")
    with pytest.warns(UserWarning, match="1 of 2 molecules skipped.*30 atoms, but the limit is 29"):
        assert len(load(path, max_atoms=29)) == 1
    assert len(load(path, max_atoms=30)) == 2
    (chunk,) = stream_graphs(path, {}, row_options(max_atoms=29))
    assert chunk.rows == [2]
    with pytest.raises(DataError, match="30 atoms, but the limit is 29"):
        find_graph(path, "3", {}, row_options(max_atoms=29))
    record = record_of(ring_bonds(30))
    path = tmp_path / "a.sdf"
    path.write_text(record + "$$$$\n")
    with pytest.raises(DataError, match="30 atoms, but the limit is 29"):
        read_sdf(path, labelled=False, max_atoms=29)
    assert len(load(path, labelled=False, max_atoms=30)) == 1


def test_more_rings_may_be_asked_for():
    bonds = list(nx.random_regular_graph(3, 300, seed=0).edges)
    (bad,) = smiles_to_store(["C", smiles_of(bonds)])[1]
    assert bad.reason.startswith("The molecule has 151 rings")
    assert "to 1208 to read it" in bad.reason
    with pytest.raises(AssertionError, match="find many rings"):  # which the fixture forbids
        smiles_to_store([smiles_of(bonds)], max_atoms=1208)


@pytest.mark.parametrize("smiles", ["C12C3C4C1C5C2C3C45", "C1" + "C" * 998 + "C1", "C" * 1000, "C1CC1" * 100])
def test_what_is_within_the_limits_is_read(smiles):
    store, bad = smiles_to_store([smiles])
    assert not bad
    assert store.num_nodes == Chem.MolFromSmiles(smiles).GetNumAtoms()


def test_small_cages_are_read_whatever_the_limit():
    assert smiles_to_store(["C12C3C4C1C5C2C3C45"], max_atoms=8)[1] == []


def test_a_graph_of_very_many_rings_is_not_drawn_as_a_molecule():
    def graph(bonds):
        names = ["single"] * len(bonds)
        return pack([Graph(max(map(max, bonds)) + 1, bonds, node_labels=["C"] * 75, edge_labels=names)])

    assert molecule_of(graph(HUBS)) is None
    assert molecule_of(graph(ring_bonds(75))) is not None
    assert molecule_of(graph(ring_bonds(75)), max_atoms=74) is None


def test_the_command_line_has_the_same_limit():
    assert options.MAX_ATOMS == limits.MAX_ATOMS


@given(st.data(), st.booleans())
def test_rings_are_counted_as_rdkit_would(data, v3000):
    atoms = data.draw(st.integers(1, 12))
    pairs = [(a, b) for a in range(atoms) for b in range(a)]
    bonds = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    text = (v3000_of if v3000 else v2000_of)(atoms, bonds)
    if v3000:
        cut = data.draw(st.integers(9, 11))
        text = "\n".join(f"{line[:cut]}-\nM  V30 {line[cut:]}" if v30(line) else line for line in text.split("\n"))
    read = PARSE(text, sanitize=False, removeHs=False)
    rings = read.GetNumBonds() - read.GetNumAtoms() + len(Chem.GetMolFrags(read))
    assert molfile_size(text) == (read.GetNumAtoms(), read.GetNumBonds(), rings)
    assert (read.GetNumAtoms(), read.GetNumBonds()) == (atoms, len(bonds))


def v30(line):
    return line.startswith("M  V30 ") and "BEGIN" not in line and "END" not in line
