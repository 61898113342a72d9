import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.cli.options import names, numbers, settings, whole_numbers
from sopool.errors import SettingError
from tests.cli.conftest import TINY


@given(st.lists(st.integers(), min_size=1), st.sampled_from([",", ", ", " ,"]))
def test_whole_numbers(given, comma):
    assert whole_numbers("--hidden", comma.join(map(str, given))) == list(dict.fromkeys(given))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers(given):
    assert numbers("--lr", ",".join(map(str, given))) == list(dict.fromkeys(given))


@pytest.mark.parametrize(
    ("read", "text", "bad"),
    [
        (whole_numbers, "16,x", "'x' is not a whole number"),
        (whole_numbers, "16,,32", "'' is not a whole number"),
        (whole_numbers, "1.5", "'1.5' is not a whole number"),
        (numbers, "0.1,inf", "'inf' is not a number"),
        (numbers, "nan", "'nan' is not a number"),
        (names, "", "'' is not a name"),
        (names, "sum,", "'' is not a name"),
        (settings, "rank", "'rank' is not a name with a value"),
        (settings, "rank=", "'rank=' is not a name with a value"),
        (settings, "rank=4,rank=5", "rank is given twice"),
    ],
)
def test_the_bad_item_is_named(read, text, bad):
    with pytest.raises(SettingError) as error:
        read("--option", text)
    assert str(error.value).startswith(f"--option {text}: {bad}")


def test_settings():
    text = "heads=32, ratio=0.5,normalize=None,triangle=true,way=concat"
    want = {"heads": 32, "ratio": 0.5, "normalize": None, "triangle": True, "way": "concat"}
    assert settings("--pool-options", text) == want


@pytest.mark.parametrize(
    "arguments",
    [("evaluate", "MUTAG", "--pool", "sum", "--pool", "mean"), ("reproduce", "table2", "--seeds", "0", "--seeds=1")],
    ids=" ".join,
)
def test_a_list_is_given_once(call, arguments):
    shown = call(*arguments)
    assert shown.code == 2
    assert "given 2 times. Give it once, with a comma-separated list" in " ".join(shown.err.replace("│", " ").split())


def test_of_other_options_the_last_counts(call):
    assert "Preset paper, epochs 1," in call("evaluate", "MUTAG", *TINY, "--preset", "paper", "--epochs", "1").out
