"""What every pooling layer promises, tested on each: what PyG and torch-geometric-pool expect of theirs, and more.

A new layer is covered by its line in the registry.
"""

import copy
import pickle

import pytest
import torch
from hypothesis import assume, given
from torch.utils import _pytree as pytree
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

from sopool.nn import POOLINGS, PoolingOutput, make_pooling
from sopool.ops.message_passing.edges import Edges
from sopool.ops.message_passing.neighbors import neighbors_of
from sopool.ops.message_passing.structure import GraphStructure
from tests.helpers.strategies import draw_rows, index_of, ptr_of, seeds
from tests.nn.test_poolings import random_graphs, sizes

CHANNELS = 4
SIZES = [5, 0, 1, 8, 3, 0]
OPTIONS = {name: (name, {}) for name in POOLINGS} | {
    "topkpool-two": ("topkpool", {"ratio": 2}),
    "topkpool-above": ("topkpool", {"min_score": 0.2}),
    "topkpool-sigmoid": ("topkpool", {"nonlinearity": "sigmoid", "multiplier": 2.0}),
    "sagpool-two": ("sagpool", {"ratio": 2}),
    "sagpool-above": ("sagpool", {"min_score": 0.2}),
    "sopool-m-attn-degree": ("sopool-m-attn", {"heads": 3, "normalize": "degree"}),
    "sopool-m-attn-plain": ("sopool-m-attn", {"heads": 3, "normalize": None}),
    "eigenpool-whole": ("eigenpool", {"size": None}),
}
every_layer = pytest.mark.parametrize("case", OPTIONS)
every_selecting_layer = pytest.mark.parametrize("case", [case for case in OPTIONS if case.startswith(("topk", "sag"))])
every_weighted_layer = pytest.mark.parametrize("case", [case for case in OPTIONS if not case.startswith("eigen")])
ENTRIES = ("x", "edge_index", "edge_attr", "batch", "perm", "score")


def layer_of(case):
    torch.manual_seed(0)
    name, options = OPTIONS[case]
    return make_pooling(name, CHANNELS, **options).double()


def graphs_of(sizes=SIZES, seed=0):
    """Arguments by name, so that batch and edges can be replaced."""
    x, edge_index, _ = random_graphs(sizes, seed)
    return {"x": x, "edge_index": edge_index, "batch": index_of(sizes), "batch_size": len(sizes)}


def weights_of(layer, given, seed=5):
    """Positive weights for the layers that use them."""
    edges = given["edge_index"].shape[1]
    return {} if type(layer).__name__ == "EigenPooling" else {"edge_weight": draw_rows(seed, edges).abs() + 0.1}


def matrix(out):
    """The weights of all edges [N', N'], from the row to the column."""
    weight = torch.ones(out.edge_index.shape[1]) if out.edge_weight is None else out.edge_weight
    return out.x.new_zeros(len(out.x), len(out.x)).index_put(tuple(out.edge_index), weight.to(out.x.dtype), True)


