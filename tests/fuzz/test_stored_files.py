"""The fuzz targets of stored files, on bytes that were changed here and there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.stored_files import TARGETS

VALUES = [
    b"0",
    b"-1",
    b"null",
    b"1e999",
    b"[]",
    b"{}",
    b'""',
    b"true",
    b"\x00",
    b"\xff",
    b"99999999999999999999",
    b'"x":',
]
places = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 8), st.sampled_from(VALUES) | st.binary(max_size=8)), max_size=4
)


def changed(content, changes):
    content = bytearray(content)
    for place, length, value in changes:
        start = int(place * len(content))
        content[start : start + length] = value
    return bytes(content)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(target, data):
    content = data.draw(st.sampled_from(TARGETS[target]))
    changes = data.draw(places)
    if content.startswith(b"{") or data.draw(st.booleans()):
        target(changed(content, changes))
        return
    # Most can go wrong in the header: change it, and let its length be right.
    end = 8 + int.from_bytes(content[:8], "little")
    header = changed(content[8:end], changes)
    target(len(header).to_bytes(8, "little") + header + content[end:])


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_what_is_whole_and_what_is_nothing(target):
    for content in (*TARGETS[target], b"", b"{}", b"[" * 100_000):
        target(content)
