"""Finished runs, made up."""

from dataclasses import replace

import numpy as np

from sopool.models.config import ModelConfig, Setting
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.schema import curve_arrays
from sopool.training.runs.store import RunStore

CONFIG = RunConfig(data="TOY", fingerprint="0", encoder="labels", model=ModelConfig(), fold=0)


def config(fold=0, setting=None, **changes):
    return replace(CONFIG.with_setting(setting or Setting()), fold=fold, **changes)


def scores_for(right, labels, classes=2, seed=0):
    """Logits [n, classes] that are right for the first ``right`` graphs and wrong for the rest."""
    labels = np.asarray(labels)
    predicted = np.where(np.arange(len(labels)) < right, labels, (labels + 1) % classes)
    logits = np.random.default_rng(seed).uniform(-1, 1, (len(labels), classes))
    logits[np.arange(len(labels)), predicted] += 3
    return logits.astype(np.float32)


def curve(right, graphs, epochs):
    """Accuracies in float32, as a trainer may keep them, NaN after the last one given."""
    values = np.full(epochs, np.nan, np.float32)
    values[: len(right)] = np.asarray(right, np.float64) / graphs
    return values


def looking_run(config, right, labels, graphs=None):
    """A run that looks at the test fold: ``right`` graphs are right in each epoch; stopped after the last one given."""
    graphs = np.arange(len(labels)) if graphs is None else graphs
    mine = np.asarray(labels)[graphs]
    logits = np.full((config.epochs, len(graphs), 2), np.nan, np.float32)
    for epoch, count in enumerate(right):
        logits[epoch] = scores_for(count, mine)
    accuracy = curve(right, len(graphs), config.epochs)
    curves = dict.fromkeys(curve_arrays(config), 1 - accuracy)
    curves |= {"test_accuracy": accuracy, "train_accuracy": accuracy}
    stopped = len(right) if len(right) < config.epochs else None
    return Run(config, curves, {"test_graphs": graphs, "test_logits": logits}, stopped=stopped)


def validated_run(config, accuracy, loss, chosen, stopped=None):
    """A run that looks at validation graphs."""
    curves = {"validation_accuracy": np.asarray(accuracy), "validation_loss": np.asarray(loss)}
    return Run(config, curves, {}, chosen, stopped)


def final_run(config, right, labels, graphs, chosen):
    """A final run, tested once; ``chosen`` None: it was stopped in its first epoch."""
    if chosen is None:
        return Run(config, {}, {}, stopped=0)
    logits = scores_for(right, np.asarray(labels)[graphs], seed=config.repeat)
    return Run(config, {}, {"test_graphs": graphs, "test_logits": logits}, chosen)


def assert_trained_alike(ours, theirs):
    """Assert that the runs which both folders hold have the same losses, up to what a few steps make of rounding.

    In another bank a matrix product may be made otherwise, and in single precision the difference grows.
    """
    stores = RunStore(ours), RunStore(theirs)
    found = [{info.key: info.config for info in store.list() if info.is_complete} for store in stores]
    shared = found[0].keys() & found[1].keys()
    assert shared
    for key in shared:
        losses = [store.load(found[0][key]).curves["step_loss"] for store in stores]
        np.testing.assert_allclose(*losses, rtol=0, atol=0.02)
