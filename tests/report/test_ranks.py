"""What is compared and ranked with what, where presets give poolings options or dropout of their own."""

from sopool.models.config import ModelConfig
from sopool.report.summary import summarise
from tests.report.stores import fill

FEW = {"looks": ("test",), "hidden": (8,)}
DIVIDED = ModelConfig(pool="sopool-bimap", pool_options={"normalize": "size"}, dropout_on="embedding", hidden=8)


def test_a_division_by_the_size_does_not_part_a_pooling_in_the_ranks(tmp_path):
    """The presets divide where nodes carry nothing, as Sum/Avg does there: it is the same preset on all data sets."""
    fill(tmp_path, ("TOY",), (("sum", 0.6), ("sopool-bimap", 0.8)), **FEW)
    bare = FEW | {"encoder": "DegreeEncoder()"}
    fill(tmp_path, ("BARE",), (("mean", 0.6),), **bare)
    store = fill(tmp_path, ("BARE",), (("sopool-bimap", 0.8),), **bare, model=DIVIDED)
    assert [set(one.across.ranks) for one in summarise(store).ranks] == [{"sum-avg", "sopool-bimap"}] * 2


def test_a_division_that_was_asked_for_everywhere_is_told(tmp_path):
    for name, encoder, rule in (("TOY", "NodeLabelEncoder()", "sum"), ("BARE", "DegreeEncoder()", "mean")):
        fill(tmp_path, (name,), ((rule, 0.6),), **FEW, encoder=encoder)
        store = fill(tmp_path, (name,), (("sopool-bimap", 0.8),), **FEW, encoder=encoder, model=DIVIDED)
    assert {name for one in summarise(store).ranks for name in one.across.ranks} == {
        "sum-avg",
        "sopool-bimap, normalize size",
    }


def test_of_two_sums_the_one_with_dropout_in_the_same_place_is_the_reference(tmp_path):
    for place in ("logits", "embedding"):
        for pool in ("sum", "sopool-bimap"):
            model = ModelConfig(pool=pool, dropout_on=place, hidden=8)
            store = fill(tmp_path, pools=((pool, 0.6),), **FEW, model=model)
    found = [(gain.entry.shared.model, gain.reference.shared.model) for gain in summarise(store).gains]
    assert len(found) == 2 * 2
    assert all((ours.pool, theirs.pool) == ("sopool-bimap", "sum") for ours, theirs in found)
    assert all(ours.dropout_on == theirs.dropout_on for ours, theirs in found)
