"""Derivatives of readouts and poolings of every kind that PyTorch knows: against those of reverse mode."""

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

from sopool.nn import DiffPooling, MultiHeadSecondOrderPooling, SelfAttentionPooling, TopKPooling
from tests.helpers.readouts import CHANNELS, batch_of, every_readout, few_readouts, readout_of
from tests.helpers.strategies import draw_rows

SIZES = [0, 3, 1, 0, 2]
# SortPool takes windows by a function of torch that has no rule for vmap, and says so.
pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
reverse = torch.autograd.functional


def functions_of(name):
    """A readout as a function of the rows, in their order and in another, with the rows and a direction for them."""
    readout = readout_of(name)
    (x, ptr, index) = batch_of(SIZES)
    shuffle = torch.randperm(len(x))
    v = draw_rows(1, *x.shape)
    yield lambda x: readout(x, ptr=ptr), x, v
    yield lambda x: readout(x, index[shuffle], dim_size=len(SIZES)), x[shuffle], v


def dual_tangent(function, x, v):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(x, v))).tangent


@every_readout
def test_tangents(name):
    for function, x, v in functions_of(name):
        jacobian = reverse.jacobian(function, x)
        want = (jacobian * v).sum((-1, -2))
        torch.testing.assert_close(jvp(function, (x,), (v,))[1], want)
        torch.testing.assert_close(dual_tangent(function, x, v), want)
        torch.testing.assert_close(dual_tangent(function, x.clone().requires_grad_(), v), want)
        for transform in (jacfwd, jacrev):
            torch.testing.assert_close(transform(function)(x), jacobian)


@every_readout
def test_tangents_are_finite_differences(name):
    for function, x, _ in functions_of(name):
        assert gradcheck(function, (x.requires_grad_(),), check_forward_ad=True, check_backward_ad=False)


@every_readout
def test_hessians(name):
    for function, x, _ in functions_of(name):

        def loss(x, function=function):
            return function(x).square().sum()

        torch.testing.assert_close(hessian(loss)(x), reverse.hessian(loss, x))


@every_readout
def test_gradients_of_parameters_sample_by_sample(name):
    readout = readout_of(name)
    (x, ptr, _) = batch_of(SIZES)
    parameters = {key: value.detach() for key, value in readout.named_parameters()} | {"x": x}

    def loss(given, x):
        own = {key: value for key, value in given.items() if key != "x"}
        return functional_call(readout, own, (given["x"] * x,), {"ptr": ptr}).square().sum()

    some = draw_rows(2, 3, *x.shape)
    together = vmap(grad(loss), (None, 0))(parameters, some)
    for number, sample in enumerate(some):
        own = {key: value.clone().requires_grad_() for key, value in parameters.items()}
        want = torch.autograd.grad(loss(own, sample), list(own.values()))
        torch.testing.assert_close([value[number] for value in together.values()], list(want))


@every_readout
def test_tangents_of_gradients_recorded_before(name):
    """Forward mode over a graph that was made without it."""
    for function, x, _ in functions_of(name):
        out = function(x.requires_grad_())
        w = draw_rows(2, *out.shape)
        v = draw_rows(3, *out.shape)
        (want,) = torch.autograd.grad(out, x, v, retain_graph=True)
        got = dual_tangent(lambda w, out=out, x=x: torch.autograd.grad(out, x, w)[0], w, v)
        torch.testing.assert_close(got, want)


@few_readouts
@pytest.mark.parametrize("backend", [pytest.param("eager", marks=pytest.mark.slow), "aot_eager"])
def test_tangents_inside_the_compiler(name, backend, fresh_compiler):
    for function, x, v in functions_of(name):
        want = jvp(function, (x,), (v,))[1]
        compiled = torch.compile(lambda x, v, f=function: jvp(f, (x,), (v,))[1], fullgraph=True, backend=backend)
        torch.testing.assert_close(compiled(x, v), want)


@pytest.mark.parametrize("name", ["sum", "sopool", "sopool-bimap"])
def test_tangents_through_what_was_compiled_without_them(name, fresh_compiler):
    for function, x, v in functions_of(name):
        compiled = torch.compile(function, fullgraph=True, backend="eager")
        compiled(x)
        torch.testing.assert_close(dual_tangent(compiled, x, v), jvp(function, (x,), (v,))[1])


EDGES = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5, 0, 2, 1], [1, 0, 2, 1, 4, 3, 5, 4, 2, 0, 2]])
BATCH = torch.tensor([0, 0, 0, 1, 1, 1])
POOLINGS = [DiffPooling(3, 2), SelfAttentionPooling(3), TopKPooling(3), MultiHeadSecondOrderPooling(3, 2)]


def all_of(pooled):
    """Whatever has a gradient, in one vector."""
    parts = [pooled.x, pooled.lift(pooled.x), pooled.total_loss, pooled.adj]
    return torch.cat([part.flatten() for part in parts if part is not None])


@pytest.mark.parametrize("pooling", POOLINGS, ids=lambda pooling: type(pooling).__name__)
def test_poolings(pooling):
    """First and second derivatives, in reverse mode, in forward mode and in forward over reverse mode."""
    torch.manual_seed(0)
    pooling = pooling.double()
    names = [name for name, _ in pooling.named_parameters()]
    inputs = draw_rows(3, 6, CHANNELS), *(draw_rows(4, *p.shape) for p in pooling.parameters())

    def function(x, *given):
        own = dict(zip(names, given, strict=True))
        return all_of(functional_call(pooling, own, (x, EDGES), {"batch": BATCH}))

    inputs = tuple(one.requires_grad_() for one in inputs)
    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True)
