"""``sopool-pairs`` as the readout of a hierarchical model's last block, against dense matrices."""

import pytest
import torch

from sopool.errors import SettingError
from sopool.models.presets import model_config
from sopool.nn import POOLINGS
from tests.helpers.model_cases import batch_of, hierarchy, model_of, tables_for
from tests.helpers.training_graphs import little_store

GRAPHS = range(24)  # number 5 is empty, number 7 a single node


def unit(values):
    return values / (values.square().sum() + 1e-6).sqrt()


def by_hand(model, block):
    """(H W)^T P^k (H W) for k = 0 to 6, scaled to unit length, and the sum of H, of each pooled graph."""
    edges = block.edge_index
    weights = torch.ones(edges.shape[1]) if block.edge_weight is None else block.edge_weight
    adjacency, sizes = (
        block.x.new_zeros(len(block.x), len(block.x)).index_put(tuple(edges), each.double(), accumulate=True)
        for each in (weights, weights.abs())
    )
    sums = sizes.sum(1, keepdim=True) * sizes.sum(0)
    p = adjacency / torch.where(sums > 0, sums, 1.0).sqrt()
    rows = []
    for a, b in zip(block.ptr[:-1].tolist(), block.ptr[1:].tolist(), strict=True):
        x = block.x[a:b]
        z = x @ model.pairs.weight
        matrices = [z.T @ torch.linalg.matrix_power(p[a:b, a:b], k) @ z for k in range(7)]
        rows.append(torch.cat([unit(torch.stack(matrices).flatten()), x.sum(0)]))
    return torch.stack(rows)


@pytest.mark.parametrize("pool", POOLINGS)
@pytest.mark.parametrize("blocks", [1, 2])
def test_the_last_block_is_read_by_walks_in_the_pooled_graph(pool, blocks):
    """And the blocks before it as by max-mean."""
    config = hierarchy(pool, blocks, block_readout="sopool-pairs")
    tables = tables_for(config)
    model = model_of(config, tables).train()  # batch norm keeps features from vanishing
    batch = batch_of(tables, GRAPHS)
    with torch.no_grad():
        model.pairs.weight *= 100  # topkpool scales features down
        *earlier, (last, _) = model.embed(*batch)
        pooled = model.blocks(*batch)
        want = by_hand(model, pooled[-1])
    assert want[:, 256:-5].abs().max() > 0.01  # some graphs have walks
    torch.testing.assert_close(last, want, rtol=1e-4, atol=1e-4)  # degrees of dense graphs are a millionth larger
    for (readout, _), block in zip(earlier, pooled, strict=False):
        start, end = block.ptr[:2].tolist()
        torch.testing.assert_close(readout[0, readout.shape[1] // 2 :], block.x[start:end].mean(0))


def test_a_single_block_may_have_a_perceptron():
    config = hierarchy("topkpool", 1, "sum-readout", block_readout="sopool-pairs")
    tables = tables_for(config)
    assert model_of(config, tables)(*batch_of(tables, GRAPHS)).shape == (24, 2)


def test_what_is_refused():
    store = little_store()
    with pytest.raises(SettingError, match=r"widths \[64, 1824\] and cannot be summed. Choose head=\"per-block\""):
        model_config(store, "gcn", "sagpool", blocks=2, head="sum-readout", block_readout="sopool-pairs")
    with pytest.raises(SettingError, match="block_readout='sopool-pairs' is for hierarchical models only: set blocks"):
        model_config(store, "gcn", "sum", block_readout="sopool-pairs")
    with pytest.raises(SettingError, match=r"there is no block readout 'pairs'\. Did you mean 'sopool-pairs'"):
        model_config(store, "gcn", "sagpool", blocks=1, block_readout="pairs")
    with pytest.raises(SettingError, match=r"sopool-pairs is a readout.*such as topkpool, with block_readout='sopool"):
        model_config(store, "gcn", "sopool-pairs", blocks=2)
