"""What a frozen pooling is: the trained one's first draw, for good, while all else learns."""

from dataclasses import replace

import pytest
import torch

from sopool.models import make_model, stack
from sopool.nn import READOUTS, BilinearSecondOrderAggregation
from sopool.training.bank.bank import new_model
from sopool.training.run_splits import run_seed
from tests.helpers.model_cases import CASES, tables_for
from tests.helpers.reference import Reference
from tests.helpers.training_graphs import bank_of, little_store, run_config, tables_of

FROZEN = {name: config for name, config in CASES.items() if config.frozen}
every_control = pytest.mark.parametrize("config", FROZEN.values(), ids=FROZEN)


def pooling_names(model):
    return {name for name in model.state_dict() if name.startswith(("readouts.", "pools."))}


def values_of(bank, m):
    return {name: tensor[m].clone() for name, tensor in bank.model.state_dict().items()}


@every_control
def test_it_starts_where_the_trained_one_starts(config):
    """Every number of it, what comes after the pooling included."""
    control, trained = (
        new_model(run_config(model=vars(model)), 5, 2).state_dict() for model in (config, replace(config, frozen=False))
    )
    assert control.keys() == trained.keys()
    assert all(torch.equal(control[name], trained[name]) for name in trained)


@every_control
@pytest.mark.parametrize("more", [{}, {"weight_decay": 0.1}, {"average": 0.9}])
def test_only_the_pooling_stays(config, more):
    """In a bank beside others, with weight decay, which would shrink what has no gradient."""
    runs = [run_config(model=vars(config), seed=seed, **more) for seed in range(3)]
    bank = bank_of(tables_for(config), runs)
    before = values_of(bank, 1)
    for _ in range(3):
        bank.run_epoch()
    after = values_of(bank, 1)
    names = pooling_names(bank.model)
    assert names
    stayed = {name for name in before if torch.equal(before[name], after[name])}
    assert stayed == names


@every_control
def test_the_trained_one_moves(config):
    """Or the test above would show nothing."""
    bank = bank_of(tables_for(config), [run_config(model=vars(replace(config, frozen=False)))])
    before = values_of(bank, 0)
    bank.run_epoch()
    after = values_of(bank, 0)
    assert not any(torch.equal(before[name], after[name]) for name in pooling_names(bank.model))


@pytest.mark.parametrize("pool", ["sopool-bimap", "sopool-attn", "sopool-m-attn"])
def test_all_else_is_trained_as_by_torch(pool):
    """Against the plain loop, in which the pooling is no parameter of the optimiser either."""
    store = little_store()
    tables = tables_of(store)
    config = run_config(model={"pool": pool, "frozen": True}, weight_decay=0.1)
    bank = bank_of(tables, [config])
    model = new_model(config, tables.features.width, tables.goal[0].width)
    plain = Reference(store, tables.features, model, config, bank.splits[0].train, run_seed(config))
    for epoch in range(3):
        assert bank.run_epoch()[0] == pytest.approx(plain.run_epoch(epoch), rel=1e-9)
    values = torch.cat([p.detach().flatten() for p in plain.model.parameters()])
    torch.testing.assert_close(bank.values[0], values, rtol=1e-8, atol=1e-9)


@every_control
def test_no_optimiser_sees_the_pooling(config):
    models = [make_model(config, 5, 2) for _ in range(2)]
    for model in (models[0], stack(models)):
        assert pooling_names(model)
        assert not pooling_names(model) & {name for name, _ in model.named_parameters()}


class Directions(BilinearSecondOrderAggregation):
    """Of a user's own, with a mapping that stays as it was drawn."""

    def __init__(self, channels):
        super().__init__(channels, rank=3, lr_scale=0.5)
        self.weight.requires_grad_(False)


def test_what_wants_no_gradient_stays(monkeypatch):
    monkeypatch.setitem(READOUTS, "mine", Directions)
    bank = bank_of(tables_of(little_store()), [run_config(model={"pool": "mine"}, weight_decay=0.1, average=0.9)])
    before = values_of(bank, 0)
    bank.run_epoch()
    after = values_of(bank, 0)
    assert {name for name in before if torch.equal(before[name], after[name])} == {"readouts.0.weight"}
