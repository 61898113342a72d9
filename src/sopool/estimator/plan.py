"""From checked settings to the models that are trained."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sopool.data.base_encoder import Encoder
from sopool.data.file import content_key
from sopool.data.store import PackedGraphs
from sopool.estimator.settings import class_weights, share_held_out, steps_for
from sopool.experiments.presets import model_config, share_options
from sopool.models.config import ModelConfig
from sopool.training.config import RunConfig


def shape_of(store: PackedGraphs, given: SimpleNamespace) -> ModelConfig:
    """What the models look like."""
    options = share_options([given.pool], given.blocks, given.pool_options or {})[given.pool]
    made = model_config(store, given.gnn, given.pool, blocks=given.blocks, options=options)
    if given.weight_decay and "lr_scale" not in options:  # on a slow mapping it would weigh a hundred times as much
        made.pool_options.pop("lr_scale", None)
    return replace(made, hidden=given.hidden, layers=given.layers)


def runs_of(
    store: PackedGraphs, given: SimpleNamespace, model: ModelConfig, encoder: Encoder, classes: np.ndarray
) -> list[RunConfig]:
    """One for each model."""
    assert store.labels is not None
    codes = store.labels.numpy()
    run = RunConfig(
        data=store.name,
        fingerprint=content_key(store),
        encoder=repr(encoder),
        model=model,
        fold=0,
        seed=_seed(given.random_state),
        looks="validation",
        holdout=share_held_out(given.validation_fraction, codes),
        epochs=given.epochs,
        steps=given.steps or steps_for(len(store), given.batch_size),
        batch_size=given.batch_size,
        lr=given.lr,
        dropout=given.dropout,
        weight_decay=given.weight_decay,
        average=given.average,
        patience=given.patience,
        class_weights=class_weights(given.class_weight, classes, classes[codes]),
    )
    return [replace(run, repeat=number) for number in range(given.n_models)]


def _seed(random_state: Any) -> int:
    """Draw the seed of a fit; without a random state a new one, and never from NumPy's global generator."""
    own = np.random.RandomState() if random_state is None else check_random_state(random_state)
    return int(own.randint(2**31 - 1))
