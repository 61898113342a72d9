"""The readout of pairs of nodes, and the transform that finds them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from sopool.nn import AddPairs, BilinearSecondOrderAggregation, PairSecondOrderAggregation
from sopool.nn.aggr.normalize import signed_log
from sopool.nn.aggr.pairs import NORMALIZATIONS
from sopool.ops import segment_sum
from tests.check_cuda_pairs import check_pairs
from tests.helpers.pair_graphs import naive_pairs, random_edges
from tests.helpers.pair_graphs import sizes as few_sizes
from tests.helpers.strategies import draw_rows, index_of, ptr_of, seeds

CHANNELS = 3
SIZES = [0, 5, 1, 0, 7, 2]
FORMS = {
    "plain": {},
    "rest": {"rest": True},
    "walks": {"walks": True},
    "no mapping": {"rank": None},
    "beside a sum": {"with_sum": True, "normalize": "norm"},
    **{str(how): {"normalize": how, "rest": how == "pairs"} for how in NORMALIZATIONS[1:]},
}
every_form = pytest.mark.parametrize("form", FORMS)


def readout_of(dtype=torch.float64, **options):
    torch.manual_seed(1)
    return PairSecondOrderAggregation(CHANNELS, **{"rank": 2, "distances": 2} | options).to(dtype)


def batch_of(sizes=SIZES, seed=0, dtype=torch.float64, directed=False):
    return draw_rows(seed, sum(sizes), CHANNELS, dtype=dtype), random_edges(sizes, seed, directed), index_of(sizes)


def data_of(sizes, seed=0):
    """One graph for each size, as PyG stores them."""
    return [
        Data(x=draw_rows(seed + i, size, CHANNELS), edge_index=random_edges([size], seed + i, False), num_nodes=size)
        for i, size in enumerate(sizes)
    ]


def normalized(pooled, steps, how):
    """The normalizations as their names say, for the matrices of one graph ``[C, R, R]`` in float64."""
    numbers = steps.sum((1, 2))
    root = pooled.sign() * pooled.abs().sqrt()
    return {
        "size": pooled / max(1, steps.shape[1]),
        "pairs": pooled / numbers.clamp(min=1).view(-1, 1, 1),
        "norm": pooled / pooled.norm().clamp(min=1e-9),
        "sqrt": root / root.norm().clamp(min=1e-9),
        "log": pooled.sign() * pooled.abs().log1p(),
    }[how]


@pytest.mark.parametrize("how", NORMALIZATIONS[1:])
def test_normalizations_are_what_they_say(how):
    x, edges, index = batch_of()
    ptr = ptr_of(SIZES)
    got = readout_of(normalize=how, rest=True)(x, edges, index)
    z = x @ readout_of().weight
    pooled = naive_pairs(z, edges, ptr, 2, rest=True)
    for g, size in enumerate(SIZES):
        own = (edges[0] >= ptr[g]) & (edges[0] < ptr[g + 1])
        ones = torch.ones(size, 1, dtype=torch.float64)
        numbers = naive_pairs(ones, edges[:, own] - ptr[g], torch.tensor([0, size]), 2, rest=True)[0]
        want = normalized(pooled[g], numbers.expand(-1, max(1, size), -1) / max(1, size), how)
        torch.testing.assert_close(got[g], want.flatten(), rtol=1e-4, atol=1e-4)


@given(few_sizes, seeds, st.booleans())
def test_is_its_formula(sizes, seed, directed):
    x, edges, index = batch_of(sizes, seed, directed=directed)
    readout = readout_of(rest=True, with_sum=True)
    ptr = ptr_of(sizes)
    want = torch.cat([naive_pairs(x @ readout.weight, edges, ptr, 2, rest=True).flatten(1), segment_sum(x, ptr)], 1)
    got = readout(x, edges, index, len(sizes))
    assert got.shape == (len(sizes), readout.out_channels)
    torch.testing.assert_close(got, want)


def test_only_the_first_layers_enter_the_pairs_and_all_enter_the_sum():
    x, edges, index = batch_of()
    wide = torch.cat([x, x.square(), x.cos()], 1)
    readout = PairSecondOrderAggregation([CHANNELS, CHANNELS, CHANNELS], 2, 2, layers=2, with_sum=True).double()
    of_two = PairSecondOrderAggregation(2 * CHANNELS, 2, 2).double()
    of_two.weight = readout.weight
    want = torch.cat([of_two(wide[:, : 2 * CHANNELS], edges, index), segment_sum(wide, ptr_of(SIZES))], 1)
    assert readout.out_channels == want.shape[1]
    torch.testing.assert_close(readout(wide, edges, index), want)
    assert PairSecondOrderAggregation(3, layers=2).weight.shape == (3, 16)  # all, if there are fewer
    with pytest.raises(ValueError, match="channels=0: it must be at least 1"):
        PairSecondOrderAggregation([2, 0])


def test_batch_norm_is_torch_s():
    x, edges, index = batch_of()
    readout = readout_of(normalize="log", batch_norm=True, with_sum=True)
    plain = readout_of(normalize="log")
    plain.weight = readout.weight
    norm = torch.nn.BatchNorm1d(12, dtype=torch.float64)
    for train in (True, False):
        readout.train(train)
        norm.train(train)
        torch.testing.assert_close(readout(x, edges, index)[:, :12], norm(plain(x, edges, index)))
    torch.testing.assert_close(readout(x, edges, index)[:, 12:], segment_sum(x, ptr_of(SIZES)))
    readout.reset_parameters()
    assert readout.norm.running_var.eq(1).all()


def test_adam_moves_slow_pairs_less():
    """A step of Adam changes W, and the weights on the matrices after it, by lr_scale times as much."""
    x, edges, index = batch_of()
    moved = {}
    for scale in (1.0, 0.1):
        torch.manual_seed(0)
        readout = readout_of(lr_scale=scale)
        weight = torch.nn.Parameter(torch.ones(12, dtype=torch.float64))
        before = readout.mapping.detach().clone(), weight.detach() * scale
        optimizer = torch.optim.Adam([readout.weight, weight], lr=0.01, eps=1e-15)
        (readout(x, edges, index) @ weight).sum().backward()
        optimizer.step()
        moved[scale] = [readout.mapping - before[0], weight * scale - before[1]]
    for fast, slow in zip(moved[1.0], moved[0.1], strict=True):
        torch.testing.assert_close(slow.abs(), 0.1 * fast.abs())


def test_distance_0_is_bimap():
    x, edges, index = batch_of()
    readout = readout_of()
    bimap = BilinearSecondOrderAggregation(CHANNELS, 2).double()
    bimap.weight = readout.weight
    torch.testing.assert_close(readout(x, edges, index)[:, :4], bimap(x, index))


@every_form
@given(sizes=few_sizes, seed=seeds)
def test_nodes_in_any_order(form, sizes, seed):
    x, edges, index = batch_of(sizes, seed)
    readout = readout_of(**FORMS[form])
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    place = shuffle.argsort()
    got = readout(x[shuffle], place[edges], index[shuffle], len(sizes))
    torch.testing.assert_close(got, readout(x, edges, index, len(sizes)))


@every_form
def test_a_graph_does_not_see_its_batch(form):
    readout = readout_of(**FORMS[form])
    graphs = data_of(SIZES)
    batch = Batch.from_data_list(graphs)
    whole = readout(batch.x, batch.edge_index, batch.batch, batch.num_graphs)
    torch.testing.assert_close(whole, torch.cat([readout(graph.x, graph.edge_index) for graph in graphs]))


@every_form
def test_pairs_of_the_transform_are_those_of_the_edges(form):
    """Also if they reach farther than the readout, and in batches of PyG's loader."""
    readout = readout_of(**FORMS[form])
    graphs = [AddPairs(distances=4)(graph) for graph in data_of(SIZES)]
    for batch in DataLoader(graphs, batch_size=4):
        pairs = {"pair_index": batch.pair_index, "pair_distance": batch.pair_distance}
        want = readout(batch.x, batch.edge_index, batch.batch, batch.num_graphs)
        torch.testing.assert_close(readout(batch.x, None, batch.batch, batch.num_graphs, **pairs), want)


