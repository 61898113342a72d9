"""Training with a store: curves, checkpoints, runs that fail."""

import numpy as np
import pytest
import torch

from sopool.errors import ResourceError
from sopool.training import checkpoints
from sopool.training import trainer as trainer_module
from sopool.training.bank.bank import Layout
from sopool.training.runs.store import RunStore
from sopool.training.trainer import Trainer
from tests.helpers.training_graphs import little_store, run_config, tables_of


@pytest.fixture(scope="module")
def tables():
    return tables_of(little_store(graphs=30), unknown=True)


def folds(**changes):
    return [run_config(fold=fold, **changes) for fold in range(3)]


def results(store, configs):
    return [store.load(config) for config in configs]


def assert_same(ours, theirs):
    """Up to rounding: in other company, in another bank, a matrix product may be made otherwise."""
    for one, other in zip(ours, theirs, strict=True):
        assert (one.config, one.chosen_epoch, one.stopped) == (other.config, other.chosen_epoch, other.stopped)
        for mine, its in ((one.curves, other.curves), (one.predictions, other.predictions)):
            assert mine.keys() == its.keys()
            for name in mine.keys() - {"seconds"}:
                np.testing.assert_allclose(mine[name], its[name], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("looks", ["test", "validation", "chosen"])
@pytest.mark.parametrize("average", [0.0, 0.9])
def test_what_is_recorded(tables, tmp_path, looks, average):
    store = RunStore(tmp_path)
    configs = folds(looks=looks, average=average)
    Trainer(tables, store).train(configs)
    split = "test" if looks == "test" else "validation"
    for run in results(store, configs):
        names = {"step_loss", "learning_rate", "seconds"}
        names |= {f"{part}_{what}" for part in ("train", split) for what in ("accuracy", "loss")}
        assert run.curves.keys() == names
        assert all(curve.shape == (4,) and np.isfinite(curve).all() for curve in run.curves.values())
        np.testing.assert_allclose(run.curves["learning_rate"], [0.01, 0.01, 0.005, 0.005])
        labels = tables.truth.numpy()[run.predictions[f"{split}_graphs"]]
        epochs = [0, 1, 2, 3] if looks == "test" else [run.chosen_epoch]
        scores = run.predictions[f"{split}_logits"].reshape(len(epochs), len(labels), 2)
        accuracies = (scores.argmax(2) == labels).mean(1)
        np.testing.assert_allclose(run.curves[f"{split}_accuracy"][epochs], accuracies)


def test_a_run_that_may_not_look_at_the_test_fold_does_not(tables, tmp_path):
    store = RunStore(tmp_path)
    configs = folds(looks="validation")
    Trainer(tables, store).train(configs)
    for run in results(store, configs):
        assert not [name for name in {**run.curves, **run.predictions} if "test" in name]


def test_the_chosen_epoch_is_the_best_on_validation(tables, tmp_path):
    store = RunStore(tmp_path)
    configs = folds(looks="chosen", epochs=12)
    Trainer(tables, store).train(configs)
    for run in results(store, configs):
        ranks = list(zip(-run.curves["validation_accuracy"], run.curves["validation_loss"], strict=True))
        assert run.chosen_epoch == min(range(12), key=ranks.__getitem__)
        assert len(run.predictions["test_logits"]) == len(run.predictions["test_graphs"])


@pytest.mark.parametrize("looks", ["test", "chosen"])
@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize("average", [0.0, 0.9])
def test_an_interrupted_run_ends_with_the_same_numbers(tables, tmp_path, looks, after, average):
    whole = RunStore(tmp_path / "whole")
    broken = RunStore(tmp_path / "broken")
    configs = folds(looks=looks, average=average)
    Trainer(tables, whole).train(configs)
    seen = []
    Trainer(tables, broken, seen.append, lambda: sum(one.epochs for one in seen) >= after).train(configs)
    assert all(run is None for run in results(broken, configs))
    # other company than before: one alone, then the rest
    Trainer(tables, broken).train(configs[1:2])
    Trainer(tables, broken).train(configs)
    assert_same(results(whole, configs), results(broken, configs))


def out_of_memory(plainly):
    try:
        raise torch.OutOfMemoryError("No room for 9 GiB. More words.")
    except torch.OutOfMemoryError as error:
        if plainly:
            raise
        raise RuntimeError("an operation failed in a capture") from error


@pytest.fixture
def small_device(monkeypatch):
    """Has room for a few models only, and finds that out at some epoch."""

    def shrink(most, epoch=0, plainly=True):
        true = trainer_module.Bank.run_epoch

        def run_epoch(bank):
            if len(bank.configs) > most and bank.epoch == epoch:
                out_of_memory(plainly)
            return true(bank)

        monkeypatch.setattr(trainer_module.Bank, "run_epoch", run_epoch)

    return shrink


@pytest.mark.parametrize(
    ("most", "epoch", "pause", "plainly"),
    [
        (2, 0, 0.0, True),
        (1, 3, 1e9, False),
        *(pytest.param(1, *rest, marks=pytest.mark.slow) for rest in ((0, 1e9, False), (3, 0.0, True), (3, 1e9, True))),
    ],
)
def test_what_has_no_room_side_by_side_is_trained_in_parts(tables, tmp_path, small_device, most, epoch, pause, plainly):
    whole = RunStore(tmp_path / "whole")
    parts = RunStore(tmp_path / "parts")
    configs = folds(looks="chosen")
    Trainer(tables, whole).train(configs)
    small_device(most, epoch, plainly)
    seen = []
    assert Trainer(tables, parts, seen.append, pause=lambda: pause).train(configs) == []
    assert_same(results(whole, configs), results(parts, configs))
    assert sum(one.models * one.epochs for one in seen) == 3 * 4
    assert sum(one.finished for one in seen) == 3


def test_a_model_that_has_no_room_by_itself_is_an_error(tables, tmp_path, small_device):
    small_device(0)
    with pytest.raises(ResourceError, match=r"memory on cpu for a single model \(.*hidden .*\): No room for 9 GiB\."):
        Trainer(tables, RunStore(tmp_path)).train(folds())


def test_other_errors_are_not_taken_for_want_of_memory(tables, tmp_path, monkeypatch):
    def run_epoch(bank):
        raise RuntimeError("broken")

    monkeypatch.setattr(trainer_module.Bank, "run_epoch", run_epoch)
    with pytest.raises(RuntimeError, match="broken"):
        Trainer(tables, RunStore(tmp_path)).train(folds())


def test_a_checkpoint_of_other_models_is_not_taken(tables, tmp_path, monkeypatch):
    """Such as one of a version that stored a weight the other way round."""
    whole = RunStore(tmp_path / "whole")
    store = RunStore(tmp_path / "store")
    config = run_config()
    Trainer(tables, whole).train([config])
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "layout_of", lambda *_: Layout("another", 0, 0))
        Trainer(tables, store, stop=lambda: True).train([config])
    assert store.load_checkpoint(config) is not None
    Trainer(tables, store).train([config])
    assert_same(results(whole, [config]), results(store, [config]))


