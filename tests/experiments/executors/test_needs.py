"""What banks ask for: it grows with what they are made of, and fits what is there."""

import numpy as np
import pytest
import torch

from sopool.experiments.executors.needs import PROCESS, Needs, Resources, share
from sopool.training.bank.memory import bank_memory, peak_bytes, typical
from sopool.training.run_splits import Splitter
from tests.helpers.training_graphs import little_store, run_config, tables_of

STORE = little_store()
TABLES = tables_of(STORE)
LABELS = STORE.labels.numpy()


def needs(device="cpu", machine=1e12, gpu=1e9):
    return Needs(Splitter(LABELS), lambda _: TABLES, device, Resources(machine, gpu))


def memory(**changes):
    config = run_config(**changes)
    return bank_memory(TABLES, config, Splitter(LABELS)(config))


def test_a_step_keeps_at_least_what_every_layer_gives():
    """Of a batch of n nodes, four layers of width h leave at least n x h numbers each for the way back."""
    config = run_config(model={"hidden": 64, "layers": 5})
    found = bank_memory(TABLES, config, Splitter(LABELS)(config))
    nodes = 6 * TABLES.mean_nodes
    assert found.step > 0.8 * nodes * 4 * 64 * 8
    wider = memory(model={"hidden": 128, "layers": 5})
    assert 1.5 < wider.step / found.step < 4
    assert 2 < wider.state / found.state < 5
    assert memory(model={"hidden": 64, "layers": 5}, precision="float32").step < 0.7 * found.step


def test_more_models_take_more():
    one, ten = (needs().bytes_of([run_config()] * count) - PROCESS["cpu"] for count in (1, 10))
    assert ten == pytest.approx(10 * one, rel=0.01)
    assert needs("cuda").bytes_of([run_config()]) > PROCESS["cuda"] + TABLES.nbytes


def test_requests_fit_what_is_there():
    bank = [run_config()]
    assert needs().options(bank) == {"num_cpus": 1, "memory": needs().bytes_of(bank)}
    assert needs(machine=1e6).options(bank)["memory"] == 1_000_000
    wanted = needs("cuda", gpu=80e9)
    assert wanted.options(bank) == {"num_cpus": 1, "num_gpus": share(wanted.bytes_of(bank), 80e9)}
    assert needs("cuda", gpu=1e6).options(bank)["num_gpus"] == 1.0


@pytest.mark.parametrize(("wanted", "there", "part"), [(1, 9, 0.25), (1, 3, 0.334), (9, 3, 1.0), (3, 3, 1.0)])
def test_shares_are_rounded_up(wanted, there, part):
    assert share(wanted, there) == pytest.approx(part)


def test_tables_know_their_size():
    tensors = [*TABLES.neighbors, TABLES.node_ptr, TABLES.truth, TABLES.features.codes, TABLES.features.fallback]
    numbers = TABLES.features.numbers
    tensors += [numbers.values, *numbers.moments, numbers.rounding, TABLES.features.number_columns]
    assert TABLES.nbytes == sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)


def test_the_peak_is_what_is_there_at_one_time():
    before = torch.zeros(1000, requires_grad=True)

    def work():
        first = torch.ones(1000, dtype=torch.float64)  # 8000
        second = first[:500] + 1  # 12000
        del first
        third = before.detach() + 1  # 8000
        del second
        third.add_(1)
        torch.cat([third, third])  # 12000

    assert peak_bytes(work) == 12_000
    # exp keeps its result: two of them, their sum, and a gradient as large as each.
    assert 8_000 < peak_bytes(lambda: torch.autograd.grad(before.exp().exp().sum(), before)) <= 12_100


def test_typical_sizes_have_the_mean_of_all():
    sizes = np.random.default_rng(0).lognormal(3, 1, 1000)
    assert sizes[typical(sizes, 32)].mean() == pytest.approx(sizes.mean(), rel=0.05)
    assert sorted(typical(sizes[:5], 5)) == list(range(5))
