"""Which nodes count as labelled, and what encodes them: the same graphs with and without tags that say nothing."""

from dataclasses import replace

import pytest
import torch

from sopool.data import Graph, load, pack
from sopool.data.edges import out_degrees
from sopool.data.features.encoders import (
    DegreeEncoder,
    NodeLabelEncoder,
    default_encoder,
    has_node_attributes,
    has_node_labels,
    paper_encoder,
)
from sopool.data.formats.gin import read_gin
from sopool.data.synthetic import make_agreement
from sopool.errors import SettingError
from sopool.models.presets import SECOND_ORDER, model_config
from tests.data.test_encoders import attributed, labelled


def gin_text(store, tag):
    """The graphs in GIN's text format, with a ``tag`` made of each node's number of neighbours."""
    lines = [str(len(store))]
    for g in range(len(store)):
        one = store[g]
        targets = [one.edge_index[1][one.edge_index[0] == i].tolist() for i in range(one.num_nodes)]
        lines.append(f"{one.num_nodes} {int(one.labels[0])}")
        lines += [" ".join(map(str, [tag(len(some)), len(some), *some])) for some in targets]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def graphs():
    return load("MUTAG")[:20]


@pytest.fixture
def read(graphs, tmp_path):
    def tagged(tag, name="SOCIAL"):
        (tmp_path / f"{name}.txt").write_text(gin_text(graphs, tag))
        return read_gin(tmp_path / f"{name}.txt")

    return tagged


@pytest.mark.parametrize("tag", [lambda degree: 0, lambda degree: 7, lambda degree: degree])
def test_tags_that_say_nothing_are_no_labels(read, tag):
    """Models and features are those of the same graphs without any labels."""
    store = read(tag)
    bare = replace(store, node_labels=None, node_label_names=())
    assert not has_node_labels(store)
    for pool in ("sum-avg", *SECOND_ORDER):
        assert model_config(store, "gin-0", pool) == model_config(bare, "gin-0", pool)
    assert model_config(store, "gin-0", "sum-avg").pool == "mean"
    encoder = default_encoder(store)
    plain = default_encoder(bare)
    assert isinstance(encoder, DegreeEncoder)
    rows = torch.arange(store.num_nodes)
    got = encoder.fit(store).transform(store)
    want = plain.fit(bare).transform(bare)
    assert torch.equal(got.rows(rows), want.rows(rows))


@pytest.mark.parametrize("tag", [lambda degree: degree % 2, lambda degree: degree + 1])
def test_other_tags_are_labels(read, tag):
    store = read(tag)
    assert has_node_labels(store)
    assert isinstance(default_encoder(store), NodeLabelEncoder)
    assert model_config(store, "gin-0", "sum-avg").pool == "sum"


def test_the_paper_s_sets_are_known_by_name(read, graphs):
    assert not has_node_labels(read(lambda degree: degree % 2, "IMDB-BINARY"))
    alike = replace(graphs, node_labels=torch.zeros_like(graphs.node_labels))
    assert has_node_labels(alike)
    assert not has_node_labels(replace(alike, name="mine"))


def test_words_are_labels_though_they_spell_degrees(graphs):
    names = tuple(str(degree) for degree in range(9))
    store = replace(graphs, name="mine", node_labels=out_degrees(graphs).int(), node_label_names=names)
    assert has_node_labels(store)


def test_labels_may_be_numbers_of_any_size():
    store = pack([Graph(2, [(0, 1), (1, 0)], node_labels=[2**64 - 1, -(2**70)])])
    assert default_encoder(store).fit(store).values == [-(2**70), 2**64 - 1]


def test_attributes_need_a_column():
    store = make_agreement(4)
    bare = replace(store, name="mine", node_labels=None, node_label_names=(), node_attributes=None)
    assert not has_node_attributes(bare)
    for width in (0, 2):
        some = replace(bare, node_attributes=torch.ones(store.num_nodes, width))
        assert has_node_attributes(some) is (width > 0)
        assert model_config(some, "gin-0", "sum-avg").pool == ("sum" if width else "mean")


LABELS, SCALE = "NodeLabelEncoder(2 values, unknown=True)", "AttributeEncoder(1 columns, standardize=True)"
BOTH = f"ConcatEncoder([{LABELS}, {SCALE}])"
DEGREE = "DegreeEncoder(1 values, unknown=True)"
NAMED = {"PROTEINS": LABELS, "IMDB-MULTI": DEGREE, "REDDIT-MULTI-5K": "ConstantEncoder()", "ENZYMES": BOTH}
CHOICES = [(labelled("a", "b"), LABELS), (attributed([[1]]), SCALE), (pack([Graph(1)], name="MUTAG"), DEGREE)]
TOLD = attributed([[1], [2]], node_labels=["a", "b"])
CHOICES += [(replace(TOLD, name=name), choice) for name, choice in NAMED.items()]


@pytest.mark.parametrize(("store", "choice"), CHOICES)
def test_choices(store, choice):
    assert repr(default_encoder(store).fit(store)) == choice
    assert repr(default_encoder(store, unknown=False).fit(store)) == choice.replace("unknown=True", "unknown=False")
    with pytest.raises(
        SettingError, match=r"'ENZYMES' is not one of the paper's data sets, which are MUTAG, .*REDDIT-MULTI-5K"
    ):
        paper_encoder("ENZYMES")
