"""Inputs for hypothesis: those that are fine, with a few changes."""

from hypothesis import strategies as st

from tests.fuzz.registry import Target

WORDS = (b"", b"\x00", b"\xff\xfe", b"\n", b" ", b"\xc3\xa9", b"0", b"-1", b"4294967296", b"9" * 5000, b"[" * 5000)
"""What many formats trip over."""


@st.composite
def inputs(draw: st.DrawFn, target: Target) -> bytes:
    """Bytes made from the seeds of a target; now and then any bytes."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=200))
    data = draw(st.sampled_from(target.seeds))
    for _ in range(draw(st.integers(0, 6))):
        data = _changed(draw, data, target)
    return data


def _changed(draw: st.DrawFn, data: bytes, target: Target) -> bytes:
    """Put something else in place of some bytes, which may be none."""
    start = draw(st.integers(0, len(data)))
    end = min(len(data), start + draw(st.one_of(st.just(0), st.integers(1, 4), st.integers(0, 200))))
    kind = draw(st.sampled_from(["word", "bytes", "again", "other"]))
    if kind == "word":
        put = draw(st.sampled_from([*target.words, *WORDS]))
    elif kind == "bytes":
        put = draw(st.binary(max_size=4))
    elif kind == "again":
        put = data[start:end] * draw(st.integers(2, 5))
    else:
        other = draw(st.sampled_from(target.seeds))
        place = draw(st.integers(0, len(other)))
        put = other[place : place + draw(st.integers(0, 100))]
    return data[:start] + put + data[end:]
