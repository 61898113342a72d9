import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.data import make_agreement, make_distant, make_measurements, make_rings
from sopool.errors import SettingError
from sopool.nn import make_readout
from tests.helpers.pair_graphs import distance_matrix

seeds = st.integers(0, 1000)


@given(seed=seeds, most=st.integers(8, 50))
def test_first_order_statistics_are_the_same_and_second_order_ones_tell(seed, most):
    store = make_agreement(40, most, seed)
    x = store.node_attributes.double()
    ptr = store.node_ptr
    assert torch.equal(x.abs(), torch.ones_like(x))
    for name in ("sum", "mean", "max"):
        pooled = make_readout(name, 2)(x, ptr=ptr)
        assert torch.equal(pooled, pooled[:1].expand_as(pooled))
    together = make_readout("sopool", 2)(x, ptr=ptr).view(-1, 2, 2)[:, 0, 1]
    agree = store.labels == store.classes.index("agree")
    assert torch.equal(together, store.sizes / 2 * (2 * agree - 1))
    assert agree.sum() == 20
    assert store.sizes.min() >= 8
    assert store.sizes.max() <= most


def test_sizes_and_degrees_tell_nothing():
    """Both classes have the same distribution of sizes; edges number the same for all graphs of a size."""
    store = make_agreement(400)
    agree = store.labels == 0
    assert abs(store.sizes[agree].double().mean() - store.sizes[~agree].double().mean()) < 2
    assert torch.equal(store.edge_ptr.diff(), 5 * store.sizes // 2)


@given(seed=seeds, most=st.integers(8, 50))
def test_measurements_are_what_they_say(seed, most):
    store = make_measurements(10, most, seed)
    assert store.target_names == ("edges", "spread")
    assert store.labels is None
    for graph in store:
        x = graph.node_attributes.double()
        expected = torch.stack([graph.num_edges / 2 + x.mean(), x.var(correction=0)])
        torch.testing.assert_close(graph.targets[0], expected)
    assert store.sizes.min() >= 8
    assert store.sizes.max() <= most
    assert torch.equal(store.targets, make_measurements(10, most, seed).targets)


@given(seed=seeds, distance=st.integers(2, 12))
def test_distant_marks_are_as_far_apart_as_they_say(seed, distance):
    store = make_distant(10, distance, seed)
    for graph in store:
        steps = distance_matrix(graph.edge_index.long(), graph.num_nodes)
        first, second = graph.node_labels.nonzero().flatten().tolist()
        near = store.classes[int(graph.labels)] == "near"
        assert steps[first, second] == (distance if near else distance + 1)
        assert 3 * distance <= graph.num_nodes <= 4 * distance
    assert store.labels.sum() == 5


@given(seed=seeds, rings=st.integers(2, 6))
def test_rings_look_alike_to_message_passing_and_differ_in_distances(seed, rings):
    store = make_rings(10, rings, seed)
    colors = {}
    for graph in store:
        steps = distance_matrix(graph.edge_index.long(), graph.num_nodes)
        one = store.classes[int(graph.labels)] == "one"
        assert (steps == 5).any() == one
        assert steps.isfinite().all() == one
        degrees = (steps == 1).sum(1)
        seen = degrees.bincount().tolist(), ((steps == 1).double() @ degrees.double()).sort().values.tolist()
        assert colors.setdefault(graph.num_nodes, seen) == seen
    assert store.labels.sum() == 5


def test_the_same_seed_gives_the_same_graphs():
    a = make_agreement(10, seed=1)
    b = make_agreement(10, seed=1)
    c = make_agreement(10, seed=2)
    assert torch.equal(a.node_attributes, b.node_attributes)
    assert torch.equal(a.edge_index, b.edge_index)
    assert a.node_attributes.shape != c.node_attributes.shape or not torch.equal(a.node_attributes, c.node_attributes)


def test_too_few():
    with pytest.raises(SettingError, match="graphs=1"):
        make_agreement(1)
    with pytest.raises(SettingError, match="most_nodes=7"):
        make_measurements(2, 7)
    with pytest.raises(SettingError, match="distance=1: expected at least 2 graphs and distance 2"):
        make_distant(2, 1)
    with pytest.raises(SettingError, match="most_rings=1: expected at least 2 graphs and 2 rings"):
        make_rings(2, 1)
