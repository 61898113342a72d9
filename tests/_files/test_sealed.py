import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load

from sopool._files.sealed import TYPES, check_seal, read_header, seal
from sopool.data import DataError

CONTENT = seal({"a": np.arange(6.0).reshape(2, 3), "b": torch.arange(4)[::2]}, {"note": 'a "digest":"no one"', "x": ""})


def test_arrays_and_header_come_back():
    assert len(check_seal(CONTENT, "here")) == 64
    header = read_header(CONTENT)
    assert (header.pop("note"), header.pop("x"), list(header)) == ('a "digest":"no one"', "", ["digest"])
    arrays = load(CONTENT)
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["b"].tolist() == [0, 2]


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(place, change):
    changed = bytearray(CONTENT)
    changed[place] ^= change
    with pytest.raises(DataError, match=r"here: (truncated or damaged|the content was changed or damaged)"):
        check_seal(bytes(changed), "here")
    with pytest.raises(DataError):
        check_seal(CONTENT[:place], "here")


def test_the_same_content_gives_the_same_bytes():
    arrays = {"a": torch.arange(3), "b": torch.ones(2, dtype=torch.bool)}
    other = dict(reversed(arrays.items()))
    assert seal(arrays, {"x": "1", "y": "2"}) == seal(other, {"y": "2", "x": "1"})


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_comes_back(dtype):
    given = {"empty": torch.zeros(0, 2, dtype=dtype), "one": torch.ones((), dtype=dtype), "odd": torch.zeros(3).bool()}
    content = seal(given, {})
    check_seal(content, "here")
    found = load(content)
    assert all(torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in given.items())
