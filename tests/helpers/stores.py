"""Stores of made-up runs, as large as one likes and filled in no time."""

from dataclasses import replace

import numpy as np

from sopool.data.splits import stratified_folds
from sopool.models.config import ModelConfig, Setting
from sopool.models.presets import FIRST_ORDER
from sopool.training.runs.config import RunConfig
from sopool.training.runs.dataset_facts import DatasetFacts
from sopool.training.runs.record import Run
from sopool.training.runs.requests import RequestedPool, StoredRequest
from sopool.training.runs.store import RunStore

PROTOCOLS = ("per-fold-max", "single-epoch", "fair")
ODD = "a|b_c & <i>*"
"""A name with what Markdown, LaTeX and HTML must escape."""
ENVIRONMENT = {"device": "A <fast> CPU", "sopool": "1", "peak_memory": 3_000_000}

REQUEST = StoredRequest(
    dataset="TOY",
    fingerprint="0",
    pools=(RequestedPool("sum", ("0" * 16,), ("1" * 16,), ("2" * 16, "3" * 16)),),
    protocols=("fair",),
    gnn="gin-0",
    settings=(Setting(), Setting(hidden=8)),
    epochs=2,
    folds=2,
    seed=0,
    steps=None,
    preset="default",
    blocks=0,
    head=None,
    block_readout="max-mean",
    pool_options={"rank": 3, "moments": [1, 2]},
)


def facts(name="TOY", graphs=40, classes=("no", "yes")):
    labels = np.arange(graphs) % len(classes)
    return DatasetFacts(name, name.encode().hex()[:16].ljust(16, "0"), labels, classes)


def made_up(config, data, skill):
    """A run that is right on about ``skill`` of its graphs, later a bit more often."""
    rng = np.random.default_rng(int(config.key, 16))
    test = stratified_folds(data.labels, config.folds)[config.fold][1]
    epochs = config.epochs
    classes = len(data.classes)
    rates = skill + 0.1 * np.linspace(-1, 1, epochs)
    logits = np.stack([scores(rng, data.labels[test], rate, classes) for rate in rates])
    right = (logits.argmax(2) == data.labels[test]).mean(1)
    part = "test" if config.looks == "test" else "validation"
    curves = {f"{part}_accuracy": right, f"{part}_loss": 1 - right, "train_accuracy": rates, "train_loss": 1 - rates}
    curves |= {"step_loss": 1 - rates, "seconds": np.full(epochs, 0.25), "learning_rate": np.full(epochs, 0.01)}
    logits = logits.astype(np.float32)
    if part == "test":
        predictions = {"test_graphs": test, "test_logits": logits}
        return Run(config, curves, predictions, environment=ENVIRONMENT)
    chosen = int(rng.integers(epochs))
    predictions = {"validation_graphs": test, "validation_logits": logits[chosen]}
    if config.looks == "chosen":
        predictions |= {"test_graphs": test, "test_logits": logits[chosen]}
    return Run(config, curves, predictions, chosen, environment=ENVIRONMENT)


def scores(rng, labels, rate, classes):
    wrong = (labels + 1) % classes
    predicted = np.where(rng.random(len(labels)) < rate, labels, wrong)
    return np.eye(classes)[predicted] + 0.1 * rng.random((len(labels), classes))


def fill(
    folder,
    names=("TOY",),
    pools=(("sum", 0.7), ("sopool-bimap", 0.75)),
    looks=("test", "validation", "chosen"),
    hidden=(8, 16),
    folds=4,
    epochs=6,
    classes=("no", "yes"),
    keep=True,
    **changes,
):
    """Save an evaluation of each pooling on each data set."""
    store = RunStore(folder)
    for name in names:
        data = facts(name, classes=classes)
        if keep:
            store.save_dataset(data)
        for pool, skill in pools:
            model = ModelConfig(pool=pool, dropout_on="logits" if pool in FIRST_ORDER else "embedding")
            for config in configs(data, model, looks, hidden, folds, epochs):
                store.save(made_up(replace(config, **changes), data, skill))
    return store


def configs(data, model, looks, hidden, folds, epochs):
    base = RunConfig(data.name, data.fingerprint, "NodeLabelEncoder()", model, 0, folds=folds, epochs=epochs)
    for kind in looks:
        settings = [Setting(hidden=width) for width in hidden]
        for setting in settings:
            for fold in range(folds):
                for repeat in (1, 2, 3) if kind == "chosen" else (0,):
                    yield replace(base.with_setting(setting), fold=fold, looks=kind, repeat=repeat)
