import subprocess
import sys
from importlib.resources import files

import networkx as nx
import pytest
import torch

from sopool.data.formats.tu import read_tu
from sopool.data.graphs import check_values
from sopool.data.sources.boxed import boxed_names, load_boxed
from sopool.errors import SettingError
from tests.helpers.shared import DATA

BONDS = ("aromatic", "double", "single", "triple")
# The GIN text file numbers the elements in this order.
GIN_ATOMS = ("Br", "Cl", "C", "F", "I", "N", "O")


def counts(codes, names):
    return dict(zip(names, codes.bincount(minlength=len(names)).tolist(), strict=True))


def test_mutag():
    store = load_boxed("MUTAG")
    check_values(store)
    assert (len(store), store.num_nodes, store.num_edges) == (188, 3371, 7442)
    assert store.name == "MUTAG"
    assert counts(store.labels, store.classes) == {-1: 63, 1: 125}
    assert counts(store.node_labels, store.node_label_names) == {
        "Br": 2,
        "C": 2395,
        "Cl": 23,
        "F": 12,
        "I": 1,
        "N": 345,
        "O": 593,
    }
    assert store.edge_label_names == BONDS


def test_solubility():
    store = load_boxed("SOLUBILITY")
    check_values(store)
    assert (len(store), store.num_nodes, store.num_edges) == (1282, 16671, 34306)
    assert store.name == "SOLUBILITY"
    assert store.edge_label_names == BONDS
    for part, expected in (
        (store[:1025], {"high": 206, "low": 417, "medium": 402}),
        (store[1025:], {"high": 40, "low": 102, "medium": 115}),
    ):
        assert counts(part.labels, part.classes) == expected
    pentane = store[0]
    assert pentane.num_nodes == 5
    assert pentane.num_edges == 8


@pytest.mark.parametrize("name", boxed_names())
def test_every_bond_is_there_in_both_directions(name):
    store = load_boxed(name)
    for graph in store:
        edges = set(zip(*graph.edge_index.tolist(), graph.edge_labels.tolist(), strict=True))
        assert len(edges) == graph.num_edges
        assert edges == {(b, a, kind) for a, b, kind in edges}
        assert all(a != b for a, b, _ in edges)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the data of ../shared")
def test_mutag_is_the_gin_file_in_order():
    """Same labels and same graphs at each place, the nodes of a graph in another order."""
    ours = load_boxed("MUTAG")
    theirs = read_tu(DATA / "MUTAG.zip")
    assert ours.classes == theirs.classes
    assert torch.equal(ours.labels, theirs.labels)
    assert torch.equal(ours.sizes, theirs.sizes)
    assert torch.equal(ours.edge_ptr, theirs.edge_ptr)
    for one, other in zip(ours, theirs, strict=True):
        first = as_networkx(one, one.node_label_names)
        second = as_networkx(other, GIN_ATOMS)
        assert nx.is_isomorphic(first, second, node_match=dict.__eq__)


def as_networkx(store, atoms):
    graph = nx.Graph(store.edge_index.t().tolist())
    nx.set_node_attributes(graph, {node: atoms[code] for node, code in enumerate(store.node_labels)}, "atom")
    return graph


def test_unknown_names():
    with pytest.raises(SettingError, match=r"no data set 'mutga'.*only MUTAG and SOLUBILITY. Did you mean 'MUTAG'?"):
        load_boxed("mutga")


def test_files_are_small_and_come_with_their_licences():
    folder = files("sopool.data.sources.boxed")
    here = {item.name: len(item.read_bytes()) for item in folder.iterdir() if item.is_file()}
    assert all(size < 100_000 for size in here.values())
    story = (folder / "PROVENANCE.md").read_text(encoding="utf-8")
    for name in here:
        if name.startswith("LICENSE-"):
            assert name in story
    for name in boxed_names():
        store = load_boxed(name)
        assert f"| {name} | {len(store):,} |" in story
        assert f"| {store.num_nodes:,} | {store.num_edges:,} |" in story


def test_loading_needs_no_rdkit():
    code = "import sys; sys.modules['rdkit'] = None; from sopool.data import load; load('SOLUBILITY')"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)
