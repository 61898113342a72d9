"""A model file with a right digest and anything in it: an error in words, or a model that predicts."""

import json
import os
import warnings
from dataclasses import replace

import pytest
from safetensors.torch import load

from sopool import GraphClassifier
from sopool.data import DataError
from sopool.data.features.encoders import AttributeEncoder, ConcatEncoder, DegreeEncoder, NodeLabelEncoder
from sopool.data.features.structural import LaplacianEncoder, RandomWalkEncoder
from sopool.estimator import load_model
from tests.helpers.forging import changed_arrays, changed_facts, facts_of, forge
from tests.helpers.little_classifier import LABELS, STORE, tiny
from tests.helpers.little_targets import FLAGS, NUMBERS, tiny_regressor
from tests.helpers.training_graphs import rich_store

RICH = replace(rich_store(graphs=40), labels=None, classes=())
MODELS = {
    "flat": {"pool": "sopool-bimap", "pool_options": {"rank": 3, "normalize": "sqrt"}, "class_weight": "balanced"},
    "labelled edges": {
        "pool": "sortpool",
        "gnn": "gine",
        "encoder": ConcatEncoder([NodeLabelEncoder(), DegreeEncoder()]),
    },
    "blocks": {"pool": "diffpool", "blocks": 2, "pool_options": {"clusters": 4}, "encoder": AttributeEncoder()},
    "structure": {"encoder": ConcatEncoder([RandomWalkEncoder(2), LaplacianEncoder(2)])},
    "everything": {"gnn": "gine", "pool": "sum"},
    "pairs": {"pool": "sopool-pairs", "pool_options": {"rank": 2, "distances": 2, "batch_norm": True}, "layers": 1},
    "a system": {"system": "dgcnn", "layers": 4, "system_options": {"k": 11}},
    "eigenvectors": {"pool": "eigenpool", "pool_options": {"vectors": 2}, "layers": 1},
}


def saved(folder, name):
    if name in TARGETS:
        make, y, settings = TARGETS[name]
        model = make(epochs=1, **settings).fit(STORE, y)
    else:
        model = tiny(epochs=1, **MODELS[name]).fit(RICH if name == "everything" else STORE, LABELS)
    model.save(folder / "m.sopool")
    return (folder / "m.sopool").read_bytes()


TARGETS = {
    "numbers": (tiny_regressor, NUMBERS, {"pool": "sum", "loss": "huber"}),
    "labels": (tiny, FLAGS, {"pool": "sum", "class_weight": "balanced"}),
}
IN_SHORT = ("flat", "blocks", "numbers", "labels")
PARAMS = [name if name in IN_SHORT else pytest.param(name, marks=pytest.mark.slow) for name in (*MODELS, *TARGETS)]


@pytest.fixture(scope="module", params=PARAMS)
def content(request, tmp_path_factory):
    return saved(tmp_path_factory.mktemp("model"), request.param)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("model"), "flat")


@pytest.fixture
def use(tmp_path):
    """Write, load and predict; whether that went well. Anything but a ``DataError`` is a failure of the test."""
    path = tmp_path / "m.sopool"

    def works(content):
        path.write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = load_model(path, device="cpu")
                return len(model.predict(RICH)) == len(RICH)
        except DataError:
            return False

    return works


def test_every_fact_that_is_another(content, use):
    failures = []
    fine = 0
    facts = facts_of(content)
    del facts["about"]["environment"]  # says nothing of the model
    for what, changed in changed_facts(facts):
        try:
            fine += use(forge(content, facts=json.dumps(changed)))
        except Exception as error:
            failures.append(f"{what}: {error!r}")
    assert failures == []
    most = 400 if facts["config"]["system"] else 250  # layers and pooling say nothing of a system
    assert 0 < fine < most  # what says nothing of the model, such as the name of its data, may be anything


def test_every_array_that_is_another(content, use):
    failures = []
    for what, arrays in changed_arrays(load(content)):
        try:
            use(forge(content, arrays=arrays))
        except Exception as error:
            failures.append(f"{what}: {error!r}")
    assert failures == []


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"facts": "null"}, "facts is None, expected an object"),
        ({"facts": "[" * 10**5}, "the header is damaged: not JSON"),
        ({"facts": '{"a": 1, "a": 1}'}, "the key 'a' occurs twice"),
        ({"format": "sopool model null"}, "of version null"),
        ({"format": ""}, "the format is '', expected a 'sopool model'"),
    ],
)
def test_other_headers(one, header, says, tmp_path):
    (tmp_path / "m.sopool").write_bytes(forge(one, **header))
    with pytest.raises(DataError, match=says):
        GraphClassifier.load(tmp_path / "m.sopool")


def test_metadata_that_is_no_text(one, tmp_path):
    """As safetensors would never write it: the format of a file was null."""
    length = int.from_bytes(one[:8], "little")
    changed = one[8 : 8 + length].replace(b'"sopool model 4"', b"null            ")
    (tmp_path / "m.sopool").write_bytes(one[:8] + changed + one[8 + length :])
    with pytest.raises(DataError, match=r"__metadata__\.format is None, expected a string"):
        GraphClassifier.load(tmp_path / "m.sopool")


def test_devices_and_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(DataError, match="expected a regular file"):
            GraphClassifier.load(path)


def test_a_large_file_that_is_no_model_is_not_read(tmp_path, monkeypatch):
    """Its first bytes say so: nothing else of it is looked at."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write((2**23).to_bytes(8, "little") + b"{}")
        file.truncate(2**30)
    monkeypatch.setattr("sopool._files.sealed.check_seal", lambda *_: pytest.fail("all of it was read"))
    with pytest.raises(
        DataError, match="not a file written by sopool, or truncated or damaged: the header cannot be read"
    ):
        GraphClassifier.load(path)


def test_the_same_training_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        tiny(class_weight="balanced").fit(STORE, LABELS).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
