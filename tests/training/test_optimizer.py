from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from sopool.errors import DataError
from sopool.models.systems.recipe import WITH_MOMENTUM, OptimizerName
from sopool.ops import backend
from sopool.training.bank.bank import Bank, new_model
from sopool.training.bank.optimizer import OPTIMIZERS, clip_norms, fresh_shares
from sopool.training.run_splits import run_seed
from sopool.training.runs.config import RunConfig
from tests.helpers.marks import needs_triton
from tests.helpers.reference import OPTIMIZERS as THEIRS
from tests.helpers.reference import Reference
from tests.helpers.runs import CONFIG
from tests.helpers.training_graphs import bank_of, little_store, run_config, tables_of

CASES = [("adam", 0.0), ("adagrad", 0.0), *((name, momentum) for name in WITH_MOMENTUM for momentum in (0.0, 0.9))]


@pytest.mark.parametrize(("name", "momentum"), CASES)
@pytest.mark.parametrize("way", ["torch", pytest.param("triton", marks=needs_triton)])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_steps_are_those_of_torch(name, momentum, way, dtype, limit):
    """With a rate of its own for each of three models."""
    rates = [0.1, 0.01, 0.003]
    start = torch.randn(3, 1500, generator=torch.Generator().manual_seed(0), dtype=dtype)
    values = start.clone()
    optimizer = OPTIMIZERS[name].start(start, momentum)
    theirs = [row.clone().requires_grad_() for row in start]
    groups = [{"params": [row], "lr": rate} for row, rate in zip(theirs, rates, strict=True)]
    other = THEIRS[name](groups, **({"momentum": momentum} if momentum else {}))
    paces, roots = (torch.from_numpy(one).to(dtype) for one in optimizer.corrections(np.array(rates)[:, None], 1, 20))
    for pace, root in zip(paces, roots, strict=True):
        with backend(way):
            optimizer.step(values, values.sin(), pace, root)
        for row in theirs:
            row.grad = row.sin().detach()
        other.step()
    torch.testing.assert_close(values, torch.stack(theirs).detach(), rtol=limit, atol=limit)


def test_every_optimizer_of_a_configuration_exists():
    assert tuple(OPTIMIZERS) == get_args(OptimizerName)


@pytest.mark.parametrize(("name", "momentum"), CASES[1:])
def test_banks_train_as_torch_does(name, momentum):
    """With an L2 penalty and clipped gradients, and each model by its own norm and its own rate."""
    tables = tables_of(little_store())
    shared = {"optimizer": name, "momentum": momentum, "clip": 0.3, "weight_decay": 0.1, "lr": 0.002}
    configs = [run_config(**shared, seed=0), run_config(**shared | {"lr": 0.001}, seed=1)]
    together = bank_of(tables, configs)
    found = [together.run_epoch() for _ in range(3)]
    for number, config in enumerate(configs):
        alone = bank_of(tables, [config])
        model = new_model(config, tables.features.width, tables.goal[0].width)
        store = little_store()
        plain = Reference(store, tables.features, model, config, alone.splits[0].train, run_seed(config))
        for epoch in range(3):
            want = plain.run_epoch(epoch)
            assert alone.run_epoch()[0] == pytest.approx(want, rel=1e-9)
            assert found[epoch][number] == pytest.approx(want, rel=1e-9)
        values = torch.cat([p.detach().flatten() for p in plain.model.parameters()])
        torch.testing.assert_close(alone.values[0], values, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("name", "momentum"), CASES[1:])
def test_banks_go_on_from_their_state(name, momentum):
    tables = tables_of(little_store())
    configs = [run_config(optimizer=name, momentum=momentum, clip=0.3, seed=seed) for seed in range(2)]
    straight, broken = bank_of(tables, configs), bank_of(tables, configs)
    broken.run_epoch()
    straight.run_epoch()
    again = Bank(tables, configs, broken.splits, broken.state, epoch=1)
    np.testing.assert_array_equal(again.run_epoch(), straight.run_epoch())
    assert torch.equal(again.values, straight.values)


def test_gradients_are_clipped_as_torch_clips_them():
    gradient = torch.randn(3, 50, dtype=torch.float64) * torch.tensor([[5.0], [0.01], [0.0]])
    parameters = [torch.nn.Parameter(torch.zeros(50).double()) for _ in gradient]
    for parameter, row in zip(parameters, gradient.clone(), strict=True):
        parameter.grad = row
        torch.nn.utils.clip_grad_norm_([parameter], 2.0)
    clip_norms(gradient, 2.0)
    torch.testing.assert_close(gradient, torch.stack([parameter.grad for parameter in parameters]))
    assert gradient[0].norm().item() == pytest.approx(2)


def test_configurations_name_an_optimizer():
    config = replace(CONFIG, optimizer="sgd", momentum=0.9, clip=2.0)
    assert RunConfig.from_json(config.to_json()) == config
    assert len({CONFIG.key, config.key, replace(config, momentum=0.0).key, replace(config, clip=0.0).key}) == 4
    for wrong, message in (
        ({"optimizer": "lbfgs"}, "config.optimizer"),
        ({"optimizer": "adam"}, r"config.momentum is 0.9, but the optimizer adam has none"),
        ({"momentum": 1.0}, "config.momentum"),
        ({"clip": -1}, "config.clip"),
    ):
        with pytest.raises(DataError, match=message):
            RunConfig.from_json(config.to_json() | wrong)


def test_a_running_mean_begins_with_what_the_first_step_gave():
    np.testing.assert_allclose(fresh_shares(0.9, 1, 4), [1, 10 / 11, 10 / 12, 10 / 13])
    np.testing.assert_allclose(fresh_shares(0.9, 91, 3), 0.1)