def assert_same(got, want):
    """Two results agree in everything that does not depend on the order of the edges."""
    for name in ("x", "ptr", "batch", "perm", "score"):
        mine, theirs = getattr(got, name), getattr(want, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            torch.testing.assert_close(mine, theirs, msg=lambda text, name=name: f"{name}: {text}")
    torch.testing.assert_close(matrix(got), matrix(want))
    torch.testing.assert_close(got.loss, want.loss)
    torch.testing.assert_close(got.lift(got.x), want.lift(want.x))


def assume_no_ties(out):
    """Which of two nodes with equal scores is kept is a matter of rounding."""
    if out.perm is not None:
        assume(out.lift.scores.sort().values.diff().gt(1e-9).all())


def total(out):
    """A number that depends on everything that has a gradient."""
    parts = [out.x, out.lift(out.x), out.adj, out.total_loss]
    return sum((part * torch.linspace(0.5, 1, part.numel()).view_as(part)).sum() for part in parts if part is not None)


@every_layer
@given(sizes=sizes, seed=seeds)
def test_a_result_is_a_batch_of_graphs(case, sizes, seed):
    """Empty graphs, single nodes, isolated nodes, loops and repeated edges are among them."""
    layer = layer_of(case)
    out = layer(**graphs_of(sizes, seed))
    nodes = len(out.x)
    assert isinstance(out, PoolingOutput)
    assert out.x.shape == (nodes, layer.out_channels)
    assert out.ptr.shape == (len(sizes) + 1,)
    assert out.ptr[0] == 0
    assert out.ptr[-1] == nodes
    assert torch.equal(out.batch, index_of(out.ptr.diff().tolist()))
    assert layer.nodes is None or out.ptr.diff().eq(layer.nodes).all()
    assert torch.equal(out.batch[out.edge_index[0]], out.batch[out.edge_index[1]])
    assert out.edge_weight is None or out.edge_weight.shape == (out.edge_index.shape[1],)
    assert out.adj is None or torch.equal(torch.block_diag(*out.adj), matrix(out))
    assert all(loss.shape == (len(sizes),) and loss.ge(0).all() for loss in out.loss.values())
    assert out.lift(out.x).shape == (sum(sizes), CHANNELS)
    assert all(leaf.isfinite().all() for leaf in pytree.tree_leaves(out))


@every_layer
def test_nothing_at_all(case):
    """No graphs, no nodes in a graph, and no edges."""
    layer = layer_of(case)
    x = draw_rows(0, 3, CHANNELS)
    none = torch.empty(2, 0, dtype=torch.long)
    empty = layer(x[:0], none, batch_size=0)
    assert (len(empty.x), empty.ptr.tolist(), empty.edge_index.shape) == (0, [0], (2, 0))
    assert empty.lift(empty.x).shape == (0, CHANNELS)
    assert layer(x[:0], none).ptr.numel() == 2
    without = layer(x, none, batch=torch.tensor([0, 2, 2]))
    assert without.ptr.numel() == 4
    assert not matrix(without).any()
    assert without.x.isfinite().all()


@every_layer
def test_unpacked_and_indexed_like_the_tuple_of_pyg(case):
    out = layer_of(case)(**graphs_of())
    x, edge_index, edge_attr, batch, perm, score = out
    assert len(out) == 6
    assert x is out.x is out[0]
    assert edge_index is out[1] is out.edge_index
    assert edge_attr is out[2] is out.edge_weight
    assert batch is out[-3] is out.batch
    assert out[4:] == (perm, score)
    assert (perm is None) == (score is None)
    with pytest.raises(IndexError):
        out[6]
    assert repr(out).startswith(f"PoolingOutput(graphs={len(SIZES)}, x=[")


@every_selecting_layer
def test_what_is_kept_of_nodes_and_edges(case):
    layer = layer_of(case)
    arguments = graphs_of()
    edges = arguments["edge_index"].shape[1]
    arguments |= {"edge_attr": torch.arange(edges), "edge_weight": draw_rows(3, edges).abs()}
    out = layer(**arguments)
    kept = out.edge_attr
    assert torch.equal(out.perm[out.edge_index], arguments["edge_index"][:, kept])
    assert torch.equal(out.edge_weight, arguments["edge_weight"][kept])
    assert out[2] is out.edge_attr
    assert out.as_data().edge_attr is out.edge_attr
    assert torch.equal(arguments["batch"][out.perm], out.batch)
    torch.testing.assert_close(out.x, layer.multiplier * arguments["x"][out.perm] * out.score.unsqueeze(1))
    lost = torch.ones(sum(SIZES), dtype=torch.bool).index_fill(0, out.perm, False)
    assert not out.lift(out.x)[lost].any()
    torch.testing.assert_close(out.lift(out.x)[out.perm], out.x)


@every_layer
def test_unsorted_batch(case):
    """Graphs that are mixed up, with the order within each graph kept."""
    layer = layer_of(case)
    arguments = graphs_of()
    want = layer(**arguments | weights_of(layer, arguments))
    shuffle = torch.randperm(sum(SIZES), generator=torch.Generator().manual_seed(1))
    batch = arguments["batch"][shuffle]
    order = torch.empty_like(shuffle).index_copy(0, batch.argsort(stable=True), torch.arange(len(shuffle)))
    mixed = {"x": arguments["x"][order], "edge_index": order.argsort()[arguments["edge_index"]], "batch": batch}
    got = layer(**arguments | mixed | weights_of(layer, arguments))
    torch.testing.assert_close((got.x, got.ptr, matrix(got), got.loss), (want.x, want.ptr, matrix(want), want.loss))
    torch.testing.assert_close(got.lift(got.x), want.lift(want.x)[order])
    if want.perm is not None:
        assert torch.equal(order[got.perm], want.perm)
        torch.testing.assert_close(got.lift.scores, want.lift.scores[order])
    if want.contribution is not None:
        torch.testing.assert_close(got.contribution, want.contribution[order])


@every_weighted_layer
@given(seed=seeds)
def test_permuted_nodes(case, seed):
    """EigenPool is left out: the signs of eigenvectors and k-means depend on the order of the nodes."""
    layer = layer_of(case)
    arguments = graphs_of([6, 1, 9], seed)
    weights = weights_of(layer, arguments)
    shuffle = torch.randperm(16, generator=torch.Generator().manual_seed(seed))
    mixed = {"x": arguments["x"][shuffle], "edge_index": shuffle.argsort()[arguments["edge_index"]]}
    mixed |= {"batch": arguments["batch"][shuffle]}
    want = layer(**arguments | weights)
    assume_no_ties(want)
    got = layer(**arguments | mixed | weights)
    torch.testing.assert_close(got.lift(got.x), want.lift(want.x)[shuffle])
    torch.testing.assert_close((got.ptr, got.loss), (want.ptr, want.loss))
    torch.testing.assert_close(matrix(got).sum(), matrix(want).sum())


@every_layer
@given(seed=seeds)
def test_the_order_of_the_edges_does_not_matter(case, seed):
    layer = layer_of(case)
    arguments = graphs_of(seed=seed)
    shuffle = torch.randperm(arguments["edge_index"].shape[1], generator=torch.Generator().manual_seed(seed))
    want = layer(**arguments)
    assume_no_ties(want)
    assert_same(layer(**arguments | {"edge_index": arguments["edge_index"][:, shuffle]}), want)


@every_layer
@given(sizes=sizes, seed=seeds)
def test_a_graph_does_not_see_its_batch(case, sizes, seed):
    layer = layer_of(case)
    arguments = graphs_of(sizes, seed)
    out = layer(**arguments)
    adjacency = matrix(out)
    for g, (start, end) in enumerate(zip(ptr_of(sizes)[:-1].tolist(), ptr_of(sizes)[1:].tolist(), strict=True)):
        x, edge_index = arguments["x"], arguments["edge_index"]
        own = (edge_index[0] >= start) & (edge_index[0] < end)
        alone = layer(x[start:end], edge_index[:, own] - start)
        mine = slice(int(out.ptr[g]), int(out.ptr[g + 1]))
        torch.testing.assert_close(out.x[mine], alone.x)
        torch.testing.assert_close(adjacency[mine, mine], matrix(alone))
        torch.testing.assert_close({name: loss[g : g + 1] for name, loss in out.loss.items()}, alone.loss)


@every_layer
@given(sizes=sizes, seed=seeds)
def test_called_with_edges_or_with_lists_of_neighbors(case, sizes, seed):
    """As the blocks of hierarchical models call it; EigenPool has clusters in its lists, so it gets edges."""
    layer = layer_of(case)
    arguments = graphs_of(sizes, seed)
    lists = neighbors_of(arguments["edge_index"], sum(sizes))
    neighbors = Edges(arguments["edge_index"]) if case.startswith("eigen") else lists
    want = layer(**arguments)
    assume_no_ties(want)
    assert_same(layer.pool(arguments["x"], GraphStructure(ptr_of(sizes), neighbors)), want)


@every_layer
def test_one_layer_after_another(case):
    """By the fields of the result, and by its structure."""
    layer = layer_of(case)
    first = make_pooling("topkpool", CHANNELS, ratio=0.8).double()(**graphs_of())
    by_fields = layer(first.x, first.edge_index, first[2], first.batch, batch_size=len(SIZES))
    assert_same(layer.pool(first.x, first.graphs()), by_fields)


@every_weighted_layer
def test_weights_are_repeated_edges(case):
    layer = layer_of(case)
    arguments = graphs_of()
    times = torch.arange(arguments["edge_index"].shape[1]) % 3
    once = layer(**arguments | {"edge_weight": times.double()})
    repeated = layer(**arguments | {"edge_index": arguments["edge_index"].repeat_interleave(times, dim=1)})
    assert_same(once, repeated)
    assert_same(layer(**arguments | {"edge_weight": torch.ones(len(times))}), layer(**arguments))


@every_layer
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_types_and_devices_are_kept(case, dtype):
    layer = layer_of(case).to(dtype)
    arguments = graphs_of()
    out = layer(**arguments | {"x": arguments["x"].to(dtype)})
    floating = [leaf for leaf in pytree.tree_leaves(out) if leaf.is_floating_point()]
    assert {leaf.dtype for leaf in floating} == {dtype}
    assert {leaf.dtype for leaf in pytree.tree_leaves(out)} <= {dtype, torch.long}
    assert {leaf.device for leaf in pytree.tree_leaves(out)} == {torch.device("cpu")}
    assert out.lift(out.x).dtype == dtype


@every_layer
def test_half_types_against_float64(case):
    """Features and parameters are rounded first, so that the same nodes are kept."""
    layer = layer_of(case).bfloat16()
    arguments = graphs_of()
    x = (torch.arange(arguments["x"].numel()).view_as(arguments["x"]) % 17 / 8).bfloat16()
    got = layer(**arguments | {"x": x})
    want = layer.double()(**arguments | {"x": x.double()})
    assert got.ptr.tolist() == want.ptr.tolist()
    if want.perm is None or torch.equal(got.perm, want.perm):
        torch.testing.assert_close(got.x.double(), want.x, rtol=0.05, atol=0.02 * want.x.abs().max().item())


@every_layer
def test_autocast(case):
    layer = layer_of(case).float()
    arguments = graphs_of()
    arguments["x"] = arguments["x"].float()
    want = layer(**arguments)
    with torch.autocast("cpu", torch.bfloat16):
        got = layer(**arguments)
        half = layer(**arguments | {"x": arguments["x"].bfloat16()})
    assert_same(got, want)
    assert half.x.isfinite().all()
    assert half.ptr.shape == want.ptr.shape


@every_layer
def test_gradients_reach_features_weights_and_parameters(case):
    layer = layer_of(case)
    arguments = graphs_of()
    arguments["x"].requires_grad_()
    weights = weights_of(layer, arguments)
    uses = not case.startswith("topk")  # which only returns the weights of the edges that are kept
    inputs = [arguments["x"], *layer.parameters(), *(weight.requires_grad_() for weight in weights.values() if uses)]
    gradients = torch.autograd.grad(total(layer(**arguments | weights)), inputs)
    assert all(gradient.isfinite().all() and gradient.any() for gradient in gradients)


@every_layer
def test_the_same_again_and_inputs_as_they_were(case):
    layer = layer_of(case)
    arguments = graphs_of()
    before = copy.deepcopy(arguments)
    first = pytree.tree_leaves(layer(**arguments))
    second = pytree.tree_leaves(layer.eval()(**arguments))
    assert all(map(torch.equal, first, second))
    assert all(torch.equal(arguments[name], before[name]) for name in ("x", "edge_index", "batch"))


@every_layer
def test_reset_parameters_draws_anew(case):
    layer = layer_of(case)
    before = [parameter.clone() for parameter in layer.parameters()]
    layer.reset_parameters()
    bound = CHANNELS**-0.5
    for old, new in zip(before, layer.parameters(), strict=True):
        assert not torch.equal(old, new)
        assert new.abs().max() <= bound


@every_layer
def test_shown_as_made(case):
    """What is shown makes the same layer again."""
    layer = layer_of(case)
    shown = repr(layer)
    assert shown.startswith(f"{type(layer).__name__}({CHANNELS}")
    again = eval(shown, {type(layer).__name__: type(layer)})
    options = ("ratio", "min_score", "multiplier", "nonlinearity", "clusters", "heads", "normalize", "vectors", "size")
    assert [getattr(again, name, None) for name in options] == [getattr(layer, name, None) for name in options]


@every_layer
@pytest.mark.parametrize("way", ["copied", "pickled", "loaded"])
def test_a_layer_is_copied_and_saved(case, way):
    layer = layer_of(case)
    arguments = graphs_of()
    want = layer(**arguments)
    if way == "loaded":
        name, options = OPTIONS[case]
        again = make_pooling(name, CHANNELS, **options).double()
        again.load_state_dict(layer.state_dict())
    else:
        again = copy.deepcopy(layer) if way == "copied" else pickle.loads(pickle.dumps(layer))
    assert_same(again(**arguments), want)


@every_layer
def test_a_result_is_a_pytree_and_can_be_copied(case):
    """It crosses torch.export, vmap and compile as its tensors do."""
    with torch.no_grad():
        out = layer_of(case)(**graphs_of())
    following = make_pooling("topkpool", out.x.shape[1]).double()
    leaves, spec = pytree.tree_flatten(out)
    assert all(isinstance(leaf, torch.Tensor) for leaf in leaves)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    for again in (pytree.tree_unflatten(leaves, spec), copy.deepcopy(out), pickle.loads(pickle.dumps(out))):
        assert_same(again, out)
        assert_same(following.pool(again.x, again.graphs()), following.pool(out.x, out.graphs()))
    twice = pytree.tree_map(lambda tensor: 2 * tensor if tensor.is_floating_point() else tensor, out)
    torch.testing.assert_close(twice.x, 2 * out.x)
    keys = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(out)[0]]
    assert keys[:3] == [".x", ".ptr", ".edge_index"]


