import pytest

from sopool.errors import SettingError, check_name, suggest


@pytest.mark.parametrize(
    ("given", "known", "meant"),
    [
        ("gin", ["gine", "gin-eps"], "gin-eps"),  # a whole word, although "gine" is spelled more similarly
        ("BIMAP", ["sum", "sopool-bimap"], "sopool-bimap"),
        ("gine", ["gin-0", "gin"], "gin"),
    ],
)
def test_the_suggested_name(given, known, meant):
    assert suggest(given, known) == f" Did you mean {meant!r}?"


@pytest.mark.parametrize("given", ["", "-", "nothing like it", "x" * 100_000])
def test_no_suggestion(given):
    assert suggest(given, ["sopool-bimap", "gin-0"]) == ""


def test_something_else_than_a_name():
    with pytest.raises(SettingError, match="the readout must be given by its name, not a type: "):
        check_name("readout", dict, ["sum"])
