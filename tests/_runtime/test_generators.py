"""Random numbers of a generator of one's own: the same numbers, and nobody else's generator is touched."""

import threading

import pytest
import torch
from torch.utils import _python_dispatch

from sopool._runtime.generators import drawing_from, drawing_in, planning

HALVES = torch.full((40,), 0.5)
DRAWS = {
    "rand": lambda: torch.rand(3, 7),
    "randn": lambda: torch.randn(40),
    "randint": lambda: torch.randint(2, 9, (7,)),
    "randperm": lambda: torch.randperm(20),
    "like": lambda: torch.stack([torch.rand_like(HALVES), torch.randn_like(HALVES), torch.randint_like(HALVES, 3)]),
    "normal": lambda: torch.normal(HALVES, HALVES),
    "bernoulli": lambda: torch.bernoulli(HALVES),
    "multinomial": lambda: torch.multinomial(HALVES, 5),
    "poisson": lambda: torch.poisson(HALVES),
    "dropout": lambda: torch.nn.functional.dropout(HALVES),
    "in place": lambda: torch.stack(
        [torch.empty(9).random_(5), torch.empty(9).exponential_(), torch.empty(9).cauchy_()]
    ),
    "orthogonal": lambda: torch.nn.init.orthogonal_(torch.empty(5, 6)),
    "truncated": lambda: torch.nn.init.trunc_normal_(torch.empty(50)),
    "linear": lambda: torch.nn.Linear(30, 40).weight,
    "lstm": lambda: torch.nn.LSTM(5, 6).weight_hh_l0,
    "distribution": lambda: torch.distributions.Dirichlet(torch.ones(3)).sample(),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_numbers_are_those_of_the_global_generator_with_that_seed(draw):
    torch.manual_seed(3)
    expected = [draw(), draw()]
    before = torch.get_rng_state()
    with drawing_from(3):
        found = [draw(), draw()]
    assert all(map(torch.equal, found, expected))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_that_is_given_is_used():
    given = torch.Generator().manual_seed(5)
    expected = torch.rand(4, generator=torch.Generator().manual_seed(5))
    with drawing_from(3):
        assert torch.equal(torch.rand(4, generator=given), expected)
        assert torch.equal(torch.rand(4), torch.rand(4, generator=torch.Generator().manual_seed(3)))


def test_an_operator_without_a_generator_is_refused():
    x = torch.ones(1, 2, 3, 4)
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with drawing_from(0), pytest.raises(RuntimeError, match=r"attention.* takes no generator.*torch.nn.init"):
        attention(x, x, x, 0.5)


def test_attention_without_dropout_draws_nothing():
    x = torch.randn(1, 2, 3, 4)
    expected = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    with drawing_from(0):
        assert torch.equal(torch.nn.functional.scaled_dot_product_attention(x, x, x), expected)


def test_other_threads_draw_as_before():
    torch.manual_seed(1)
    expected = torch.rand(4)
    found = []
    torch.manual_seed(1)
    with drawing_from(3):
        other = threading.Thread(target=lambda: found.append(torch.rand(4)))
        other.start()
        other.join()
    assert torch.equal(found[0], expected)


def test_some_modules_draw_as_if_all_did():
    first, second = torch.nn.Dropout(0.5), torch.nn.Dropout(0.3)
    x = torch.ones(20)
    with drawing_from(3):
        expected = first(x), second(x)
    torch.manual_seed(1)
    outside = torch.rand(4)
    torch.manual_seed(1)
    with drawing_in([first, second], 3):
        found = first(x), second(x)
        assert torch.equal(torch.rand(4), outside)
    assert all(map(torch.equal, found, expected))
    assert not torch.equal(first(x), expected[0])
    assert "forward" not in vars(first)


def test_plans_take_no_memory_and_draw_nothing():
    before = torch.get_rng_state()
    with planning():
        module = torch.nn.Linear(2**20, 2**20)
        there = torch.rand(3, device="cpu")
    assert module.weight.is_meta
    assert not there.is_meta
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_that_overlap_leave_no_dispatch_mode_behind():
    """PyTorch notes for the whole process whether a mode is active, and ``torch.compile`` reads that."""

    def work():
        for _ in range(40):
            with drawing_from(0):
                torch.rand(1)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not _python_dispatch.is_in_torch_dispatch_mode()


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_the_dropout_of_a_gpu_draws_from_the_generator_too(p):
    x = torch.linspace(1, 2, 400, dtype=torch.float64, requires_grad=True)

    def draw(seed, train=True):
        with drawing_from(seed):
            return torch.native_dropout(x, p, train)

    before = torch.get_rng_state()
    found, mask = draw(3)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(found, draw(3)[0])
    assert torch.allclose(found, x * mask / (1 - p) if p < 1 else torch.zeros_like(x))
    assert abs(mask.double().mean() - (1 - p)) < 0.1
    (gradient,) = torch.autograd.grad(found.sum(), x)
    assert torch.allclose(gradient * x, found)
    assert 0 < p < 1 or torch.equal(found, draw(4)[0])
    assert torch.equal(draw(3, train=False)[0], x)
