"""Runs that are not in the store yet, trained in rounds, whoever trains them and wherever."""

import time
from collections.abc import Callable, Sequence

from sopool.training.runs.config import RunConfig
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Report, TrainingProgress


def in_rounds(
    runs: RunStore,
    configs: Sequence[RunConfig],
    train: Callable[[list[RunConfig]], list[RunConfig]],
    report: Report,
    stop: Callable[[], bool],
) -> bool:
    """Have all runs trained that are missing; False if ``stop`` said so before the end.

    ``train`` gives back those that other processes are at: they are looked for again, and trained if given up there.
    """
    left = list(configs)
    while True:
        pending = []
        for config in left:
            if runs.load(config) is None:
                pending.append(config)
            else:
                report(TrainingProgress(1, config.epochs, finished=1))
        if not pending:
            return True
        left = train(pending)
        if stop():
            return False
        if left:
            time.sleep(1)
