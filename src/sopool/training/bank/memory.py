"""How much memory a bank takes, measured on one step of one model."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sopool.training.bank.bank import Bank
from sopool.training.bank.batching import GraphTables
from sopool.training.bank.scoring import nodes_together
from sopool.training.run_splits import Split
from sopool.training.runs.config import RunConfig

COPIES = 5
"""Of a model's parameters outside a step: its values, Adam's two means, the best so far, and a snapshot on its way."""
MARGIN = 2.0
"""Operators use memory that is not seen from outside, batches differ in size, allocators keep what they were given."""


class BankMemory(NamedTuple):
    """In bytes, for one model of a bank."""

    state: int
    step: int
    """At its height, forward and backward."""
    node: float
    """Of one node whose graph is scored, at its height."""
    width: int
    """Of a node's vectors; a number, not bytes."""

    def of(self, models: int, device: str, nodes: int) -> int:
        """All that a bank of so many takes on a device, if each model scores graphs with so many ``nodes``."""
        together = models * min(nodes, nodes_together(device, models, self.width))
        return int(models * self.state + MARGIN * max(models * self.step, together * self.node))


def bank_memory(tables: GraphTables, config: RunConfig, split: Split) -> BankMemory:
    """Measured on a batch of typical graphs of the training set, as many as a step has."""
    bank = Bank(tables, [config], [split])
    sizes = np.asarray(tables.node_ptr.diff().cpu())
    graphs = split.train[typical(sizes[split.train], bank.batch_size)]
    numbers = torch.from_numpy(graphs).unsqueeze(0)

    def step() -> None:
        batch = tables.batch(numbers, bank.substitutes)
        scores, penalty = bank.model.train().classify(batch.x.to(bank.dtype), batch.neighbors, batch.ptr, None)
        loss = scores.sum() if penalty is None else scores.sum() + penalty.sum()
        torch.autograd.grad(loss, bank.parameters, materialize_grads=True)

    state = COPIES * bank.values.nbytes + bank.statistics.nbytes + bank.average.nbytes
    scoring = peak_bytes(lambda: bank.scores([graphs]))
    return BankMemory(state, peak_bytes(step), scoring / max(1, int(sizes[graphs].sum())), bank.width)


def typical(sizes: np.ndarray, count: int) -> np.ndarray:
    """Numbers of ``count`` of them: of so many equal parts of the order of size, the middle ones."""
    places = ((np.arange(count) + 0.5) * len(sizes) / count).astype(np.int64)
    order: np.ndarray = np.argsort(sizes, kind="stable")
    return order[places]


def peak_bytes(work: Callable[[], object]) -> int:
    """The most that tensors made by ``work`` take at one time."""
    meter = _Meter()
    with meter:
        work()
    return meter.peak


class _Meter(TorchDispatchMode):
    """Sees every tensor that an operator gives, and when its memory is let go."""

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.live = 0
        self.peak = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        for tensor in tree_leaves((args, kwargs)):
            if isinstance(tensor, Tensor):
                self._known.add(tensor.untyped_storage())  # ours before, or counted already
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage())
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage in self._known:
            return
        self._known.add(storage)
        size = storage.nbytes()
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, size)

    def _free(self, size: int) -> None:
        self.live -= size
