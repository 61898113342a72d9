"""What the paper states, checked."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.nn import (
    AttentionalSecondOrderAggregation,
    BilinearSecondOrderAggregation,
    CovarianceAggregation,
    MultiHeadSecondOrderAggregation,
    SecondOrderAggregation,
    SoftmaxAttentionAggregation,
)
from tests.helpers.strategies import draw_rows, seeds


@given(st.integers(0, 30), st.integers(1, 6), seeds)
def test_proposition_1_the_output_does_not_depend_on_n(n, f, seed):
    assert SecondOrderAggregation()(draw_rows(seed, n, f), ptr=torch.tensor([0, n])).shape == (1, f * f)


@given(st.permutations(range(9)), seeds)
def test_proposition_2_invariant_to_permutation(order, seed):
    h = draw_rows(seed, 9, 4)
    torch.testing.assert_close(SecondOrderAggregation()(h[order]), SecondOrderAggregation()(h))


def embed(readout, *graphs):
    return [readout.double()(torch.stack(graph)) for graph in graphs]


@given(seeds)
def test_figure_2a_covpool_and_attnpool_miss_repeated_nodes(seed):
    """Two graphs with one node representation throughout, three times and five."""
    h = draw_rows(seed, 4)
    first = [h] * 3
    second = [h] * 5
    zero, other = embed(CovarianceAggregation(4), first, second)
    torch.testing.assert_close(zero, torch.zeros_like(zero))
    torch.testing.assert_close(other, torch.zeros_like(other))
    torch.testing.assert_close(*embed(SoftmaxAttentionAggregation(4), first, second))
    one, two = embed(SecondOrderAggregation(), first, second)
    assert not torch.allclose(one, two)


@given(seeds)
def test_figure_2b_attnpool_misses_equal_proportions(seed):
    """Two colours in the same proportion, in graphs of different size, for the same mu."""
    red, blue = draw_rows(seed, 2, 4)
    first = [red, blue]
    second = [red, red, blue, blue]
    torch.testing.assert_close(*embed(SoftmaxAttentionAggregation(4), first, second))
    one, two = embed(SecondOrderAggregation(), first, second)
    assert not torch.allclose(one, two)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize(
    ("readout", "count"),
    [
        (SecondOrderAggregation(160), lambda c: 25_600 * c),
        (BilinearSecondOrderAggregation(160, rank=32), lambda c: 5_120 + 1_024 * c),
        (AttentionalSecondOrderAggregation(160), lambda c: 160 + 160 * c),
    ],
)
def test_parameter_counts_of_the_example(readout, count, classes):
    classifier = torch.nn.Linear(readout.out_channels, classes, bias=False)
    assert sum(p.numel() for module in (readout, classifier) for p in module.parameters()) == count(classes)


PTR = torch.tensor([0, 4, 4, 9])


def test_readouts_are_their_formulae():
    h = draw_rows(0, 9, 3)
    bimap = BilinearSecondOrderAggregation(3, 2).double()
    attn = AttentionalSecondOrderAggregation(3).double()
    heads = MultiHeadSecondOrderAggregation(3, 2).double()
    softmax = SoftmaxAttentionAggregation(3).double()
    for g, part in enumerate([h[:4], h[4:4], h[4:]]):
        s = part.T @ part
        expected = {
            SecondOrderAggregation(): s,
            bimap: bimap.weight.T @ s @ bimap.weight,
            attn: s @ attn.query,
            heads: heads.queries @ s,
            softmax: part.T @ (part @ softmax.query).softmax(0),
        }
        for readout, value in expected.items():
            torch.testing.assert_close(readout(h, ptr=PTR)[g], value.flatten())


def test_one_head_is_attn():
    h = draw_rows(0, 9, 3)
    attn = AttentionalSecondOrderAggregation(3).double()
    one_head = MultiHeadSecondOrderAggregation(3, 1).double()
    one_head.queries.data = attn.query.data.T
    torch.testing.assert_close(one_head(h, ptr=PTR), attn(h, ptr=PTR))


def test_bimap_with_the_identity_is_sopool():
    h = draw_rows(0, 9, 3)
    bimap = BilinearSecondOrderAggregation(3, 3).double()
    bimap.weight.data = torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(bimap(h, ptr=PTR), SecondOrderAggregation()(h, ptr=PTR))


def test_bias_adds_b_times_the_sum():
    """The authors' code: H^T (H mu + b) = H^T H mu + b sum(H)."""
    h = draw_rows(0, 9, 3)
    plain = AttentionalSecondOrderAggregation(3).double()
    biased = AttentionalSecondOrderAggregation(3, True).double()
    biased.query.data = plain.query.data
    sums = torch.stack([part.sum(0) for part in (h[:4], h[4:4], h[4:])])
    torch.testing.assert_close(biased(h, ptr=PTR), plain(h, ptr=PTR) + biased.query_bias * sums)


@given(seeds)
def test_covpool_is_the_covariance_times_n_less_one(seed):
    h = draw_rows(seed, 9, 3)
    got = CovarianceAggregation(3)(h, ptr=torch.tensor([0, 4, 9])).view(2, 3, 3)
    for value, part in zip(got, (h[:4], h[4:]), strict=True):
        torch.testing.assert_close(value, torch.cov(part.T) * (len(part) - 1))


def test_covpool_keeps_a_small_covariance_beside_a_large_mean():
    h = 1e4 + draw_rows(0, 50, 2, dtype=torch.float32)
    got = CovarianceAggregation(2)(h).double().view(2, 2)
    torch.testing.assert_close(got, torch.cov(h.double().T) * 49, rtol=1e-2, atol=0.2)


def test_softmax_attention_is_pygs():
    from torch_geometric.nn.aggr import AttentionalAggregation

    h = draw_rows(0, 9, 3)
    index = torch.tensor([0, 0, 0, 0, 2, 2, 2, 2, 2])
    ours = SoftmaxAttentionAggregation(3).double()
    gate = torch.nn.Linear(3, 1, bias=False).double()
    gate.weight.data = ours.query.data.T
    torch.testing.assert_close(ours(h, index), AttentionalAggregation(gate)(h, index))
