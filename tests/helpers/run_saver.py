"""Runs to save, and processes that save them and are killed."""

import os
import signal
import sys
import time
import warnings
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np
import torch

from sopool.errors import DataError
from sopool.models.config import ModelConfig
from sopool.training.runs.config import RunConfig
from sopool.training.runs.record import Run
from sopool.training.runs.schema import curve_arrays
from sopool.training.runs.store import RunStore

FILES = ["config.json", "curves.safetensors", "environment.json", "predictions.safetensors"]
"""Of a finished run."""


def a_config(seed=0, **changed):
    plain = {"looks": "validation", "model": ModelConfig(), "fold": 1, "seed": seed}
    return RunConfig(data="MUTAG", fingerprint="f", encoder="labels", **plain | changed)


def a_run(mark=0, config=None, stopped=None):
    """A run whose every number follows from ``mark``, so that one put together from two is noticed."""
    config = config or a_config()
    curve = np.full(config.epochs, mark / 1000)
    curve[config.epochs if stopped is None else stopped :] = np.nan
    predictions = {
        "validation_graphs": np.arange(9) + mark,
        "validation_logits": np.full((9, 2), mark, dtype=np.float32),
    }
    curves = dict.fromkeys(curve_arrays(config), curve)
    return Run(config, curves, predictions, chosen_epoch=mark, stopped=stopped, environment={"mark": mark})


def is_of_one_piece(run):
    like = a_run(run.environment["mark"], run.config)
    pairs = [(run.curves, like.curves), (run.predictions, like.predictions)]
    same = [np.array_equal(found[name], expected[name]) for found, expected in pairs for name in found]
    return all(same) and run.chosen_epoch == like.chosen_epoch


def interrupt(store, config, epoch=20):
    store.save_checkpoint(config, {"weight": torch.arange(3.0)}, checkpoint_facts(epoch))


def checkpoint_facts(epoch):
    return {"epoch": epoch, "chosen_epoch": 0, "layout": "made up"}


def names(store, config):
    return sorted(path.name for path in (store.folder / config.key).iterdir())


def kinds(store):
    return {info.key: info.kind for info in store.list()}


def train(store, config, mark):
    """What a session does: claim, some checkpoints, save."""
    with store.claim(config) as mine:
        assert mine, "the claim of a dead process must be free"
        for epoch in (1, 2):
            store.save_checkpoint(config, {"weight": np.full(5, epoch)}, checkpoint_facts(epoch))
        store.save(a_run(mark, config))


def killed_at(step, store, config):
    """Train in a child that kills itself, as ``kill -9`` does, at its n-th step to the disk; whether it was killed."""
    if child := os.fork():
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    steps = count()

    def counted(function):
        def call(*arguments, **options):
            if next(steps) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for place, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (Path, "write_bytes"), (Path, "mkdir")):
        setattr(place, name, counted(getattr(place, name)))
    train(store, config, mark=3)
    os._exit(0)


def kill_at_every_step(folder):
    store = RunStore(folder)
    for step in count():
        config = a_config(step)
        if not killed_at(step, store, config):
            break
        run = store.load(config)
        checkpoint = store.load_checkpoint(config)
        assert run is None or is_of_one_piece(run)
        if checkpoint is not None:
            assert (checkpoint[0]["weight"] == checkpoint[1]["epoch"]).all()
        if step % 4 == 1:
            train(store, config, mark=5)
            assert store.load(config).chosen_epoch == 5
    assert step > 30


def kill_from_outside(folder):
    """A child that trains one run after the other, once it has done a few."""
    if not (child := os.fork()):
        for seed in count():
            train(RunStore(folder), a_config(seed), mark=seed)
    while len(list(Path(folder).glob("*/curves.safetensors"))) < 3:
        time.sleep(0.003)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def save_at_once(folder):
    """Two children."""
    children = []
    for mark in (1, 2):
        if not (child := os.fork()):
            save_often(folder, mark)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]


def save_often(folder, mark):
    """The same run again and again, beside others that are removed, while another process does so, too."""
    store = RunStore(folder)
    for seed in range(1, 9):
        store.save(a_run(mark))
        loaded = store.load(a_config())
        assert loaded is not None
        assert is_of_one_piece(loaded)
        store.save(a_run(mark, a_config(seed)))
        assert a_config().key in [info.key for info in store.list() if info.kind == "finished"]
        with suppress(DataError):  # the other may have removed it, or be writing it
            store.remove([a_config(seed - seed % 3).key] if seed > 3 else [])
        store.clean()


if __name__ == "__main__":
    warnings.simplefilter("error")
    for act in (kill_at_every_step, kill_from_outside, save_at_once):
        act(Path(sys.argv[1]) / act.__name__)
