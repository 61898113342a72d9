import pytest
import torch
from hypothesis import given

from sopool._runtime.threads import threads
from sopool.ops import segment_mean, segment_softmax, segment_spread, segment_sum
from tests.helpers.backends import every_way, on_cpu
from tests.helpers.strategies import draw_rows, ptr_of, seeds, sizes, widths


def parts(x, sizes):
    return x.split(sizes) if sizes else []


@every_way
@given(sizes, widths, seeds)
def test_against_torch_graph_by_graph(sizes, f, seed):
    ptr = ptr_of(sizes)
    x = draw_rows(seed, sum(sizes), f)
    none = x.new_zeros(0, f)
    sums = [p.sum(0, keepdim=True) for p in parts(x, sizes)]
    means = [p.mean(0, keepdim=True).nan_to_num() for p in parts(x, sizes)]
    torch.testing.assert_close(segment_sum(x, ptr), torch.cat([none, *sums]))
    torch.testing.assert_close(segment_mean(x, ptr), torch.cat([none, *means]))
    torch.testing.assert_close(segment_softmax(x, ptr), torch.cat([none, *(p.softmax(0) for p in parts(x, sizes))]))
    spread = [s.expand_as(p) for s, p in zip(sums, parts(x, sizes), strict=True)]
    torch.testing.assert_close(segment_spread(segment_sum(x, ptr), ptr, sum(sizes)), torch.cat([none, *spread]))


def test_softmax_does_not_overflow():
    x = torch.tensor([[1e4], [1e4], [-1e4]])
    torch.testing.assert_close(segment_softmax(x, torch.tensor([0, 3])), torch.tensor([[0.5], [0.5], [0.0]]))


@pytest.mark.parametrize("function", [segment_sum, segment_mean, segment_softmax])
def test_bad_input(function):
    x = torch.ones(3, 2)
    ptr = torch.tensor([0, 3])
    with pytest.raises(ValueError, match=r"x has shape \[3\]: it must be \[rows, channels\]"):
        function(x[:, 0], ptr)
    with pytest.raises(TypeError, match=r"x has dtype torch.int64.*x\.float\(\)"):
        function(x.long(), ptr)
    with pytest.raises(TypeError, match="ptr is a list"):
        function(x, [0, 3])
    with pytest.raises(ValueError, match="ptr is empty"):
        function(x, ptr[:0])


@on_cpu
def test_rows_without_values():
    """Of several threads, and in single precision: that is another way."""
    with threads(2):
        for _ in range(9):
            assert segment_mean(torch.ones(40, 0), ptr_of([20, 0, 20])).shape == (3, 0)


def test_gradients(check_gradients):
    ptr = torch.tensor([0, 3, 3, 7])
    x = draw_rows(0, 7, 2).requires_grad_()
    for function in (segment_sum, segment_mean, segment_softmax):
        check_gradients(lambda x, f=function: f(x, ptr), (x,))