@every_layer
def test_as_data_of_pyg(case):
    layer = layer_of(case)
    arguments = graphs_of()
    out = layer(**arguments | weights_of(layer, arguments))
    data = out.as_data()
    assert isinstance(data, Data)
    assert data.validate()
    assert data.num_nodes == len(out.x)
    assert data.x is out.x
    assert data.edge_index is out.edge_index
    assert data.batch is out.batch
    assert data.get("edge_weight") is out.edge_weight
    assert "edge_attr" not in data
    conv = GraphConv(layer.out_channels, 3).double()
    assert conv(data.x, data.edge_index, data.edge_weight if "edge_weight" in data else None).isfinite().all()


@every_layer
def test_not_contiguous(case):
    layer = layer_of(case)
    arguments = graphs_of()
    strided = {name: arguments[name].t().contiguous().t() for name in ("x", "edge_index")}
    assert_same(layer(**arguments | strided), layer(**arguments))


@every_layer
def test_a_vector_of_samples(case):
    """torch.func.vmap over features, where the graphs are given: the features of each sample."""
    layer = layer_of(case)
    if case.endswith("above"):
        pytest.skip("the number of nodes depends on the features")
    arguments = graphs_of()
    samples = torch.stack([arguments["x"], 2 - arguments["x"]])
    each = [layer(**arguments | {"x": x}) for x in samples]
    got = torch.func.vmap(lambda x: layer(**arguments | {"x": x}).x)(samples)
    torch.testing.assert_close(got, torch.stack([one.x for one in each]))
    if each[0].perm is None:  # otherwise the number of edges depends on the features
        whole = torch.func.vmap(lambda x: layer(**arguments | {"x": x}))(samples)
        mine, *theirs = (dict(pytree.tree_leaves_with_path(one)) for one in (whole, *each))
        for name, first in theirs[0].items():  # under vmap, the order of sorted nodes is there, too
            torch.testing.assert_close(mine[name], torch.stack([first, theirs[1][name]]))


