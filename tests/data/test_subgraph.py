import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.data.formats.convert import to_networkx
from sopool.data.subgraph import without_nodes
from tests.helpers.training_graphs import little_store

STORE = little_store(directed=True)


@given(number=st.sampled_from([g for g in range(len(STORE)) if STORE.sizes[g]]), data=st.data())
def test_it_is_what_networkx_leaves(number, data):
    graph = STORE[number]
    gone = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), unique=True))
    left = without_nodes(graph, torch.tensor(gone, dtype=torch.long))
    expected = to_networkx(graph)[0]
    expected.remove_nodes_from(gone)
    expected = nx.convert_node_labels_to_integers(expected, ordering="default")
    found = to_networkx(left)[0]
    assert dict(found.nodes(data=True)) == dict(expected.nodes(data=True))
    assert sorted(found.edges()) == sorted(expected.edges())
    stays = [node for node in range(graph.num_nodes) if node not in gone]
    assert torch.equal(left.node_attributes, graph.node_attributes[stays])


def test_one_graph_at_a_time():
    with pytest.raises(ValueError, match="take one"):
        without_nodes(STORE, torch.tensor([0]))
