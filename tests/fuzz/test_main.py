"""The entry for atheris, which is not a dependency."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from sopool.errors import DataError
from tests.fuzz.__main__ import main
from tests.fuzz.registry import Target, file_of, load_targets


def test_without_atheris_it_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "atheris", None)
    assert main(["json_lines"]) == 2
    assert "pip install atheris" in capsys.readouterr().err


def test_atheris_is_given_the_target_and_its_arguments(monkeypatch, capsys):
    given = []
    entry = SimpleNamespace(
        instrument_imports=lambda include: nullcontext(),
        Setup=lambda arguments, function: given.append((arguments, function)),
        Fuzz=lambda: [function(b"{}") for _, function in given],
    )
    monkeypatch.setitem(sys.modules, "atheris", entry)
    assert main(["json_lines", "corpus", "-runs=1"]) == 0
    ((arguments, function),) = given
    assert arguments == ["tests.fuzz", "corpus", "-runs=1"]
    assert isinstance(function(b"{}"), DataError)
    assert main(["nothing"]) == main([]) == 2
    err = capsys.readouterr().err
    assert "The targets: " in err
    assert " json_lines, " in err


def test_seeds_are_written(tmp_path, capsys):
    assert main(["--seeds", "gin_text", str(tmp_path / "corpus")]) == 0
    written = sorted(path.read_bytes() for path in (tmp_path / "corpus").iterdir())
    assert written == sorted(load_targets()["gin_text"].seeds)
    assert main(["--seeds"]) == 2
    assert "The targets: " in capsys.readouterr().err


def test_what_a_reader_leaves_behind_is_noticed():
    with pytest.raises(AssertionError, match="left beside"), file_of(b"", "a.txt") as path:
        path.with_name("b.txt").touch()
    with pytest.raises(AssertionError, match="changed"), file_of(b"", "a.txt") as path:
        path.write_bytes(b"more")


def test_an_error_of_another_kind_gets_through():
    def broken(data):
        raise KeyError(data)

    one = Target("broken", broken, (b"",), (), None)
    with pytest.raises(KeyError):
        one.run(b"x")
