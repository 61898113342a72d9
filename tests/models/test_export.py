"""Flat and hierarchical models as ONNX files and as packages of AOTInductor."""

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from sopool.models import ModelConfig, make_model, stack
from tests.helpers.exported import check_package, exported, is_standard, onnx_session, quiet
from tests.helpers.model_cases import CASES, batch_of, model_of, tables_for, without_ties, without_twins
from tests.helpers.training_graphs import little_store

pytestmark = quiet
FAST = ("sopool-bimap, flat", "sopool-m-attn, 1 blocks")
SOME = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


def case(name):
    """A model with other statistics than the initial ones, and batches of which the first is for exporting."""
    config = CASES[name]
    tables = tables_for(config)
    model = model_of(config, tables, dtype=torch.float32).eval().requires_grad_(False)
    for buffer_name, buffer in model.named_buffers():
        if "running" in buffer_name:
            buffer.uniform_(0.5, 1.5)
    numbers = without_ties([model.double()], tables, without_twins(little_store()))
    model.float()

    def batch(chosen):
        x, neighbors, ptr, *graph_x = batch_of(tables, torch.tensor(chosen, dtype=torch.long))
        neighbors = neighbors._replace(extras=dict(neighbors.extras))  # a program takes tensors in plain containers
        return x.float(), neighbors, ptr, *(values.float() for values in graph_x)

    batches = [batch(some) for some in (numbers, numbers[::-2], numbers[:1], [5], [7, 5, 5], [])]
    return model, batches


@pytest.mark.parametrize("name", SOME)
def test_models_in_onnxruntime(name):
    model, (first, *others) = case(name)
    program = exported(model, first)
    assert is_standard(program)
    run = onnx_session(program)
    for batch in others:
        torch.testing.assert_close(run(batch)[0], model(*batch), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sopool-bimap, flat", "gine, flat", "sagpool, 2 blocks", "diffpool, 2 blocks"])
def test_models_in_a_package_of_aotinductor(name, tmp_path):
    model, (first, *others) = case(name)
    flat = Flattened(model, first)
    cases = [(flat.inputs(batch), model(*batch)) for batch in others]
    check_package(exported(flat, flat.inputs(first)), cases, tmp_path)


class Flattened(torch.nn.Module):
    """A model with tensors as arguments, which another process can have without this package."""

    def __init__(self, model, like):
        super().__init__()
        self.model = model
        leaves, self.spec = tree_flatten(like)
        self.others = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]

    @staticmethod
    def inputs(batch):
        return ([leaf for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor)],)

    def forward(self, tensors):
        given = iter(tensors)
        leaves = [next(given) if other is None else other[0] for other in self.others]
        return self.model(*tree_unflatten(leaves, self.spec))


def test_a_stack_is_refused():
    models = [make_model(ModelConfig(hidden=4, layers=1), 3, 2) for _ in range(2)]
    tables = tables_for(CASES["sum, flat"])
    x, neighbors, ptr = batch_of(tables, torch.arange(4))
    with pytest.raises(ValueError, match="A stack of 2 models cannot be exported: export its models one by one"):
        exported(stack(models), (x.float()[:, :3].contiguous(), neighbors._replace(extras={}), ptr))
