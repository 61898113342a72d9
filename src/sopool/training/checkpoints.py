"""Save the state of runs that are trained in a bank, and continue from it with the same results."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from sopool.errors import UserError
from sopool.training.bank.bank import Bank, ModelState, layout_of
from sopool.training.bank.batching import GraphTables
from sopool.training.recorder import Recorder
from sopool.training.runs.config import RunConfig
from sopool.training.runs.schema import check_checkpoint

CHECKPOINT_SECONDS = 20.0
"""The default number of seconds between checkpoints."""


class Checkpoints(Protocol):
    """Where the states of unfinished runs are stored, such as :class:`~sopool.training.runs.store.RunStore`."""

    def save_checkpoint(
        self, config: RunConfig, arrays: Mapping[str, np.ndarray | Tensor], facts: dict[str, Any]
    ) -> None:
        """Store the current state of an unfinished run."""

    def load_checkpoint(self, config: RunConfig) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the last stored state of a run; None if there is none."""


def save_checkpoints(
    store: Checkpoints, bank: Bank, recorders: Sequence[Recorder], which: Collection[int] | None = None
) -> None:
    """Store the states of the runs of a bank.

    Args:
        store: Where they are stored.
        bank: The runs.
        recorders: The recorder of each run.
        which: The numbers of the runs to store. Default: None, all.
    """
    layout = layout_of(bank.configs[0], bank.tables.features.width, bank.tables.goal[0].width)
    for m in range(len(recorders)) if which is None else which:
        state = {name: tensor[m] for name, tensor in vars(bank.state).items()}
        facts = {"epoch": bank.epoch, "chosen_epoch": recorders[m].chosen_epoch, "layout": layout.name}
        store.save_checkpoint(recorders[m].config, state | recorders[m].arrays(), facts)


def restore_checkpoint(
    store: Checkpoints, recorder: Recorder, tables: GraphTables, curves: Collection[str] | None = None
) -> tuple[int, ModelState | None]:
    """Continue a run; return its finished epochs and its state, 0 and None if there is no usable checkpoint.

    Args:
        store: Where checkpoints are stored.
        recorder: The recorder of the run, which continues from the checkpoint.
        tables: The graphs, on the device to train on.
        curves: The names of the curves that are recorded at each epoch. Default: None, all.
    """
    config = recorder.config
    saved = store.load_checkpoint(config)
    if saved is None:
        return 0, None
    arrays, facts = saved
    objective = tables.goal[0]
    layout = layout_of(config, tables.features.width, objective.width)
    if facts["layout"] != layout.name:
        return 0, None  # written by a version with other parameters
    try:
        sizes = (layout.parameters, layout.statistics, len(recorder.split.test), objective.width)
        check_checkpoint(config, arrays, facts, sizes, curves)
    except UserError as error:
        warnings.warn(f"the checkpoint cannot be used: {error} Run {config.key} starts over.", stacklevel=2)
        return 0, None
    recorder.restore(arrays, facts["chosen_epoch"])
    return facts["epoch"], ModelState(
        *(arrays[name].unsqueeze(0).to(tables.device) for name in ModelState.__annotations__)
    )


def join_states(states: Sequence[ModelState | None]) -> ModelState | None:
    """Join the states of single models into one; None if training has not begun."""
    known = [state for state in states if state is not None]
    if not known:
        return None
    return ModelState(*(torch.cat(tensors) for tensors in zip(*(vars(state).values() for state in known), strict=True)))
