"""What is compared and ranked with what, where presets give poolings options or dropout of their own."""

from dataclasses import replace

import pytest

from sopool.experiments.summary import summarise
from sopool.models.config import ModelConfig
from sopool.report.page.html import page
from tests.helpers.stores import fill

ENCODERS = {"sum": "NodeLabelEncoder()", "mean": "DegreeEncoder()"}
FEW = {"looks": ("test",), "hidden": (8,)}
DIVIDED = ModelConfig(pool="sopool-bimap", pool_options={"normalize": "size"}, dropout_on="embedding", hidden=8)


@pytest.mark.parametrize(
    ("labelled", "bare", "name"),
    [
        ({}, {"normalize": "size"}, "sopool-bimap"),
        (
            {"normalize": "matrix-sqrt", "rank": 16},
            {"normalize": "size+matrix-sqrt", "rank": 16},
            "sopool-bimap, normalize matrix-sqrt, rank 16",
        ),
    ],
)
def test_a_division_by_the_size_does_not_part_a_pooling_in_the_ranks(tmp_path, labelled, bare, name):
    """The presets divide where nodes carry nothing, as Sum/Avg does there: it is the same preset on all data sets."""
    for data, rule, options in (("TOY", "sum", labelled), ("BARE", "mean", bare)):
        few = FEW | {"encoder": ENCODERS[rule]}
        fill(tmp_path, (data,), ((rule, 0.6),), **few)
        model = replace(DIVIDED, pool_options=options)
        store = fill(tmp_path, (data,), (("sopool-bimap", 0.8),), **few, model=model)
    assert [set(one.across.ranks) for one in summarise(store).ranks] == [{"sum-avg", name}] * 2


def test_a_division_that_was_asked_for_everywhere_is_told(tmp_path):
    for name, rule in (("TOY", "sum"), ("BARE", "mean")):
        fill(tmp_path, (name,), ((rule, 0.6),), **FEW, encoder=ENCODERS[rule])
        store = fill(tmp_path, (name,), (("sopool-bimap", 0.8),), **FEW, encoder=ENCODERS[rule], model=DIVIDED)
    assert {name for one in summarise(store).ranks for name in one.across.ranks} == {
        "sum-avg",
        "sopool-bimap, normalize size",
    }


def test_rankings_of_one_network_are_told_apart(tmp_path):
    """By how their poolings were trained; where there is one ranking, nothing is to be told."""
    store = fill(tmp_path, ("A", "B"), looks=("test",), hidden=(8,))
    assert {one.variant for one in summarise(store).ranks} == {""}
    fill(tmp_path, ("A", "B"), looks=("test",), hidden=(8,), epochs=4)
    found = summarise(store)
    assert {one.variant for one in found.ranks} == {"epochs 4", "epochs 6"}
    assert "gin-0, epochs 4: A, B" in page(found)


def test_of_two_sums_the_one_with_dropout_in_the_same_place_is_the_reference(tmp_path):
    for place in ("logits", "embedding"):
        for pool in ("sum", "sopool-bimap"):
            model = ModelConfig(pool=pool, dropout_on=place, hidden=8)
            store = fill(tmp_path, pools=((pool, 0.6),), **FEW, model=model)
    found = [(gain.entry.shared.model, gain.reference.shared.model) for gain in summarise(store).gains]
    assert len(found) == 2 * 2
    assert all((ours.pool, theirs.pool) == ("sopool-bimap", "sum") for ours, theirs in found)
    assert all(ours.dropout_on == theirs.dropout_on for ours, theirs in found)
