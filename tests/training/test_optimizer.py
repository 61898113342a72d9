import numpy as np
import pytest
import torch

from sopool.ops import backend
from sopool.training.bank.optimizer import Adam, fresh_shares, unbias
from tests.helpers.marks import needs_triton


@pytest.mark.parametrize("way", ["torch", pytest.param("triton", marks=needs_triton)])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
def test_steps_are_those_of_torch(way, dtype, limit):
    """With a rate of its own for each of three models."""
    rates = [0.1, 0.01, 0.003]
    start = torch.randn(3, 1500, generator=torch.Generator().manual_seed(0), dtype=dtype)
    values = start.clone()
    adam = Adam.start(start)
    theirs = [row.clone().requires_grad_() for row in start]
    optimizer = torch.optim.Adam([{"params": [row], "lr": rate} for row, rate in zip(theirs, rates, strict=True)])
    paces, roots = (torch.from_numpy(one).to(dtype) for one in unbias(np.array(rates)[:, None], 1, 20))
    for pace, root in zip(paces, roots, strict=True):
        with backend(way):
            adam.step(values, (values**3 - values).detach(), pace, root)
        for row in theirs:
            row.grad = (row**3 - row).detach()
        optimizer.step()
    torch.testing.assert_close(values, torch.stack(theirs).detach(), rtol=limit, atol=limit)


def test_a_running_mean_begins_with_what_the_first_step_gave():
    np.testing.assert_allclose(fresh_shares(0.9, 1, 4), [1, 10 / 11, 10 / 12, 10 / 13])
    np.testing.assert_allclose(fresh_shares(0.9, 91, 3), 0.1)
