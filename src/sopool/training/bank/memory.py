"""Estimate the memory that a bank needs, measured on one step of one model."""

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
"""How many copies of a model's parameters exist outside a step: its values, the optimizer's two
matrices, the best ones so far and a snapshot."""
MARGIN = 2.0
"""A factor for memory that is not measured: operators' workspaces, larger batches, and memory that allocators keep."""


class BankMemory(NamedTuple):
    """The memory of one model of a bank, in bytes."""

    state: int
    """The memory outside a step."""
    step: int
    """The peak of a training step, forward and backward."""
    node: float
    """The peak of scoring, per node."""
    width: int
    """The number of features of a node; not in bytes."""

    def of(self, models: int, device: str, nodes: int) -> int:
        """Return the memory of ``models`` models on a device if each scores graphs with ``nodes`` nodes in all."""
        together = models * min(nodes, nodes_together(device, models, self.width))
        return int(models * self.state + MARGIN * max(models * self.step, together * self.node))


def bank_memory(tables: GraphTables, config: RunConfig, split: Split) -> BankMemory:
    """Measure the memory on a batch of typical training graphs."""
    bank = Bank(tables, [config], [split])
    sizes = np.asarray(tables.node_ptr.diff().cpu())
    graphs = split.train[typical(sizes[split.train], bank.batch_size)]
    numbers = torch.from_numpy(graphs).unsqueeze(0)

    def step() -> None:
        batch = tables.batch(numbers, bank.inputs)
        scores, penalty = bank.model.train().classify(*batch.to(bank.dtype))
        loss = scores.sum() if penalty is None else scores.sum() + penalty.sum()
        torch.autograd.grad(loss, bank.parameters, materialize_grads=True)

    state = COPIES * bank.values.nbytes + bank.statistics.nbytes + bank.average.nbytes
    scoring = peak_bytes(lambda: bank.scores([graphs]))
    return BankMemory(state, peak_bytes(step), scoring / max(1, int(sizes[graphs].sum())), bank.width)


def typical(sizes: np.ndarray, count: int) -> np.ndarray:
    """Return the numbers of ``count`` graphs of typical sizes, evenly spaced in the order of size."""
    places = ((np.arange(count) + 0.5) * len(sizes) / count).astype(np.int64)
    order: np.ndarray = np.argsort(sizes, kind="stable")
    return order[places]


def peak_bytes(work: Callable[[], object]) -> int:
    """Return the largest total size of the tensors that exist at one time during ``work``."""
    meter = _Meter()
    with meter:
        work()
    return meter.peak


class _Meter(TorchDispatchMode):
    """Track every tensor that an operator returns, and when its memory is freed."""

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
                self._known.add(tensor.untyped_storage())  # existed before, or is already counted
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
