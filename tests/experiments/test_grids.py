"""Which runs of a store belong together."""

from dataclasses import replace
from datetime import datetime
from itertools import chain

import pytest

from sopool.experiments.grids import by_length
from sopool.experiments.stored import find_experiments, over_seeds
from sopool.experiments.summary import summarise
from sopool.models.config import ModelConfig, Setting
from sopool.training.protocols.outcome import describe_settings
from sopool.training.runs.info import RunInfo
from tests.helpers.runs import CONFIG
from tests.helpers.stores import configs, facts, fill

EVERY = ("test", "validation", "chosen")
FIRST, SECOND = "sopool-bimap", "covpool"
"""Stand for what is a preset's own; the sum is the same in both."""


def found(some):
    return find_experiments(RunInfo(config.key, config, "finished", None, 0, datetime.min) for config in some)


def evaluation(own, hidden, looks=EVERY, **changes):
    """Runs of the sum and of another pooling, as ``sopool evaluate`` makes them."""
    looks = [one for one in looks if one != "validation" or len(hidden) > 1]
    models = [ModelConfig(pool=pool) for pool in ("sum", own) if pool]
    every = [run for model in models for run in configs(facts(), model, looks, hidden, 4, 6)]
    return [replace(run, **changes) for run in every]


def lines(runs):
    """What the runs of each experiment look at, by pooling and widths."""
    return {(one.shared.model.pool, widths(one)): tuple(one.configs) for one in found(runs)}


def widths(one):
    return one.settings and tuple(sorted(setting.hidden for setting in one.settings))


@pytest.mark.parametrize("looks", [("test",), ("validation", "chosen"), EVERY])
@pytest.mark.parametrize(("first", "second"), [((8,), (16,)), ((8, 16), (32,)), ((8,), (16, 32)), ((8, 16), (32, 64))])
@pytest.mark.parametrize("before", [False, True])
def test_two_presets_are_apart_each_under_all_its_protocols(looks, first, second, before):
    evaluations = [evaluation(FIRST, first), evaluation(SECOND, second, looks)]
    made = lines(chain(*(evaluations[::-1] if before else evaluations)))

    def of(hidden, looks):
        return tuple(one for one in looks if one != "validation" or len(hidden) > 1)

    assert made == {(pool, first): of(first, EVERY) for pool in ("sum", FIRST)} | {
        (pool, second): of(second, looks) for pool in ("sum", SECOND)
    }


def test_a_report_compares_each_preset_with_its_own_sum(tmp_path):
    fill(tmp_path, pools=[("sum", 0.7), (FIRST, 0.7)], looks=("test", "chosen"), hidden=(8,))
    store = fill(tmp_path, pools=[("sum", 0.7), (SECOND, 0.7)], looks=("chosen",), hidden=(16,))
    summary = summarise(store)
    assert {(entry.pool, widths(entry)): len(entry.outcomes) for entry in summary.entries} == {
        ("sum", (8,)): 3,
        (FIRST, (8,)): 3,
        ("sum", (16,)): 1,
        (SECOND, (16,)): 1,
    }
    assert [(gain.entry.pool, widths(gain.reference)) for gain in summary.gains] == [(FIRST, (8,))] * 3 + [
        (SECOND, (16,))
    ]
    assert [entry.variant for entry in summary.entries if entry.pool == "sum"] == [
        f"hidden {width}, batch 32, lr 0.01, dropout 0.5" for width in (8, 16)
    ]


def test_a_setting_tried_later_takes_nothing_from_the_first():
    made = lines([*evaluation(FIRST, (8,)), *evaluation(FIRST, (16,), ("chosen",))])
    assert made == {(pool, (8,)): ("test", "chosen") for pool in ("sum", FIRST)} | {
        (pool, (16,)): ("chosen",) for pool in ("sum", FIRST)
    }


def test_seeds_stay_together():
    runs = [*evaluation(FIRST, (8,)), *evaluation(SECOND, (16,), ("chosen",)), *evaluation("", (8,), seed=1)]
    seeds = {widths(one[0]): [each.shared.seed for each in one] for one in over_seeds(found(runs)) if is_sum(one)}
    assert seeds == {(8,): [0, 1], (16,): [0]}


def is_sum(experiments):
    return experiments[0].shared.model.pool == "sum"


def test_a_grid_is_one():
    """Neither a smaller one of another pooling nor one setting of it, under another protocol, takes it apart."""
    runs = [*evaluation(FIRST, (8, 16, 32), ("test",)), *evaluation(SECOND, (8, 16), ("test",))]
    made = lines([*runs, *evaluation(FIRST, (8,), ("chosen",))])
    assert made == {
        ("sum", None): ("test", "chosen"),
        (FIRST, None): ("test", "chosen"),
        (SECOND, None): ("test",),
    }


def test_grids_that_overlap_are_one():
    made = lines([*evaluation(FIRST, (8, 16), ("test",)), *evaluation(SECOND, (16, 32), ("test",))])
    assert made == {(pool, None): ("test",) for pool in ("sum", FIRST, SECOND)}


def test_settings_that_were_never_chosen_from_are_judged_each_by_itself():
    runs = list(configs(facts(), ModelConfig(pool="sum"), ("test", "chosen"), (8, 16), 4, 6))
    assert lines(runs) == {("sum", (8,)): ("test", "chosen"), ("sum", (16,)): ("test", "chosen")}


def test_a_wider_grid_on_test_folds_is_apart():
    runs = [*evaluation("", (8, 16, 32), ("test",)), *evaluation("", (8,), ("chosen",))]
    made = lines([*runs, *evaluation("", (16,), ("chosen",))])
    assert made == {("sum", (8, 16, 32)): ("test",), ("sum", (8,)): ("chosen",), ("sum", (16,)): ("chosen",)}


def test_a_grid_in_words():
    grid = [Setting(hidden, batch) for hidden in (8, 16) for batch in (32, 128)]
    assert describe_settings(*grid) == "hidden 8 or 16, batch 32 or 128, lr 0.01, dropout 0.5"


def sortpool(fold, k, **changes):
    return replace(CONFIG, fold=fold, model=ModelConfig(pool="sortpool", pool_options={"k": k}), **changes)


def test_what_follows_from_the_fold_does_not_tell_apart():
    (one,) = found(sortpool(fold, 10 + fold, steps=5 + fold) for fold in range(3))
    assert one.shared.model.pool_options == {}
    (one,) = found(sortpool(fold, 10 + fold, steps=50) for fold in range(3))
    assert one.shared.steps == 50  # as those it is compared with have it
    asked_for = found(sortpool(fold, k) for fold in range(3) for k in (10, 20))
    assert [one.shared.model.pool_options for one in asked_for] == [{"k": 10}, {"k": 20}]
    lengths = found(replace(CONFIG, fold=fold, steps=steps) for fold in range(3) for steps in (25, 50))
    assert [one.shared.steps for one in lengths] == [25, 50]


def test_one_length_that_is_asked_for_leaves_the_others_together():
    own = [sortpool(fold, 10 + fold) for fold in range(3)]
    shorter = [replace(one, steps=7) for one in own]
    fixed = [sortpool(fold, 40) for fold in range(3)]
    assert sorted(by_length([*own, *shorter, *fixed]), key=str) == sorted([own, shorter, fixed], key=str)
    passes = [
        replace(CONFIG.with_setting(Setting(batch_size=size)), fold=fold, steps=-(-(100 + fold) // size))
        for fold in range(3)
        for size in (10, 50)
    ]
    asked = [replace(one, steps=50) for one in passes]
    assert by_length([*passes, *asked]) == [passes, asked]
