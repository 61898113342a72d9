"""The compiled loops against plain products, and against the way without them."""

import importlib.util

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.ops import segment_attend
from sopool.ops.numba import dispatch as compiled
from sopool.ops.segment import torch_backend
from tests.helpers.strategies import draw_rows, ptr_of, seeds, sizes, widths

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed"),
    pytest.mark.parametrize("way", ["loops"], indirect=True),
]
dtypes = st.sampled_from([torch.float32, torch.float64])


@given(sizes, widths, widths, seeds, dtypes, st.integers(0, 30))
def test_products_are_those_of_each_graph(sizes, p, q, seed, dtype, longest):
    """At any size from which on graphs are large."""
    ptr = ptr_of(sizes)
    x = draw_rows(seed, sum(sizes), p, dtype=dtype)
    y = draw_rows(seed + 1, sum(sizes), q, dtype=dtype)
    s = draw_rows(seed + 2, len(sizes), p, q, dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "LONGEST", longest)
        gram = compiled.segment_gram(x, y, ptr)
        applied = compiled.segment_apply(y, s, ptr, symmetrize=False)
    for g, size in enumerate(sizes):
        rows = slice(ptr[g], ptr[g] + size)
        torch.testing.assert_close(gram[g], x[rows].t() @ y[rows])
        torch.testing.assert_close(applied[rows], y[rows] @ s[g].t())


@given(sizes, widths, seeds)
def test_symmetrised_product(sizes, q, seed):
    ptr = ptr_of(sizes)
    y = draw_rows(seed, sum(sizes), q)
    s = draw_rows(seed + 1, len(sizes), q, q)
    expected = compiled.segment_apply(y, s + s.mT, ptr, symmetrize=False)
    torch.testing.assert_close(compiled.segment_apply(y, s, ptr, symmetrize=True), expected)


def test_arguments_need_not_be_contiguous():
    ptr = ptr_of([3, 4])
    x = draw_rows(0, 4, 7).t()
    s = draw_rows(1, 4, 4, 2).permute(2, 0, 1)
    torch.testing.assert_close(compiled.segment_gram(x, x, ptr), compiled.segment_gram(x.contiguous(), x.clone(), ptr))
    expected = compiled.segment_apply(x.contiguous(), s.contiguous(), ptr, symmetrize=False)
    torch.testing.assert_close(compiled.segment_apply(x, s, ptr, symmetrize=False), expected)


def test_serves_whole_precision_only(monkeypatch, way):
    monkeypatch.undo()
    x = torch.zeros(2, 2)
    assert compiled.serves(x)
    assert not compiled.serves(x.bfloat16())
    assert not compiled.serves(torch.zeros(2, 2, device="meta"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert compiled.serves_alone(x)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert not compiled.serves_alone(x)


@given(sizes, st.sampled_from([1, 3]), seeds, st.integers(0, 60), st.integers(1, 3))
def test_the_number_of_threads_changes_nothing(sizes, width, seed, part, threads):
    """With any amount of work in a part, to the bit; and the results are those of a single part."""
    ptr = ptr_of(sizes)
    x = draw_rows(seed, sum(sizes), width)
    query = draw_rows(seed + 1, width, 1)
    gradient = draw_rows(seed + 2, len(sizes), width, 1)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))

    def results():
        pooled, score = compiled.segment_attend(x, query, None, ptr, order)
        gradients = compiled.segment_attend_backward(x, query, score, gradient, None, ptr, order)
        products = compiled.segment_gram(x, x, ptr)
        return pooled, score, *gradients, products, compiled.segment_apply(x, products, ptr, symmetrize=True)

    whole = results()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "PART", part + 1)
        patch.setattr(torch, "get_num_threads", lambda: 1)
        alone = results()
        patch.setattr(torch, "get_num_threads", lambda: threads)
        together = results()
    for one, two, three in zip(alone, together, whole, strict=True):
        assert torch.equal(one, two)
        torch.testing.assert_close(one, three)


def test_an_order_out_of_range_is_refused():
    """Loops do not check their accesses to memory."""
    x = draw_rows(0, 3, 2)
    with pytest.raises(IndexError, match="from 0 to 7 for 3 rows"):
        segment_attend(x, x[:2, :1].contiguous(), ptr_of([3]), order=torch.tensor([0, 7, 1]))


@pytest.mark.parametrize("size", [1, compiled.LONGEST, compiled.LONGEST + 1])
def test_a_graph_does_not_see_the_others(size, monkeypatch):
    """To the bit where our own loop adds up; a product of the BLAS may depend on where its matrices lie."""
    monkeypatch.setattr(compiled, "serves", lambda x: True)
    x = draw_rows(0, size + 50, 8, dtype=torch.float32)
    together = torch_backend.segment_gram(x, x, ptr_of([20, size, 30]))
    alone = torch_backend.segment_gram(x[20 : 20 + size].clone(), x[20 : 20 + size].clone(), ptr_of([size]))
    same = {"rtol": 0, "atol": 0} if size <= compiled.LONGEST else {}
    torch.testing.assert_close(alone[0], together[1], **same)


def test_where_nothing_can_be_kept_loops_are_compiled_anew():
    """As for a package in an image that can only be read; Numba has no place for functions without a file, either."""
    from sopool.ops.numba.loops import compiled as compile_loop

    made = {}
    exec("def twice(x):\n    return 2 * x", made)
    assert compile_loop(made["twice"])(21) == 42
