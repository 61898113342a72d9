import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sopool.nn.dropout import Dropout, random_bits
from sopool.ops import backend
from tests.helpers.marks import needs_triton
from tests.helpers.strategies import seeds


def murmur(bits):
    """The same rounds on unsigned numbers, where shifts need no masks."""
    for shift, multiplier in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        bits = (bits ^ (bits >> np.uint32(shift))) * np.uint32(multiplier)
    return bits


@given(seeds)
def test_bits_are_those_of_unsigned_arithmetic(seed):
    key = np.uint32(seed)
    with np.errstate(over="ignore"):
        bits = np.arange(50, dtype=np.uint32) * np.uint32(0x9E3779B9) ^ key
        expected = murmur(murmur(bits) + key) & np.uint32(0x7FFFFFFF)
    found = random_bits(torch.tensor([seed], dtype=torch.int32), 50)
    np.testing.assert_array_equal(found[0].numpy(), expected.astype(np.int32))


def test_drops_the_share_asked_for_and_keeps_the_mean():
    drop = Dropout(torch.tensor([1, 2, 3], dtype=torch.int32), torch.tensor([0.0, 0.3, 0.9]))
    kept = drop(torch.ones(3 * 100, 200)).view(3, -1)
    assert kept[0].eq(1).all()
    for row, rate in zip(kept[1:], (0.3, 0.9), strict=True):
        share = row.eq(0).double().mean().item()
        assert abs(share - rate) < 0.01  # five deviations of 20,000 draws are 0.016 at most
        assert row.max().item() == pytest.approx(1 / (1 - rate), rel=1e-6)


def test_steps_models_and_places_differ():
    ones = torch.ones(2, 4096)
    drop = Dropout(torch.tensor([5, 6], dtype=torch.int32), torch.tensor([0.5, 0.5]))
    masks = [drop(ones)[0], drop(ones)[1], drop(ones, place=1)[0]]
    for i in range(3):
        for other in masks[i + 1 :]:
            agree = masks[i].eq(other).double().mean().item()
            assert 0.45 < agree < 0.55


def test_a_model_does_not_see_the_others():
    values = torch.randn(6, 10)
    both = Dropout(torch.tensor([7, 8], dtype=torch.int32), torch.tensor([0.5, 0.2]))(values)
    second = Dropout(torch.tensor([8], dtype=torch.int32), torch.tensor([0.2]))(values[3:])
    assert torch.equal(both[3:], second)


@needs_triton
@given(seeds, st.sampled_from([torch.float32, torch.float64]))
def test_the_kernel_drops_the_same(seed, dtype):
    drop = Dropout(torch.tensor([seed, 5, -7], dtype=torch.int32), torch.tensor([0.0, 0.3, 0.9], dtype=dtype))
    values = torch.randn(6, 700, generator=torch.Generator().manual_seed(seed), dtype=dtype).requires_grad_()
    found = []
    for name in ("torch", "triton"):
        with backend(name):
            out = drop(values, place=2)
            found.append((out, *torch.autograd.grad(out.cos().sum(), values)))
    torch.testing.assert_close(found[1], found[0], rtol=1e-6, atol=0)
