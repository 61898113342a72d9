"""Run as a program: ``python -m tests.helpers.little_evaluation FOLDER WORKERS`` evaluates and prints JSON.

Checkpoints are written after every epoch, so that a kill at any moment has something to go on from.
"""

import json
import sys

from sopool.data.sources.catalogue import load
from sopool.experiments.evaluation import Evaluator, Request
from sopool.models.config import Setting
from sopool.training import trainer
from sopool.training.runs.store import RunStore

REQUEST = Request(
    ["sopool-bimap", "sum-avg"],
    ["fair", "per-fold-max", "single-epoch"],
    settings=[Setting(hidden=4), Setting(hidden=8)],
    epochs=6,
    folds=2,
    steps=3,
)


def results(folder, workers, **how):
    """What the protocols say, without times."""
    evaluations = Evaluator(load("MUTAG"), REQUEST, RunStore(folder)).evaluate(workers=workers, **how)
    return [one.to_json()["protocols"] for one in evaluations]


if __name__ == "__main__":
    trainer.CHECKPOINT_SECONDS = -1.0
    print(json.dumps(results(sys.argv[1], int(sys.argv[2]))))
