"""Headers of stored files that were changed here and there, with their length put right, as a forger can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.stored_files import TARGETS, WORDS

places = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 8), st.sampled_from(WORDS) | st.binary(max_size=8)), max_size=4
)
WITH_HEADER = [read for read, beginnings in TARGETS.items() if not beginnings[0].startswith(b"{")]


def changed(content, changes):
    content = bytearray(content)
    for place, length, value in changes:
        start = int(place * len(content))
        content[start : start + length] = value
    return bytes(content)


@pytest.mark.parametrize("read", WITH_HEADER, ids=lambda read: read.__name__)
@given(data=st.data())
def test_whatever_the_header_no_error_but_our_own(read, data):
    content = data.draw(st.sampled_from(TARGETS[read]))
    end = 8 + int.from_bytes(content[:8], "little")
    header = changed(content[8:end], data.draw(places))
    read(len(header).to_bytes(8, "little") + header + content[end:])


@pytest.mark.parametrize("read", TARGETS, ids=lambda read: read.__name__)
def test_what_is_nothing_or_deeply_nested(read):
    for content in (b"", b"{}", b"[" * 100_000):
        read(content)
