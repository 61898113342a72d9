"""What was saved comes back on any machine; what was tampered with is refused, and nothing in it is run."""

import json
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load

from sopool import GraphClassifier
from sopool._files.sealed import read_header, seal
from sopool.data import (
    AttributeEncoder,
    ConcatEncoder,
    DataError,
    DegreeEncoder,
    LaplacianEncoder,
    NodeLabelEncoder,
    RandomWalkEncoder,
)
from sopool.data.features.numbers import Moments
from sopool.errors import SettingError
from sopool.estimator import load_model
from sopool.estimator.model_file import FOURTH
from sopool.nn import READOUTS
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import NUMBERS, tiny_regressor, with_targets


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.sopool"
    tiny(class_weight={"even": 1, "odd": np.float32(2)}).fit(STORE, LABELS).save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def reload(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.sopool"

    def from_bytes(content):
        path.write_bytes(content)
        return GraphClassifier.load(path, device="cpu")

    return from_bytes


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pool": "sum"},
        {"pool": "sopool-bimap", "pool_options": {"rank": 3, "moments": (1, 2), "triangle": True}},
        {"pool": "sopool-m-attn", "blocks": 2, "gnn": "gcn"},
        {"pool": "topkpool", "blocks": 2, "block_readout": "sopool-pairs"},
        {"pool": "sortpool", "gnn": "gin-eps"},
        {"gnn": "gine"},
        {"encoder": DegreeEncoder(), "random_state": np.random.RandomState(0)},
        {"encoder": AttributeEncoder(), "class_weight": "balanced", "patience": None},
        {"encoder": NodeLabelEncoder(), "validation_fraction": 0.0},
        {"encoder": ConcatEncoder([NodeLabelEncoder(), RandomWalkEncoder(4), LaplacianEncoder(2)])},
        {"average": 0.9, "pool_options": {"lr_scale": 0.1, "normalize": "size+matrix-sqrt"}},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_what_was_saved_comes_back(settings, tmp_path):
    model = tiny(**settings).fit(STORE, LABELS)
    model.save(tmp_path / "m.sopool")
    back = GraphClassifier.load(tmp_path / "m.sopool", device="cpu")
    for mine, other in zip(model.predict_with_uncertainty(STORE), back.predict_with_uncertainty(STORE), strict=True):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(model.transform(STORE), back.transform(STORE))
    for name, curve in model.history_.items():
        np.testing.assert_array_equal(curve, back.history_[name])
    for name in ("best_epochs_", "about_"):
        assert getattr(back, name) == getattr(model, name)
    assert back.encoder_.to_json() == model.encoder_.to_json()
    for name, value in model.get_params().items():
        if name == "encoder":
            assert type(back.encoder) is type(value)
        elif name == "pool_options" and value:
            assert {key: list(x) if isinstance(x, list | tuple) else x for key, x in value.items()} == back.pool_options
        elif name != "random_state" or isinstance(value, int):
            assert getattr(back, name) == value
    assert back.fit(STORE, LABELS).predict(STORE).shape == (40,)


@pytest.mark.parametrize(
    "y",
    [
        LABELS,
        np.arange(40) % 3,
        (np.arange(40) % 2).astype(np.uint8),
        np.arange(40) % 2 == 0,
        (np.arange(40) % 2).astype(np.float32),
        np.array(["ä ü", 'quote"', "\u4e2d"] * 13 + ["ä ü"]),
        [1, "one"] * 20,
    ],
    ids=["str", "int64", "uint8", "bool", "float32", "unicode", "mixed"],
)
def test_classes_keep_their_type(y, tmp_path):
    model = tiny(n_models=1, epochs=1).fit(STORE, y)
    model.save(tmp_path / "m.sopool")
    back = GraphClassifier.load(tmp_path / "m.sopool", device="cpu").classes_
    assert back.dtype == model.classes_.dtype
    assert back.tolist() == model.classes_.tolist()
    assert list(map(type, back.tolist())) == list(map(type, model.classes_.tolist()))


@given(data=st.data())
def test_any_changed_byte_is_noticed(data, content, reload):
    place = data.draw(st.integers(0, len(content) - 1) | st.integers(0, 4000))
    change = data.draw(st.integers(1, 255))
    changed = bytearray(content)
    changed[place] ^= change
    with pytest.raises(DataError):
        reload(bytes(changed))


@given(data=st.data())
def test_a_file_cut_short_or_with_more_at_its_end_is_noticed(data, content, reload):
    with pytest.raises(DataError):
        reload(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(DataError):
        reload(content + data.draw(st.binary(min_size=1, max_size=100)))


@given(st.binary(max_size=300))
def test_other_bytes_are_no_model(reload, other):
    with pytest.raises(DataError):
        reload(other)


def forge(content, change, tensors=lambda tensors: None):
    """The file with something else in it, and a right digest."""
    header = read_header(content)
    arrays = load(content)
    facts = json.loads(header["facts"])
    change(facts)
    tensors(arrays)
    return seal(arrays, {"format": header["format"], "facts": json.dumps(facts)})


def put(*path):
    """A change of one fact: all but the last are where it is."""

    def change(facts):
        *places, last, value = path
        for place in places:
            facts = facts[place]
        facts[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("config", "hidden", 10**12), "hidden is 1000000000000"),
        (put("config", "hidden", 0), "config.hidden is 0, expected a whole number from 1"),
        (put("config", "hidden", 65536), "expected float32"),
        (put("config", "layers", 250), "is missing"),
        (put("config", "layers", 10**9), "layers is"),
        (put("config", "layers", True), "layers is True"),
        (put("config", "gnn", "os.system"), "config.gnn is 'os.system', expected one of"),
        (put("config", "pool", "__import__"), "is not known"),
        (put("config", "pool", 3), "config.pool is 3, expected a string"),
        (put("config", "frozen", "yes"), "config.frozen is 'yes', expected true or false"),
        (put("config", "pool_options", {"rank": 10**9}), "rank is 1000000000"),
        (put("config", "pool_options", {"rank": [[1]]}), r"pool_options.rank\[0\] is \[1\], expected an option"),
        (put("config", "pool_options", {"weight": 1}), "unexpected keyword"),
        (put("config", "pool_options", []), "config.pool_options is .*, expected an object"),
        (put("config", "more", 1), "config has 'more', which this version does not know"),
        (put("encoder", "kind", "pickle"), "found 'pickle'"),
        (put("encoder", "parts", []), "expected parts"),
        (put("edges", ["single"]), "its edges have 1 labels, expected 0 as in its configuration"),
        (put("edges", {}), "edges: expected labels, categories"),
        (put("edges", 1), "a list of distinct"),
        (put("graph_attributes", {}), "graph attributes: expected names, mean and std"),
        (
            put("graph_attributes", {"names": ["a"], "mean": [0.0], "std": [1.0]}),
            "it has 1 graph attributes, expected 0 as in its configuration",
        ),
        (put("config", "edge_labels", 10**9), "edge_labels is 1000000000"),
        (put("classes", "values", ["even"]), "classes.values is .*, expected a list of 2 to"),
        (put("classes", "values", ["even", "even"]), "not distinct"),
        (put("classes", "values", ["even", 1]), "not distinct values of type str"),
        (put("classes", "values", ["a", "b", "c"]), "expected float32"),
        (put("classes", "values", ["a" * 10**6, *map(str, range(1000))]), "too long"),
        (put("classes", "dtype", "V1000000000"), "classes.dtype is"),
        (put("classes", "dtype", None), "classes.dtype is None"),
        (put("classes", None), "its classes, targets, units, loss and metric are not those of a classification"),
        (put("classes", {"dtype": "uint8", "values": [1, 300]}), "not values that uint8 can hold"),
        (put("classes", {"dtype": "float16", "values": [1.0, 1e9]}), "not values that float16 can hold"),
        (put("settings", "callback", "print"), "settings are not those"),
        (put("best_epochs", [1]), "2 models and 1 best epochs"),
        (put("best_epochs", [1, 3]), "expected numbers below 3"),
        (put("best_epochs", ["1", "2"]), r"best_epochs\[0\] is '1'"),
        (put("about", []), "about is .*, expected an object"),
        (put("about", "data", "nodes", "many"), "about.data.nodes is 'many'"),
        (put("settings", "dropout", "x"), "dropout='x'"),
        (put("settings", "random_state", -1), "settings.random_state is -1"),
        (put("settings", "class_weight", [[[], 1]]), "settings.class_weight"),
        (put("settings", "own_encoder", 1), "settings.own_encoder is 1"),
        (put("temperature", 0), "facts.temperature is 0, expected a finite number of at least 0.05 and at most 20"),
        (put("temperature", [1.0]), "temperature is"),
        (put("other", 1), "facts has 'other', which"),
    ],
)
def test_hostile_facts_are_refused(change, message, content, reload):
    with pytest.raises(DataError, match=message):
        reload(forge(content, change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("substitutes"), "'substitutes' is missing"),
        (lambda arrays: arrays.update(substitutes=arrays["substitutes"] + 100), "substitutes.* is 100, expected"),
        (lambda arrays: arrays.update(substitutes=arrays["substitutes"][:0]), "the array .* is"),
        (lambda arrays: arrays.update(substitutes=arrays["substitutes"][:1]), "the array substitutes is int64"),
        (lambda arrays: arrays.update(more=torch.zeros(1)), "'more' is not expected"),
        (lambda arrays: arrays.pop("model.heads.0.bias"), "'model.heads.0.bias' is missing"),
        (lambda arrays: arrays["model.heads.0.bias"].fill_(float("nan")), "is nan, expected a finite number"),
        (lambda arrays: arrays.update({"model.heads.0.bias": torch.zeros(2, 2).double()}), "float64"),
        (lambda arrays: arrays.update({"history.loss": torch.zeros(5, 2)}), "the array history.loss is float32"),
    ],
)
def test_hostile_arrays_are_refused(change, message, content, reload):
    with pytest.raises(DataError, match=message):
        reload(forge(content, lambda facts: None, change))


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "m.sopool"
    tiny_regressor(epochs=1).fit(with_targets(NUMBERS)).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("objective", "task", "classification"), "are not those of a classification"),
        (put("objective", "task", "multi-label"), "are not those of a multi-label"),
        (put("objective", "task", "clustering"), "objective.task is 'clustering', expected one of"),
        (put("objective", "metric", "accuracy"), "are not those of a regression"),
        (put("objective", "loss", None), "are not those of a regression"),
        (put("objective", "targets", ["size"]), "are not those of a regression"),
        (put("objective", "targets", ["size", "size"]), "'size' is the name of more than one target"),
        (put("objective", "targets", ["size", ""]), "expected strings that are not empty"),
        (put("objective", "targets", ["a", "b", "c"]), "are not those of a regression"),
        (put("objective", "units", [1.0, -1.0]), r"objective.units\[1\] is -1.0"),
        (put("objective", "flat", True), "objective.flat is true, expected false"),
        (put("objective", {}), "objective lacks task"),
        (put("classes", {"dtype": "str", "values": ["a", "b"]}), "are not those of a regression"),
        (put("settings", "loss", "hinge"), "settings"),
    ],
)
def test_hostile_facts_about_targets_are_refused(change, message, numbers, tmp_path):
    (tmp_path / "m.sopool").write_bytes(forge(numbers, change))
    if message == "settings":  # a loss is checked when it is used
        with pytest.raises(SettingError, match="there is no loss 'hinge'"):
            load_model(tmp_path / "m.sopool").fit(STORE, NUMBERS)
        return
    with pytest.raises(DataError, match=message):
        load_model(tmp_path / "m.sopool")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("objective.scale"), "'objective.scale' is missing"),
        (lambda arrays: arrays["objective.scale"].fill_(-1.0), "is -1.0, expected a number of at least 0"),
        (lambda arrays: arrays["objective.shift"].fill_(float("inf")), "is inf, expected a finite number"),
        (lambda arrays: arrays.update({"objective.shift": torch.zeros(2, 3).double()}), r"expected float64 \[2, 2\]"),
    ],
)
def test_hostile_units_are_refused(change, message, numbers, tmp_path):
    (tmp_path / "m.sopool").write_bytes(forge(numbers, lambda facts: None, change))
    with pytest.raises(DataError, match=message):
        load_model(tmp_path / "m.sopool")


