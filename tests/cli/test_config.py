"""Files with the options of commands: read, refused with the name of the file and the key, and written by every run."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool import GraphClassifier
from sopool.cli.config_file import _toml
from tests.cli.conftest import QUICK, TINY

tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
FIT = """
[fit]
data = "MUTAG"
output = "m.sopool"
hidden = [4, 5]
lr = 0.02
epochs = 1
models = 1
folds = 0
device = "cpu"
keep-copies-together = true

[runs.list]
all = true
"""


@pytest.fixture
def config(tmp_path):
    def write(text, name="c.toml"):
        (tmp_path / name).write_text(text)
        return name

    return write


def settings(tmp_path):
    model = GraphClassifier.load(tmp_path / "m.sopool")
    return model.hidden, model.lr, model.n_models, model.epochs


def test_a_file_has_options_and_the_command_line_wins(call, config, tmp_path):
    shown = call("--config", config(FIT), "fit")
    assert shown.code == 0, shown.err
    assert settings(tmp_path)[0] in (4, 5)
    assert settings(tmp_path)[1:] == (0.02, 1, 1)
    assert "Selected: hidden" in shown.out
    shown = call("--config", config(FIT), "fit", "--hidden", "3", "--lr=0.5", "--models", "2")
    assert settings(tmp_path) == (3, 0.5, 2, 1)
    assert call("--config", config(FIT), "runs", "list").code == 0
    assert call("--config", config(FIT), "pools").code == 0  # of which it says nothing


def test_fit_writes_what_repeats_it_into_the_model(call, config, tmp_path):
    call("--config", config(FIT), "fit", "--hidden", "3", "--no-calibrate", "--pool-options", "rank=2")
    first = (tmp_path / "m.sopool").read_bytes()
    printed = call("config", "m.sopool")
    found = tomllib.loads(printed.out)["fit"]
    assert found["hidden"] == "3"
    assert (found["lr"], found["folds"], found["calibrate"], found["keep-copies-together"]) == ("0.02", 0, False, True)
    assert "label-column" not in found  # has no value
    assert call("config", "m.sopool", "-o", "again.toml").code == 0
    assert (tmp_path / "again.toml").read_text() == printed.out
    (tmp_path / "m.sopool").unlink()
    assert call("--config", "again.toml", "fit").code == 0
    assert (tmp_path / "m.sopool").read_bytes() == first


def test_runs_are_stored_with_what_repeats_them(call, tmp_path):
    shown = call("evaluate", "MUTAG", *TINY, "--hidden", "4", "--json")
    (path,) = (tmp_path / "runs" / "configs").iterdir()
    said = "".join(shown.err.split())  # the line may be wrapped
    assert f"Repeatwith:sopool--configruns/configs/{path.name}evaluate." in said
    again = call("--config", path.relative_to(tmp_path), "evaluate")
    assert "Nothing to train" in again.err
    assert json.loads(again.out) == json.loads(shown.out)
    shown = call("controls", "MUTAG", "--controls", "majority,size", "--folds", "2")
    assert shown.code == 0
    both = sorted((tmp_path / "runs" / "configs").iterdir())
    assert [one.name.partition("-")[0] for one in both] == ["controls", "evaluate"]
    assert f"sopool --config runs/configs/{both[0].name} controls" in shown.err
    assert call("--config", both[0], "controls").out == shown.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[fit]\nhiden = 3",
            "c.toml: [fit] has the key 'hiden', which is no option of sopool fit. Did you mean 'hidden'?",
        ),
        ("[fit]\nlabel_column = 'a'", "Did you mean 'label-column'?"),
        ("[fit]\nconfig = 'a'", "which is no option of sopool fit. Known: data, output,"),
        ("[fit]\nfolds = 'five'", 'c.toml: [fit] folds = "five", expected a whole number.'),
        ("[fit]\nfolds = true", "[fit] folds = true, expected a whole number."),
        ("[fit]\nfolds = 5.0", "[fit] folds = 5.0, expected a whole number."),
        ("[fit]\ncalibrate = 1", "[fit] calibrate = 1, expected true or false."),
        ("[fit]\nclass-weight = 'even'", '[fit] class-weight = "even", expected one of balanced.'),
        ("[fit]\noutput = ['a']", '[fit] output = ["a"], expected a string.'),
        ("[fit]\nhidden = []", "expected a string, a number, or a list of them."),
        ("[fit]\nhidden = [[1]]", "[fit] hidden = [[1]], expected a string"),
        ("[fit]\nseed = 2020-01-01", "[fit] seed = a date, expected a whole number."),
        ("[evaluate]\nfolds = {}", "[evaluate] folds = a dict, expected a whole number."),
        ("[fti]", "c.toml: [fti] is not a command of sopool. Did you mean 'fit'?"),
        ("fit = 3", "fit = 3 is not a table with the options of a command."),
        ("folds = 3", "'folds' is in no table: write the name of a command above it, e.g. [fit]."),
        ("[runs]\nalll = true", "[runs] has the key 'alll', which is no option or command. Did you mean 'all'?"),
        ("[runs.lits]", "Did you mean 'list'?"),
        ("[runs]\nlist = 1", "list = 1 is not a table"),
        ("[fit", "c.toml: this is not a TOML file: "),
        ("[fit]\nseed = 1\nseed = 2", "c.toml: this is not a TOML file: "),
        ("a = " + "[" * 5000, "c.toml: this is not a TOML file: "),
    ],
)
def test_mistakes_name_the_file_and_the_key(text, message, call, config, tmp_path):
    shown = call("--config", config(text), "fit", "MUTAG", "-o", "m.sopool", *QUICK)
    assert shown.code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert not (tmp_path / "m.sopool").exists()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("folds = -3", [], "error: c.toml: [fit] folds = -3: "),
        (
            "folds = 1",
            [],
            "error: c.toml: [fit] folds = 1: cross-validation needs at least 2 folds. Use 2 or more, or 0",
        ),
        ("hidden = [4, 'x']", [], """error: c.toml: [fit] hidden = "4,x": 'x' is not a whole number."""),
        ("dropout = 1.5", [], 'error: c.toml: [fit] dropout = "1.5": a number of at least 0'),
        ("dropout = [0.1, 1.5]", [], "error: c.toml: [fit] dropout = 1.5: a number of at least 0"),
        ("split = 'scaffolds'", [], 'error: c.toml: [fit] split = "scaffolds" is not a split'),
        ("metric = 'mse'", [], "error: there is no metric 'mse'."),
        (
            "label-column = 'x'",
            [],
            'error: MUTAG: [fit] label-column = "x" of c.toml was given, but this source has no',
        ),
        ("split = 'random'", ["--test", "a"], 'error: --test a and [fit] split = "random" of c.toml were both given'),
        ("test = 'a'", ["--split", "random"], 'error: c.toml: [fit] test = "a" and --split random were both given'),
        (
            "keep-copies-together = true",
            ["--test", "a"],
            "--test a and [fit] keep-copies-together = true of c.toml were",
        ),
        (r"split = 'group:a\1'", [], r'error: MUTAG: [fit] split = "group:a\\1" of c.toml needs molecules'),
        ("folds = 3", ["--folds", "1"], "error: --folds 1: cross-validation needs at least 2 folds."),
        ("executor = 'local'", [], "c.toml: [fit] has the key 'executor'"),
    ],
)
def test_mistakes_in_values_name_the_file_and_the_key(text, options, message, call, config):
    shown = call("--config", config(f"[fit]\n{text}"), "fit", "MUTAG", "-o", "m.sopool", "--device", "cpu", *options)
    assert shown.code == 2
    assert message in " ".join(shown.err.split())


def test_columns_of_a_config_file_are_named_by_their_keys(call, config, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "a.csv").write_text("smiles,label\nCC,1\nCCC,0\n")
    shown = call("--config", config("[inspect]\nlabel-column = 'x'\n"), "inspect", "a.csv")
    assert shown.code == 2
    assert "error: a.csv: there is no column 'x' ([inspect] label-column of c.toml). Found: smiles" in shown.err


def test_files_that_cannot_be_read(call, tmp_path):
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    (tmp_path / "folder").mkdir()
    assert "none.toml: there is no such config file." in call("--config", "none.toml", "pools").err
    assert "folder: the config file cannot be read" in call("--config", "folder", "pools").err
    assert "bad.toml: this is not a TOML file" in call("--config", "bad.toml", "pools").err


def test_a_model_that_fit_did_not_write_has_none(model, call):
    shown = call("config", model)
    assert shown.code == 2
    assert "sopool fit did not write it" in shown.err


@given(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_what_is_written_is_read_as_it_was(value):
    assert tomllib.loads(f"key = {_toml([value])}")["key"] == [value]
