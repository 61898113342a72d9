"""Text from data, made safe to show in a terminal."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from sopool._runtime.visible import on_one_line, visible

KEPT = "Grüße, naïve; 漢字; עברית; 👩‍🔬🏳️‍🌈 [red]x[/red] a|b\\n"
EVERYTHING = st.text(st.characters(categories=None))


def drives_a_terminal(character):
    """Whether a character may do anything but show itself, by what Unicode says of it."""
    reorders = unicodedata.bidirectional(character) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or reorders


@given(EVERYTHING)
def test_nothing_but_newlines_is_left_to_drive_a_terminal(text):
    assert not any(map(drives_a_terminal, on_one_line(text)))
    assert {character for character in visible(text) if drives_a_terminal(character)} <= {"\n"}
    assert visible(text).count("\n") == text.count("\n")


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))))
def test_ordinary_text_stays_as_it_is(text):
    ordinary = "".join(character for character in text if not drives_a_terminal(character))
    assert on_one_line(ordinary) == ordinary


def test_what_is_written_out_can_be_read():
    assert visible("a\x1b[31m\x07\x08\r\t\x7f\x9b\u202e\u2028\udcff\nb") == (
        r"a\x1b[31m\x07\x08\r\t\u007f\u009b\u202e\u2028\udcff" + "\nb"
    )
    assert on_one_line("a\nb") == r"a\nb"
    assert on_one_line(KEPT) == KEPT


@given(st.dictionaries(EVERYTHING, EVERYTHING), st.booleans())
def test_json_stays_json_that_says_the_same(value, ascii_only):
    assert json.loads(visible(json.dumps(value, ensure_ascii=ascii_only))) == value
