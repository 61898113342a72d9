"""What a user of Python gets from an evaluation: results with their comparisons."""

from dataclasses import replace

import pytest

from sopool.data import load
from sopool.errors import SettingError
from sopool.experiments import Evaluator, Request, corrected_paired_test
from sopool.experiments.results import default_reference
from sopool.models.config import Setting
from sopool.training.runs.store import RunStore

POOLS = ("sopool-attn", "sum", "mean")
PROTOCOLS = ("per-fold-max", "single-epoch")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    settings = [Setting(hidden=4), Setting(hidden=8)]
    request = Request(POOLS, PROTOCOLS, settings=settings, epochs=2, folds=3, steps=2)
    return Evaluator(load("MUTAG"), request, RunStore(tmp_path_factory.mktemp("runs"))).evaluate(workers=1)


def test_each_pooling_has_a_result_under_each_protocol(found):
    assert [one.pool for one in found] == list(POOLS)
    rows = found.results()
    assert [(row.pool, row.outcome.protocol) for row in rows] == [(pool, name) for pool in POOLS for name in PROTOCOLS]
    assert rows[0].place == ("MUTAG", "gin-0", "per-fold-max")
    assert rows[0].seconds == pytest.approx(found[0].seconds)
    assert found.to_json() == [one.to_json() for one in found]


def test_the_paired_test_comes_with_them(found):
    compared = found.compare()
    assert {one.reference.pool for one in compared} == {"sum"}
    assert [(one.result.pool, one.result.outcome.protocol) for one in compared] == [
        (pool, name) for pool in ("sopool-attn", "mean") for name in PROTOCOLS
    ]
    first = compared[0]
    folds = [one.outcomes["per-fold-max"].folds for one in found[:2]]
    assert first.comparison == corrected_paired_test(*folds, 3)
    assert first.to_json()["p"] == first.comparison.p
    assert {one.reference.pool for one in found.compare("mean")} == {"mean"}
    with pytest.raises(SettingError, match="reference 'max' is not among the evaluated poolings: sopool-attn, sum"):
        found.compare("max")


def test_a_protocol_without_a_reference_is_left_out(found):
    lacking = [one if one.pool != "sum" else _without(one, "single-epoch") for one in found]
    compared = type(found)(lacking).compare()
    assert {one.result.outcome.protocol for one in compared} == {"per-fold-max"}


def _without(evaluation, protocol):
    return replace(evaluation, outcomes={name: one for name, one in evaluation.outcomes.items() if name != protocol})


def test_the_runs_behind_a_figure_are_those_of_the_best_setting(found):
    runs = found.reported_runs("single-epoch")
    assert list(runs) == list(POOLS)
    for one in found:
        assert len(runs[one.pool]) == 3
        assert {run.config.setting for run in runs[one.pool]} == {one.outcomes["single-epoch"].setting}


@pytest.mark.parametrize(
    ("pools", "reference"),
    [(["sopool", "mean", "sum"], "mean"), (["covpool", "sopool"], "covpool"), (["x", "sum-avg"], "sum-avg")],
)
def test_the_reference_is_the_first_first_order_pooling(pools, reference):
    assert default_reference(pools) == reference