@every_form
def test_gradients(form):
    x, edges, index = batch_of([3, 0, 1, 4])
    readout = readout_of(**FORMS[form])
    inputs = (x.requires_grad_(), *readout.parameters())

    def function(x, *parameters):
        named = dict(zip(dict(readout.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(readout, named, (x, edges, index))

    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@every_form
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_types_against_float64(form, dtype):
    x, edges, index = batch_of(dtype=dtype)
    got = readout_of(dtype, **FORMS[form])(x, edges, index)
    want = readout_of(dtype, **FORMS[form]).double()(x.double(), edges, index)
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), want, rtol=0.05, atol=0.02 * want.abs().max().item())


@every_form
def test_autocast_gives_float32(form):
    x, edges, index = batch_of(dtype=torch.float32)
    readout = readout_of(torch.float32, **FORMS[form])
    with torch.autocast("cpu", torch.bfloat16):
        got = readout(x, edges, index)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, readout(x, edges, index))


def test_the_logarithm_has_a_gradient_at_zero():
    values = torch.tensor([-3.0, 0.0, 1.0], requires_grad=True)
    signed_log(values).sum().backward()
    assert values.grad.tolist() == [0.25, 1, 0.5]


def test_graphs_that_color_refinement_cannot_tell_apart():
    """Two triangles and a cycle of six nodes have the same neighbors everywhere, but not the same distances."""
    triangles = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
    ring = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    x = torch.ones(6, CHANNELS, dtype=torch.float64)

    def pooled(**options):
        readout = readout_of(**options)
        return [readout(x, torch.cat([edges, edges.flip(0)], 1)) for edges in (triangles, ring)]

    for alike in ({"distances": 1, "rest": True}, {"walks": True, "distances": 6}):
        torch.testing.assert_close(*pooled(**alike))
    first, second = pooled(distances=2)
    assert not first[:, 8:].any()
    assert second[:, 8:].abs().sum() > 0.1


