"""Readouts of a user's own: an edited one is another one."""

import importlib.util
from functools import partial

import pytest

from sopool.nn import READOUTS, BilinearSecondOrderAggregation
from sopool.nn.registry import GRAPH_READOUTS, POOLINGS, own_readouts, source_of

FILE = """
from sopool.nn import SegmentAggregation
from sopool.ops import segment_sum

class Base(SegmentAggregation):
    scale = {scale}

class Mine(Base):
    def pool(self, x, ptr):
        return segment_sum(x, ptr) {formula}
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The source of a class from a file, once it has a name."""
    count = iter(range(9))

    def add(formula="* 2", scale=1):
        path = tmp_path / f"mine_{next(count)}.py"
        path.write_text(FILE.format(formula=formula, scale=scale))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(importlib.sys.modules, path.stem, module)
        spec.loader.exec_module(module)
        monkeypatch.setitem(READOUTS, "mine", module.Mine)
        return source_of("mine")

    return add


def test_the_package_s_own_have_none():
    assert not own_readouts()
    assert {source_of(name) for name in [*READOUTS, *GRAPH_READOUTS, *POOLINGS]} == {""}


def test_a_class_counts_by_its_source_and_that_of_its_bases(written):
    first = written()
    assert len(first) == 16
    assert written() == first  # from whatever file
    assert len({first, written(formula="* 3"), written(scale=2)}) == 3


def test_a_file_edited_later_does_not_change_the_class_in_memory(written, tmp_path):
    first = written()
    (tmp_path / "mine_0.py").write_text(FILE.format(formula="* 4", scale=1))
    assert source_of("mine") == first


def test_options_and_functions_count(monkeypatch):
    found = set()
    makes = [partial(BilinearSecondOrderAggregation, rank=rank) for rank in (2, 3)]
    for make in (*makes, lambda channels: BilinearSecondOrderAggregation(channels, rank=4)):
        monkeypatch.setitem(READOUTS, "mine", make)
        found.add(source_of("mine"))
    assert len(found - {""}) == 3


def test_a_class_without_a_file_counts_by_its_name(monkeypatch):
    made = [type(name, (BilinearSecondOrderAggregation,), {"__module__": "typed"}) for name in ("A", "A", "B")]
    found = []
    for kind in made:
        monkeypatch.setitem(READOUTS, "mine", kind)
        found.append(source_of("mine"))
    assert found[0] == found[1] != found[2]