def test_settings_that_came_later_need_not_be_there(content, reload):
    assert reload(forge(content, lambda facts: facts["settings"].pop("average"))).average == 0
    assert reload(forge(content, lambda facts: facts["config"].pop("pool_source"))).config_.pool_source == ""
    with pytest.raises(DataError, match="settings are not those"):
        reload(forge(content, lambda facts: facts["settings"].pop("dropout")))


def test_models_of_version_2_have_the_moments_of_their_encoder(reload, tmp_path):
    model = tiny(gnn="gine").fit(STORE, LABELS)
    model.save(tmp_path / "m.sopool")
    content = (tmp_path / "m.sopool").read_bytes()
    facts = json.loads(read_header(content)["facts"])
    facts["edge_labels"] = facts.pop("edges")["labels"]
    for name in ("graph_attributes", *FOURTH):
        del facts[name]
    arrays = {name: array for name, array in load(content).items() if not name.startswith("nodes.")}
    old = reload(seal(arrays, {"format": "sopool model 2", "facts": json.dumps(facts)}))
    moments = model.encoder_.moments
    assert torch.equal(old.ensemble_.inputs.nodes.shift, moments.shift.expand(2, -1))
    shared = Moments(moments.shift.expand(2, -1), moments.scale.expand(2, -1))
    model.ensemble_ = replace(model.ensemble_, inputs=model.ensemble_.inputs._replace(nodes=shared))
    np.testing.assert_array_equal(old.predict_proba(STORE), model.predict_proba(STORE))
    old.save(tmp_path / "again.sopool")
    again = GraphClassifier.load(tmp_path / "again.sopool", device="cpu")
    np.testing.assert_array_equal(again.predict_proba(STORE), old.predict_proba(STORE))
    with pytest.raises(DataError, match=r"the array 'nodes\.scale' is missing"):
        reload(forge(content, lambda facts: None, lambda arrays: arrays.pop("nodes.scale")))


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_moments_that_cannot_be_are_refused(content, reload, value):
    def change(arrays):
        arrays["nodes.scale"][1, 0] = value

    with pytest.raises(DataError, match=r"nodes\.scale\[1, 0\] is"):
        reload(forge(content, lambda facts: None, change))