def test_no_edges_and_no_nodes():
    none = torch.zeros(2, 0, dtype=torch.long)
    readout = readout_of(rest=True, normalize="pairs")
    assert not readout(torch.ones(2, CHANNELS, dtype=torch.float64), none)[:, 4:12].any()
    assert readout(torch.zeros(0, CHANNELS, dtype=torch.float64), none, none[0]).shape == (0, 16)
    assert not readout(torch.zeros(0, CHANNELS, dtype=torch.float64), none).any()


def test_shown_as_made():
    assert repr(PairSecondOrderAggregation(8)) == "PairSecondOrderAggregation(8)"
    assert repr(readout_of(rest=True)) == "PairSecondOrderAggregation(3, rank=2, distances=2, rest=True)"
    assert repr(AddPairs(3)) == "AddPairs(distances=3)"


def test_reset_parameters_draws_anew():
    readout = readout_of()
    before = readout.weight.clone()
    readout.reset_parameters()
    assert not torch.equal(before, readout.weight)
    assert readout.weight.abs().max() <= CHANNELS**-0.5
    readout_of(rank=None).reset_parameters()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rank": 0}, "rank=0: it must be at least 1"),
        ({"distances": 0}, "distances=0: it must be at least 1"),
        ({"walks": True, "rest": True}, "With walks=True there are no pairs to count"),
        ({"walks": True, "normalize": "pairs"}, "With walks=True there are no pairs to count"),
        ({"layers": 0}, "layers=0: it must be at least 1"),
        ({"lr_scale": 0.0}, r"lr_scale=0\.0: it must be a positive number"),
        ({"decay": -1.0}, r"decay=-1\.0: it must be 0 or a positive number"),
        ({"normalize": "trace"}, r"normalize='trace' is not available for PairSecondOrderAggregation"),
    ],
)
def test_options_that_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        readout_of(**options)


EDGE = torch.tensor([[0], [1]])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "edge_index is not given: pass edge_index, or both pair_index and pair_distance"),
        ({"edge_index": EDGE[0]}, r"edge_index has dtype torch.int64 and shape \[1\]: .* \[2, edges\]"),
        ({"edge_index": EDGE.double()}, r"edge_index has dtype torch.float64"),
        ({"edge_index": EDGE + 2}, r"Edge 0 is \[2, 3\], but there are only nodes 0 to 2"),
        ({"edge_index": EDGE, "batch": torch.tensor([0, 1, 1])}, "joins graphs .*edges must stay within a graph"),
        ({"pair_index": EDGE}, "pair_index is given without pair_distance"),
        ({"edge_index": EDGE, "pair_distance": EDGE[0]}, "pair_index is not given"),
        ({"pair_index": EDGE, "pair_distance": EDGE[0]}, r"pair_distance\[0\] is 0: distances begin with 1"),
        ({"pair_index": EDGE, "pair_distance": torch.ones(1)}, "it must have one integer per pair"),
        ({"pair_index": EDGE, "pair_distance": torch.ones(2).long()}, "it must have one integer per pair"),
        (
            {"pair_index": EDGE, "pair_distance": EDGE[1], "batch": torch.tensor([0, 1, 1])},
            "Pair 0 .* pairs must stay within a graph. Do pair_index and batch come from the same batch",
        ),
    ],
)
def test_bad_input(given, says):
    with pytest.raises(ValueError, match=says):
        readout_of()(torch.ones(3, CHANNELS, dtype=torch.float64), **given)


def test_wrong_width_and_wrong_type():
    with pytest.raises(ValueError, match=r"x has shape \[3, 4\]: PairSecond.* expects \[nodes, 3\]"):
        readout_of()(torch.ones(3, 4), EDGE)
    with pytest.raises(TypeError, match=r"x has dtype torch\.int64"):
        readout_of()(torch.ones(3, CHANNELS, dtype=torch.long), EDGE)
    with pytest.raises(TypeError, match=r"x has dtype torch\.float32 and weight torch\.float64"):
        readout_of()(torch.ones(3, CHANNELS), EDGE)


def test_the_check_for_gpus_runs(capsys):
    check_pairs("cpu")
    assert "pairs, undirected, rest, edges, torch.float32" in capsys.readouterr().out


def test_what_the_transform_refuses():
    with pytest.raises(ValueError, match="distances=0"):
        AddPairs(0)
    with pytest.raises(ValueError, match="The graph has no edge_index"):
        AddPairs()(Data(x=torch.ones(2, 1)))