@pytest.mark.parametrize(
    ("forged_arrays", "forged_facts"),
    [
        ({}, {"epoch": 5}),
        ({}, {"epoch": -1}),
        ({}, {"epoch": "2"}),
        ({}, {"chosen_epoch": 3}),
        ({}, {"chosen_epoch": -1}),
        ({"curve_seconds": torch.zeros(1, dtype=torch.float64)}, {}),
        ({"curve_seconds": torch.zeros(4, dtype=torch.int64)}, {}),
        ({"best_values": torch.zeros(3)}, {}),
    ],
)
def test_a_forged_checkpoint_is_not_taken(tables, tmp_path, forged_arrays, forged_facts):
    whole = RunStore(tmp_path / "whole")
    store = RunStore(tmp_path / "store")
    config = run_config(looks="chosen")
    Trainer(tables, whole).train([config])
    seen = []
    Trainer(tables, store, seen.append, lambda: len(seen) >= 2).train([config])
    arrays, facts = store.load_checkpoint(config)
    assert facts["epoch"] == 2
    store.save_checkpoint(config, arrays | forged_arrays, facts | forged_facts)
    with pytest.warns(UserWarning, match="checkpoint.*[Ii]t starts over|checkpoint.*Run .* starts over"):
        Trainer(tables, store).train([config])
    assert_same(results(whole, [config]), results(store, [config]))


def test_checkpoints_at_every_epoch_change_nothing(tables, tmp_path, monkeypatch):
    plain = RunStore(tmp_path / "plain")
    often = RunStore(tmp_path / "often")
    Trainer(tables, plain).train(folds())
    monkeypatch.setattr(trainer_module, "CHECKPOINT_SECONDS", -1.0)
    Trainer(tables, often).train(folds())
    assert_same(results(plain, folds()), results(often, folds()))


def test_runs_at_different_epochs_are_trained_apart(tables, tmp_path):
    """As after a kill in the midst of writing the checkpoints of a bank."""
    whole = RunStore(tmp_path / "whole")
    store = RunStore(tmp_path / "store")
    configs = folds()
    Trainer(tables, whole).train(configs)
    for config, epochs in zip(configs, (1, 2, 3), strict=True):
        seen = []
        Trainer(tables, store, seen.append, lambda seen=seen, epochs=epochs: len(seen) >= epochs).train([config])
    Trainer(tables, store).train(configs)
    assert_same(results(whole, configs), results(store, configs))


@pytest.mark.parametrize("looks", ["test", "chosen"])
def test_a_loss_that_is_not_finite_stops_its_run_only(tables, tmp_path, looks):
    store = RunStore(tmp_path / "store")
    alone = RunStore(tmp_path / "alone")
    reports = []
    good = folds(looks=looks)
    bad = run_config(fold=1, seed=5, lr=1e300, looks=looks)
    Trainer(tables, store, reports.append).train([good[0], bad, *good[1:]])
    Trainer(tables, alone).train(good)
    assert_same(results(alone, good), results(store, good))
    failed = store.load(bad)
    assert failed.stopped == 0
    assert np.isnan(failed.curves["step_loss"]).all()
    notes = [note for one in reports for note in one.stopped]
    assert len(notes) == 1
    assert "fold 2" in notes[0]
    assert sum(one.models * one.epochs for one in reports) == 4 * 4
    assert sum(one.finished for one in reports) == 4


def test_a_run_that_another_process_is_at_is_left_alone(tables, tmp_path):
    store = RunStore(tmp_path)
    configs = folds()
    with RunStore(tmp_path).claim(configs[0]) as mine:
        assert mine
        Trainer(tables, store).train(configs)
    assert [run is None for run in results(store, configs)] == [True, False, False]


def test_a_finished_run_is_not_run_again(tables, tmp_path, monkeypatch):
    store = RunStore(tmp_path)
    configs = folds()
    Trainer(tables, store).train(configs)
    monkeypatch.setattr(trainer_module.Bank, "run_epoch", lambda self: pytest.fail("trained again"))
    Trainer(tables, store).train(configs)


def test_predictions_are_float32_whatever_the_precision(tables, tmp_path):
    store = RunStore(tmp_path)
    config = run_config(precision="float64", looks="chosen")
    Trainer(tables, store).train([config])
    assert store.load(config).predictions["test_logits"].dtype == np.float32
    assert torch.get_default_dtype() == torch.float32
