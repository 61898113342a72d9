"""Which epoch is chosen, and what is written down of each."""

import numpy as np
import pytest
import torch

from sopool.objectives import SingleLabel
from sopool.training.recorder import Recorder, best_weights
from sopool.training.run_splits import Split
from tests.helpers.training_graphs import run_config

TWO_CLASSES = SingleLabel((0, 1))
LABELS = np.array([0, 1] * 5)
SPLIT = Split(np.arange(4), np.arange(4, 8), np.arange(8, 10))


@pytest.mark.parametrize(("patience", "chosen"), [(None, 7), (4, 7), (3, 3), (1, 1)])
def test_after_so_many_epochs_without_a_better_one_none_is_chosen(patience, chosen):
    right = [1, 2, 2, 3, 1, 2, 3, 4]  # of 4 validation graphs
    recorder = Recorder(run_config(looks="validation", epochs=8, patience=patience), SPLIT, TWO_CLASSES, LABELS)
    for epoch, count in enumerate(right):
        logits = np.zeros((8, 2), np.float32)
        truth = np.where(np.arange(8) < 4 + count, LABELS[:8], 1 - LABELS[:8])
        logits[np.arange(8), truth] = 1
        recorder.record(epoch, 1.0, logits, weights_of(epoch))
        assert recorder.is_over(epoch) == (patience is not None and epoch - recorder.chosen_epoch >= patience)
    assert recorder.chosen_epoch == chosen
    assert recorder.best == {"best_values": torch.tensor([chosen]), "best_statistics": torch.tensor([-chosen])}
    assert np.isfinite(recorder.curves["validation_loss"]).all()


def weights_of(epoch):
    return torch.tensor([epoch]), torch.tensor([-epoch])


def test_the_weights_that_are_kept_are_a_copy():
    recorder = Recorder(run_config(looks="validation", epochs=1), SPLIT, TWO_CLASSES, LABELS)
    weights = weights_of(3)
    recorder.record(0, 1.0, np.zeros((8, 2), np.float32), weights)
    weights[0].zero_()
    assert best_weights([recorder], "cpu")[0].tolist() == [[3]]


def test_without_held_out_graphs_the_last_epoch_is_the_best_and_patience_is_never_over():
    nobody = SPLIT._replace(validation=SPLIT.validation[:0])
    recorder = Recorder(
        run_config(looks="validation", epochs=3, patience=1), nobody, TWO_CLASSES, LABELS, score_training=False
    )
    assert not len(recorder.graphs)
    for epoch in range(3):
        recorder.record(epoch, 0.5, np.zeros((0, 2)), weights_of(epoch))
        assert recorder.chosen_epoch == epoch
        assert not recorder.is_over(epoch)
    assert recorder.curves["step_loss"].tolist() == [0.5] * 3
    assert np.isnan(recorder.curves["validation_loss"]).all()


@pytest.mark.parametrize(("class_weights", "accuracy"), [(None, 0.75), ((1.0, 0.0), 0.5), ((1.0, 3.0), 0.875)])
def test_graphs_count_as_much_as_their_classes(class_weights, accuracy):
    config = run_config(looks="validation", epochs=1, class_weights=class_weights)
    recorder = Recorder(config, SPLIT, TWO_CLASSES, LABELS, score_training=False)
    assert recorder.graphs.tolist() == [4, 5, 6, 7]
    scores = np.array([[2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [0.0, 2.0]])  # the labels are 0, 1, 0, 1
    recorder.record(0, 1.0, scores, weights_of(0))
    assert recorder.curves["validation_accuracy"][0] == pytest.approx(accuracy)
    each = np.log(1 + np.exp(-2)) + np.array([0, 0, 2, 0])
    weights = None if class_weights is None else np.array(class_weights)[[0, 1, 0, 1]]
    assert recorder.curves["validation_loss"][0] == pytest.approx(np.average(each, weights=weights))


@pytest.mark.parametrize(("loss", "score"), [(np.nan, 0.0), (1.0, np.inf)])
def test_nothing_counts_of_an_epoch_that_is_not_finite(loss, score):
    recorder = Recorder(run_config(looks="validation", epochs=2), SPLIT, TWO_CLASSES, LABELS)
    recorder.record(0, 1.0, np.zeros((8, 2)), weights_of(0))
    recorder.record(1, loss, np.full((8, 2), score), weights_of(1))
    assert recorder.stopped == 1
    assert recorder.chosen_epoch == 0
    assert all(np.isnan(curve[1]) for curve in recorder.curves.values())
