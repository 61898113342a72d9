"""What tests say about the ways they run in, see conftest.py."""

import pytest
import torch

every_way = pytest.mark.parametrize("way", ["loops", "torch", "triton"], indirect=True)
"""For the core of the tests, which runs each of Triton's kernels also in make test."""
on_cpu = pytest.mark.parametrize("way", ["loops", "torch"], indirect=True)
"""For what Triton's kernels do otherwise, or what takes too long in its interpreter."""
by_kernels = pytest.mark.parametrize("way", ["triton"], indirect=True)
"""For what only Triton's kernels do."""


def derivatives(function, inputs, twice):
    """The gradients of a fixed weighting of the outputs, and if asked for those of a weighting of the gradients."""
    out = function(*inputs)
    first = torch.autograd.grad(out, inputs, weights_like(out), create_graph=twice)
    if not twice:
        return first
    gradients = [gradient for gradient in first if gradient.requires_grad]
    second = torch.autograd.grad(
        gradients, inputs, [weights_like(gradient) for gradient in gradients], allow_unused=True
    )
    return *first, *second


def weights_like(values):
    return torch.linspace(-1, 1, max(1, values.numel()), dtype=values.dtype)[: values.numel()].view_as(values).cos()