class Traced(torch.nn.Module):
    """The tensors of a result: torch.jit.trace does not know pytrees."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index, batch):
        out = self.layer(x, edge_index, batch=batch, batch_size=len(SIZES))
        return out.x, out.edge_index, out.batch, out.lift(out.x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@every_weighted_layer
def test_traced_on_one_batch_and_run_on_another(case):
    """EigenPool is left out: its clusters are computed by NumPy."""
    layer = layer_of(case)
    first, second = graphs_of(), graphs_of([3, 4, 0, 9, 1, 7], 1)
    traced = torch.jit.trace(Traced(layer), tuple(first[name] for name in ("x", "edge_index", "batch")))
    got = traced(second["x"], second["edge_index"], second["batch"])
    torch.testing.assert_close(got, Traced(layer)(second["x"], second["edge_index"], second["batch"]))


@every_weighted_layer
def test_exported_on_one_batch_and_run_on_another(case):
    """The program returns the same class, with all its tensors."""
    layer = layer_of(case)
    first, second = graphs_of(), graphs_of([3, 4, 0, 9, 1, 7], 1)
    nodes, edges = torch.export.Dim("nodes"), torch.export.Dim("edges")
    dynamic = {"x": {0: nodes}, "edge_index": {1: edges}, "batch": {0: nodes}, "batch_size": None}
    program = torch.export.export(layer, (), first, dynamic_shapes=dynamic).module()
    assert_same(program(**second), layer(**second))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler's own, of what it does where a graph breaks
@every_weighted_layer
def test_compiled(case, fresh_compiler):
    layer = layer_of(case)
    compiled = torch.compile(layer, backend="aot_eager", dynamic=True)
    for number in (SIZES, [3, 4, 0, 9, 1, 7]):
        assert_same(compiled(**graphs_of(number)), layer(**graphs_of(number)))
