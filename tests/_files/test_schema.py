"""Facts and arrays of files are what was described, or it is said which is not, what was found and expected."""

import json
import os
from pathlib import Path

import pytest
import torch

from sopool._files.regular import open_regular, read_regular
from sopool._files.schema import (
    BOOLEAN,
    SHARE,
    Array,
    anything,
    blamed_on,
    check_arrays,
    choice,
    list_of,
    mapping_of,
    number,
    optional,
    parse_json,
    read_json,
    record,
    text,
    tuple_of,
    whole,
)
from sopool.errors import DataError

PERSON = record({"name": text("[a-z]+"), "age": whole(0, 150)}, {"age": 30})
MANY = record({"people": list_of(PERSON, least=1), "by": mapping_of(optional(SHARE))})


def test_what_fits_is_handed_on():
    found = MANY({"people": [{"name": "ada"}, {"name": "bob", "age": 7}], "by": {"a b": 1, "c": None}}, "file")
    assert found == {"people": [{"name": "ada", "age": 30}, {"name": "bob", "age": 7}], "by": {"a b": 1, "c": None}}
    assert tuple_of(number())([1, 2.5], "file") == (1, 2.5)
    assert record({}, more=anything)({"x": [1]}, "file") == {"x": [1]}


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([], "file is .*, expected an object with people, by"),
        ({"people": []}, "file lacks by: the file is damaged or from another version"),
        ({"people": [], "by": {}, "more": 1}, "file has 'more', which this version does not know"),
        ({"people": [], "by": {}}, r"file.people is \[\], expected a list of 1 to 1,048,576 values"),
        (
            {"people": [{"name": "ada"}, {"name": "B"}], "by": {}},
            r"file.people\[1\].name is 'B', expected a string that",
        ),
        (
            {"people": [{"name": "ada", "age": True}], "by": {}},
            r"file.people\[0\].age is True, expected a whole number",
        ),
        ({"people": [{"name": "ada", "age": 7.0}], "by": {}}, r"age is 7.0, expected a whole number from 0 to 150"),
        (
            {"people": [{"name": "ada"}], "by": {"x": 2.11}},
            "file.by.x is 2.11, expected a finite number of at least 0 and",
        ),
        ({"people": [{"name": "ada"}], "by": {"x" * 10**6: 2}}, r"file.by.'xxx.{1,30}xxx' is 2"),
    ],
)
def test_what_does_not_fit_is_named(found, says):
    with pytest.raises(DataError, match=says) as caught:
        MANY(found, "file")
    assert len(str(caught.value)) < 300


def test_single_values():
    for check, wrong in (
        (BOOLEAN, 1),
        (choice("a", "b"), "c"),
        (choice("a", "b"), ["a"]),
        (number(), True),
        (number(), float("nan")),
        (number(), float("inf")),
        (number(0), -1e-9),
        (text(most=3), "four"),
        (text(), 5),
    ):
        with pytest.raises(DataError, match="field is"):
            check(wrong, "field")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ("[1e999]", "a number is too large"),
        ("[" * 100_000 + "]" * 100_000, "not JSON: "),
        ("[" * 21 + "]" * 21, "nested too deeply"),
        ('["\\ud800"]', "a string contains half a character"),
        ('{"\\ud800": 1}', "a string contains half a character"),
        ("1" * 5000, "not JSON: "),
        (b"\xff", "not JSON: "),
        ("", r"not JSON: Expecting value \(column 1\)"),
    ],
)
def test_what_is_not_strict_json_is_refused(content, says, tmp_path):
    with pytest.raises(DataError, match=says):
        parse_json(content)
    path = tmp_path / "file.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=rf"file\.json.*oh: {says}") as caught, blamed_on(path, "oh: "):
        read_json(path)
    assert caught.value.path == path


def test_json_as_deep_as_may_be():
    assert json.dumps(parse_json("[" * 20 + "]" * 20)) == "[" * 20 + "]" * 20
    assert parse_json('"\\ud83d\\ude00"') == "\U0001f600"


RULES = {
    "graphs": Array(("n",), (torch.int64,), low=0),
    "shares": Array((2, "n"), low=0, high=1, gaps=True),
    "losses": Array(("n",), low=0, high=float("inf")),
}
FINE = {
    "graphs": torch.arange(3),
    "shares": torch.tensor([[0, 0.5, 1], [0, 0, float("nan")]]),
    "losses": torch.tensor([0, 1, float("inf")], dtype=torch.float64),
}


def test_arrays_that_fit():
    assert check_arrays(FINE, RULES) == {"n": 3}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"more": torch.zeros(1)}, "the array 'more' is not expected"),
        ({"graphs": torch.zeros(3)}, r"the array graphs is float32 \[3\], expected int64 \[3\]"),
        ({"shares": torch.zeros(2, 4)}, r"shares is float32 \[2, 4\], expected float32 or float64 \[2, 3\]"),
        ({"shares": torch.zeros(2, 3, 1)}, r"shares is float32 \[2, 3, 1\]"),
        ({"shares": torch.zeros(2, 3).bfloat16()}, "shares is bfloat16"),
        ({"graphs": torch.tensor([0, 1, -1])}, r"graphs\[2\] is -1, expected a number of at least 0"),
        ({"shares": torch.tensor([[0, 0, 0], [0, 2.11, 0]])}, r"shares\[1, 1\] is 2.1.*, expected .* at most 1"),
        ({"losses": torch.tensor([0, float("nan"), 0])}, r"losses\[1\] is nan"),
        ({"losses": torch.tensor([0, -float("inf"), 0])}, r"losses\[1\] is -inf"),
    ],
)
def test_arrays_that_do_not_fit(change, says):
    with pytest.raises(DataError, match=says):
        check_arrays(FINE | change, RULES)
    with pytest.raises(DataError, match="the array 'losses' is missing"):
        check_arrays({name: FINE[name] for name in ("graphs", "shares")}, RULES)


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(DataError, match="this is a pipe or a device, expected a regular file"):
            read_regular(path, 10)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "none", 10)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk
    with pytest.raises(DataError, match="1,099,511,627,776 bytes, expected at most 16,777,216"):
        read_json(path)
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
