"""Plain eager calls pass the dispatcher of torch.library; whatever must see an operator sees it all the same."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from sopool.ops import segment_attend, segment_bilinear, segment_covariance, segment_gram
from sopool.ops._autograd import Operator
from sopool.ops.segment.size_classes import Plan, graphs_apart, may_pad
from tests.helpers.strategies import draw_rows, ptr_of

PTR = ptr_of([3, 0, 4])
X = draw_rows(0, 7, 3)
WEIGHT = draw_rows(1, 3, 2)
OPERATORS = {
    "segment_gram": lambda x: segment_gram(x, x, PTR),
    "segment_bilinear": lambda x: segment_bilinear(x, WEIGHT, PTR),
    "segment_attend": lambda x: segment_attend(x, WEIGHT[:, :1], PTR),
    "segment_covariance": lambda x: segment_covariance(x, PTR),
}
every_operator = pytest.mark.parametrize("name", OPERATORS)
pytestmark = pytest.mark.parametrize("way", ["torch"], indirect=True)


class Recorder(TorchDispatchMode):
    """A mode that counts the operators that it sees."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen[func.name()] += 1
        return func(*args, **(kwargs or {}))


class Subclass(torch.Tensor):
    """A tensor that counts the operators that it sees."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        SEEN[func.name()] += 1
        plain = [one.inner if isinstance(one, Subclass) else one for one in args]
        return func(*plain, **(kwargs or {}))


def wrap(inner):
    outer = torch.Tensor._make_wrapper_subclass(Subclass, inner.shape, dtype=inner.dtype)
    outer.inner = inner
    return outer


SEEN = Counter()


@every_operator
def test_dispatch_modes_see_operators(name):
    with Recorder() as mode:
        got = OPERATORS[name](X)
    assert mode.seen[f"sopool::{name}"] == 1
    torch.testing.assert_close(got, OPERATORS[name](X))


@every_operator
def test_modes_see_backward_passes(name):
    x = X.clone().requires_grad_()
    out = OPERATORS[name](x)
    with Recorder() as mode:
        (gradient,) = torch.autograd.grad(out.sum(), x)
    assert any(seen.startswith(("sopool::", "aten::index_select")) for seen in mode.seen)
    torch.testing.assert_close(gradient, torch.autograd.grad(OPERATORS[name](x).sum(), x)[0])


@every_operator
def test_subclasses_see_operators(name):
    SEEN.clear()
    OPERATORS[name](wrap(X))
    assert SEEN[f"sopool::{name}"] == 1


@every_operator
def test_traces_contain_operators(name):
    graph = make_fx(OPERATORS[name])(X)
    assert f"sopool.{name}" in graph.code
    torch.testing.assert_close(graph(2 * X), OPERATORS[name](2 * X))


@every_operator
def test_fake_tensors_have_shapes(name):
    want = OPERATORS[name](X).shape
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert OPERATORS[name](mode.from_tensor(X)).shape == want


@every_operator
def test_other_modes(name):
    class Same(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    want = OPERATORS[name](X)
    with FlopCounterMode(display=False):
        torch.testing.assert_close(OPERATORS[name](X), want)
    with Same():
        torch.testing.assert_close(OPERATORS[name](X), want)


def test_eager_calls_pass_the_dispatcher():
    def dispatch(x):
        raise AssertionError("the dispatcher was called")

    def save(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * gradient * x

    square = Operator(dispatch, lambda x, plan: x.square(), save, backward)
    assert torch.equal(square(X), X.square())
    assert torch.autograd.gradcheck(square, X.clone().requires_grad_())
    assert torch.autograd.gradgradcheck(square, X.clone().requires_grad_())
    with Recorder(), pytest.raises(AssertionError, match="the dispatcher was called"):
        square(X)


def test_batched_gradients():
    """The vectorized Jacobian differentiates under vmap."""
    for name, operator in OPERATORS.items():
        one = torch.autograd.functional.jacobian(operator, X)
        torch.testing.assert_close(torch.autograd.functional.jacobian(operator, X, vectorize=True), one, msg=name)


def test_padding_is_for_small_batches_of_similar_graphs():
    small = ptr_of([3, 0, 4])
    padding = Plan(may_pad=True).padding(small, 8)
    rows = draw_rows(0, 7, 8)
    assert torch.equal(padding.unpad(padding.pad(rows)), rows)
    assert padding.pad(rows).sum() == pytest.approx(rows.sum())
    assert Plan(may_pad=False).padding(small, 8) is None
    assert Plan(may_pad=True).padding(ptr_of([1, 1, 100]), 8) is None
    assert Plan(may_pad=True).padding(ptr_of([100_000]), 8) is None
    assert Plan(may_pad=True).padding(ptr_of([0, 0]), 8) is None


def test_graphs_are_apart_in_one_thread_only():
    with graphs_apart(), ThreadPoolExecutor(1) as pool:
        assert not may_pad()
        assert pool.submit(may_pad).result()
        with graphs_apart():
            assert not may_pad()
        assert not may_pad()
    assert may_pad()
