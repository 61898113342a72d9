"""How much memory a bank takes, estimated from one forward pass of one model."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from sopool.training.bank import Bank
from sopool.training.config import RunConfig
from sopool.training.splits import Split
from sopool.training.tables import GraphTables
from sopool.training.watch import TOGETHER

COPIES = 8
"""Of a model's parameters: values, gradient (as it comes and as one row), Adam's two means and what a step of it needs,
the best so far."""
BACKWARD = 2.0
"""What a step takes, over what its forward pass keeps: a gradient on the way back is as large as what it is of."""


class BankMemory(NamedTuple):
    """In bytes, for one model of a bank."""

    state: int
    step: int
    """Of the batch, forward and backward."""
    node: float
    """Of one node, forward."""

    def of(self, models: int, device: str, nodes: int) -> int:
        """All that a bank of so many takes on a device, if each model scores graphs with so many ``nodes``."""
        together = min(nodes, TOGETHER["cpu"]) * models if device == "cpu" else min(nodes * models, TOGETHER["cuda"])
        return int(models * self.state + max(models * self.step, together * self.node))


def bank_memory(tables: GraphTables, config: RunConfig, split: Split) -> BankMemory:
    """Measured on a batch of graphs of all sizes: of every so many in the order of size, the middle one."""
    bank = Bank(tables, [config], [split])
    chosen = _typical(np.asarray(tables.node_ptr.diff().cpu())[split.train], bank.batch_size)
    batch = tables.batch(torch.from_numpy(split.train[chosen]).unsqueeze(0), bank.substitutes)
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        bank.model.train().classify(batch.x.to(bank.dtype), batch.neighbors, batch.ptr, None)
    kept.pop(bank.values.untyped_storage().data_ptr(), None)
    forward = sum(kept.values())
    state = COPIES * bank.values.nbytes + bank.statistics.nbytes
    return BankMemory(state, int(BACKWARD * forward), forward / max(1, len(batch.x)))


def _typical(sizes: np.ndarray, count: int) -> np.ndarray:
    """Numbers of ``count`` of them, spread evenly over the order of size."""
    places = ((np.arange(count) + 0.5) * len(sizes) / count).astype(np.int64)
    order: np.ndarray = np.argsort(sizes, kind="stable")
    return order[places]
