"""Train the runs that are missing in the store in rounds, independent of where they are trained."""

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
    """Train all missing runs; return False if ``stop`` ended the training early.

    ``train`` returns the runs that other processes train. These are checked again, and trained if they were given up
    there.
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
