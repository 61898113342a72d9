"""What pooling layers are given: options, graphs, and what they refuse."""

import pytest
import torch

from sopool.nn import (
    DiffPooling,
    EigenPooling,
    MultiHeadSecondOrderPooling,
    PooledReadout,
    SelfAttentionPooling,
    SortConvolutionAggregation,
    TopKPooling,
    make_pooling,
)
from sopool.ops.message_passing.dense import Dense
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.structure import GraphStructure


def test_bad_options():
    with pytest.raises(ValueError, match="ratio=0"):
        TopKPooling(4, 0)
    with pytest.raises(ValueError, match="clusters=1"):
        DiffPooling(4, 1)
    with pytest.raises(ValueError, match="k=9"):
        SortConvolutionAggregation(4, 9)
    with pytest.raises(ValueError, match="vectors=0"):
        EigenPooling(4, 0)
    with pytest.raises(ValueError, match="cannot be concatenated"):
        PooledReadout(TopKPooling(4), "concat")
    with pytest.raises(ValueError, match=r"no pooling layer 'sagpol'. Did you mean 'sagpool'\?"):
        make_pooling("sagpol", 4)
    with pytest.raises(ValueError, match="have no clusters"):
        EigenPooling(4).pool(
            torch.ones(2, 4), GraphStructure(torch.tensor([0, 2]), neighbors_of(torch.empty(2, 0).long(), 2))
        )
    with pytest.raises(ValueError, match="how='max' is not defined"):
        Dense(torch.ones(1, 2, 2)).aggregate(torch.ones(2, 3), "max")


def test_bad_graphs():
    layer = TopKPooling(4)
    x = torch.ones(3, 4)
    with pytest.raises(ValueError, match="batch is not in order"):
        layer(x, torch.empty(2, 0).long(), torch.tensor([1, 0, 1]))
    with pytest.raises(ValueError, match=r"expects \[nodes, 4\]"):
        layer(torch.ones(3, 5), torch.empty(2, 0).long())
    with pytest.raises(TypeError, match=r"x has dtype torch.int64.*x\.float\(\)"):
        layer(x.long(), torch.empty(2, 0).long())
    for edges in (torch.eye(3), torch.zeros(4, 2).long()):
        with pytest.raises(ValueError, match=r"edge_index has .* integers of shape \[2, edges\]"):
            layer(x, edges)
    with pytest.raises(ValueError, match="joins graphs"):
        layer(x, torch.tensor([[0], [2]]), torch.tensor([0, 0, 1]))
    with pytest.raises(TypeError, match="batch is the third argument; pass it as batch="):
        layer(x, torch.empty(2, 0).long(), None, torch.tensor([0, 0, 1]))
    for other in (layer, SelfAttentionPooling(4), DiffPooling(4), MultiHeadSecondOrderPooling(4, 2)):
        with pytest.raises(TypeError, match=r"x has dtype torch.float64 and weight torch.float32: convert one"):
            other(x.double(), torch.empty(2, 0).long())
        assert not len(other(x[:0], torch.empty(2, 0).long(), batch_size=0).x)


def test_shown_as_made():
    assert repr(TopKPooling(4)) == "TopKPooling(4)"
    assert repr(DiffPooling(4, link=0.5)) == "DiffPooling(4, link=0.5)"


def test_the_batch_has_the_same_place_in_all_layers():
    """With as many edges as nodes, so that one could pass for weights of the other."""
    x = torch.randn(4, 3)
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    batch = torch.tensor([0, 0, 1, 1])
    for layer in (TopKPooling(3), SelfAttentionPooling(3), DiffPooling(3, 2), MultiHeadSecondOrderPooling(3, 2)):
        assert set(layer(x, edges, batch).batch.tolist()) == {0, 1}
        with pytest.raises(TypeError, match="batch_size is a tensor"):
            layer(x, edges, None, batch)