def test_versions_and_other_files(content, reload, tmp_path):
    arrays = load(content)
    header = {"facts": "{}"}
    with pytest.raises(DataError, match="of version 5, but this version of sopool reads versions 1, 2, 3 and 4"):
        reload(seal(arrays, header | {"format": "sopool model 5"}))
    with pytest.raises(DataError, match="the format is 'sopool graphs 1', expected a 'sopool model'"):
        reload(seal(arrays, header | {"format": "sopool graphs 1"}))
    with pytest.raises(DataError, match="there is no such file"):
        GraphClassifier.load(tmp_path / "none.sopool")
    with pytest.raises(DataError, match="cannot be read"):
        GraphClassifier.load(tmp_path)


def test_a_pooling_of_the_user_s_own(tmp_path, monkeypatch):
    with monkeypatch.context() as added:
        added.setitem(READOUTS, "mine", READOUTS["sopool-attn"])
        model = tiny(pool="mine", n_models=2, epochs=1).fit(STORE, LABELS)
        model.save(tmp_path / "mine.sopool")
        again = GraphClassifier.load(tmp_path / "mine.sopool")
        assert (again.predict_proba(STORE) == model.predict_proba(STORE)).all()
    with pytest.raises(DataError, match=r"its pooling 'mine' is not known.*sopool\.nn\.READOUTS"):
        GraphClassifier.load(tmp_path / "mine.sopool")


