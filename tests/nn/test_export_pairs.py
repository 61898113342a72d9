"""Pairs of nodes in programs of standard operators."""

import pytest
import torch

from sopool.nn import PairSecondOrderAggregation
from sopool.ops import find_pairs
from tests.helpers.exported import exported, is_standard, onnx_session, quiet
from tests.helpers.pair_graphs import random_edges
from tests.helpers.strategies import draw_rows, index_of

pytestmark = quiet
FORMS = {
    "lists": {"rest": True, "normalize": "log", "with_sum": True},
    "by pairs": {"normalize": "pairs", "batch_norm": True},
    "walks": {"walks": True, "normalize": "norm"},
    "edges": {"distances": 1, "rest": True},
}
SOME = ["lists", "walks", *(pytest.param(name, marks=pytest.mark.slow) for name in ("by pairs", "edges"))]
OTHERS = [[2, 5, 0], [7, 0, 30, 2], [1], [4, 4]]


def readout_of(form):
    torch.manual_seed(0)
    return PairSecondOrderAggregation(3, **({"rank": 2, "distances": 2} | FORMS[form])).eval()


def inputs(form, sizes, directed=False):
    """Edges for walks and at distance 1; otherwise pairs, some of them farther apart than the readout reaches."""
    x, edges, index = draw_rows(0, sum(sizes), 3).float(), random_edges(sizes, 0, directed), index_of(sizes)
    if form in ("walks", "edges"):
        return x, edges, index
    return x, None, index, None, *find_pairs(edges, len(x), 4).coordinates()


@pytest.mark.parametrize("form", SOME)
def test_in_onnxruntime(form):
    readout = readout_of(form)
    program = exported(readout, inputs(form, [3, 0, 4, 5]))
    assert is_standard(program)
    run = onnx_session(program)
    for sizes in OTHERS:
        for directed in (False, True):
            given = inputs(form, sizes, directed)
            torch.testing.assert_close(run(given)[0], readout(*given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", ["lists", "walks"])
def test_gradients_of_the_program(form):
    readout = readout_of(form)
    x, *others = inputs(form, [3, 0, 4, 5])
    program = exported(readout, (x, *others)).module()
    x.requires_grad_()
    (got,) = torch.autograd.grad(program(x, *others).sin().sum(), x)
    (want,) = torch.autograd.grad(readout(x, *others).sin().sum(), x)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_a_program_cannot_search():
    x, edges, index = inputs("edges", [3, 4])
    with pytest.raises(Exception, match="an exported program cannot search for pairs of nodes"):
        exported(readout_of("lists"), (x, edges, index))
