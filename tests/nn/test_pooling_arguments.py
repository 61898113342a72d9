"""What pooling layers are given: options, graphs, and what they refuse."""

import pytest
import torch
from torch_geometric.nn import GCNConv

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
        TopKPooling(4, 0.0)
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
    with pytest.raises(ValueError, match=r"expects \[nodes, 4\]"):
        layer(torch.ones(3, 5), torch.empty(2, 0).long())
    with pytest.raises(TypeError, match=r"x has dtype torch.int64.*x\.float\(\)"):
        layer(x.long(), torch.empty(2, 0).long())
    for edges in (torch.eye(3), torch.zeros(4, 2).long()):
        with pytest.raises(ValueError, match=r"edge_index has .* integers of shape \[2, edges\]"):
            layer(x, edges)
    with pytest.raises(ValueError, match="joins graphs"):
        layer(x, torch.tensor([[0], [2]]), batch=torch.tensor([0, 0, 1]))
    for other in (layer, SelfAttentionPooling(4), DiffPooling(4), MultiHeadSecondOrderPooling(4, 2)):
        with pytest.raises(TypeError, match=r"x has dtype torch.float64 and weight torch.float32: convert one"):
            other(x.double(), torch.empty(2, 0).long())
        assert not len(other(x[:0], torch.empty(2, 0).long(), batch_size=0).x)


def test_shown_as_made():
    assert repr(TopKPooling(4)) == "TopKPooling(4)"
    assert repr(DiffPooling(4, link=0.5)) == "DiffPooling(4, link=0.5)"


DENSE = (DiffPooling(3, 2), MultiHeadSecondOrderPooling(3, 2))
LAYERS = (TopKPooling(3), SelfAttentionPooling(3), *DENSE, EigenPooling(3))
BATCH = torch.tensor([0, 0, 1, 1])
EDGES = torch.tensor([[0, 1, 2, 3, 3], [1, 0, 3, 2, 3]])


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_batch_is_the_fourth_argument_in_all_layers(layer):
    x = torch.randn(4, 3)
    assert layer(x, EDGES, None, BATCH).batch.unique().tolist() == [0, 1]
    with pytest.raises((TypeError, ValueError), match="batch is the fourth argument"):
        layer(x, EDGES, BATCH)
    with pytest.raises(TypeError, match="batch is a int: pass a tensor"):
        layer(x, EDGES, None, 2)
    with pytest.raises(ValueError, match=r"batch has shape \[3\] for 4 nodes"):
        layer(x, EDGES, None, BATCH[1:])
    with pytest.raises(TypeError, match="batch_size is a tensor"):
        layer(x, EDGES, None, BATCH, batch_size=BATCH)


@pytest.mark.parametrize("layer", DENSE, ids=lambda layer: type(layer).__name__)
def test_a_batch_in_the_place_of_weights_is_noticed(layer):
    """With as many edges as nodes; weights with decimals are weights."""
    x = torch.randn(4, 3)
    with pytest.raises(TypeError, match="batch is the fourth argument"):
        layer(x, EDGES[:, :4], BATCH)
    assert layer(x, EDGES[:, :4], BATCH.float()).ptr.numel() == 2
    assert layer(x, EDGES[:, :4], BATCH + 1, BATCH).ptr.numel() == 3


def test_what_single_layers_refuse():
    x = torch.randn(4, 3)
    with pytest.raises(ValueError, match=r"attn has shape \[4, 1\]: it must have the shape of x, \[4, 3\]"):
        TopKPooling(3)(x, EDGES, attn=x[:, :1])
    with pytest.raises(ValueError, match="edge_weight is given, but EigenPooling counts edges"):
        EigenPooling(3)(x, EDGES, torch.ones(5))
    with pytest.raises(ValueError, match=r"cluster has dtype torch\.float32"):
        EigenPooling(3)(x, EDGES, cluster=torch.zeros(4))
    with pytest.raises(ValueError, match="Edges with weights, as other pooling layers return them, have no clusters"):
        EigenPooling(3).pool(torch.randn(2, 3), DiffPooling(3, 2)(x, EDGES).graphs())
    for ratio, error in ((0.0, ValueError), (1.5, ValueError), (0, ValueError), (None, TypeError), (True, TypeError)):
        with pytest.raises(error, match=f"ratio={ratio}"):
            TopKPooling(3, ratio)
    with pytest.raises(TypeError, match="The GNN of the scores cannot be chosen"):
        SelfAttentionPooling(3, 0.5, GCNConv)
    with pytest.raises(ValueError, match="tanhh"):
        TopKPooling(3, nonlinearity="tanhh")
