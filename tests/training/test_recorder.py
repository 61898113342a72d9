"""Which epoch is chosen."""

import numpy as np
import pytest
import torch

from sopool.training.recorder import Recorder
from sopool.training.splits import Split
from tests.helpers.training_graphs import run_config

LABELS = np.array([0, 1] * 5)
SPLIT = Split(np.arange(4), np.arange(4, 8), np.arange(8, 10))


@pytest.mark.parametrize(("patience", "chosen"), [(None, 7), (4, 7), (3, 3), (1, 1)])
def test_after_so_many_epochs_without_a_better_one_none_is_chosen(patience, chosen):
    right = [1, 2, 2, 3, 1, 2, 3, 4]  # of 4 validation graphs
    recorder = Recorder(run_config(looks="validation", epochs=8, patience=patience), SPLIT, LABELS, 2)
    for epoch, count in enumerate(right):
        logits = np.zeros((8, 2), np.float32)
        truth = np.where(np.arange(8) < 4 + count, LABELS[:8], 1 - LABELS[:8])
        logits[np.arange(8), truth] = 1
        recorder.record(epoch, logits)
        if recorder.is_best(epoch):
            recorder.keep(epoch, torch.zeros(1), torch.zeros(1))
    assert recorder.chosen_epoch == chosen