def test_a_pooling_of_another_source_is_told(tmp_path, monkeypatch):
    path = tmp_path / "mine.sopool"
    monkeypatch.setitem(READOUTS, "mine", partial(READOUTS["sopool-attn"], bias=True))
    tiny(pool="mine", n_models=1, epochs=1).fit(STORE, LABELS).save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert GraphClassifier.load(path).config_.pool_source
    monkeypatch.setitem(READOUTS, "mine", partial(READOUTS["sopool-attn"], bias=True, normalize=None))
    with pytest.warns(UserWarning, match=r"source code of the readout .mine. has changed.*fit the model"):
        GraphClassifier.load(path)


def test_a_huge_header_is_not_read(reload):
    with pytest.raises(DataError, match="truncated or damaged"):
        reload((2**62).to_bytes(8, "little") + b"{}")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "m.sopool"
    path.write_bytes(b"old")
    model = tiny(n_models=1, epochs=1).fit(STORE, LABELS)
    monkeypatch.setattr("sopool.estimator.model_file.seal", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.save(path)
    assert path.read_bytes() == b"old"


def test_where_it_cannot_be_written_is_said(tmp_path):
    model = tiny(n_models=1, epochs=1).fit(STORE, LABELS)
    for path, error in ((tmp_path / "nowhere" / "m.sopool", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error) as seen:
            model.save(path)
        assert seen.value.filename == str(path)
    assert not list(tmp_path.iterdir())


def test_training_graphs_are_recognized(content, reload):
    model = reload(content)
    others = replace(STORE, node_labels=(STORE.node_labels + 1) % 3)
    seen = STORE.sizes.bool().numpy()  # graphs without nodes look alike, whatever their labels
    assert model.seen_in_training(STORE).all()
    assert not model.seen_in_training(others)[seen].any()
    assert not model.seen_in_training(replace(STORE, edge_labels=None, edge_label_names=())).any()
    model.seen_graphs_ = None
    assert not model.seen_in_training(STORE).any()


def test_a_model_may_be_saved_without_hashes_of_its_graphs(tmp_path):
    model = tiny().fit(STORE, LABELS)
    model.save(tmp_path / "with.sopool")
    model.seen_graphs_ = None
    model.save(tmp_path / "without.sopool")
    back = GraphClassifier.load(tmp_path / "without.sopool", device="cpu")
    assert back.seen_graphs_ is None
    assert "seen.hashes" in load((tmp_path / "with.sopool").read_bytes())
    assert "seen.hashes" not in load((tmp_path / "without.sopool").read_bytes())


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"hashed": None}, "only one of about.hashed and the array seen.hashes"),
        ({"hashed": ["labels"]}, r"about.hashed\[0\] is 'labels', expected one of node_labels"),
        ({"columns": []}, r"about.columns is \[\], expected an object with smiles"),
        ({"columns": {"smiles": 1, "label": None, "targets": []}}, r"about.columns.smiles is 1"),
        ({"columns": {"smiles": None}}, "about.columns lacks label"),
    ],
)
def test_what_a_file_says_of_its_graphs_is_checked(about, said, content, reload):
    facts = json.loads(read_header(content)["facts"])
    facts["about"] |= about
    with pytest.raises(DataError, match=said):
        reload(seal(load(content), read_header(content) | {"facts": json.dumps(facts)}))
