"""Which backend computes: the choice, its errors, and that it comes back."""

import pytest
import torch

import sopool.ops
from sopool.ops import backends, segment_gram

pytestmark = pytest.mark.parametrize("way", ["torch"], indirect=True)


def test_a_block_brings_back_what_held_before():
    before = backends.chosen()
    with sopool.ops.backend("torch", "ieee"):
        assert backends.chosen() == ("torch", "ieee")
        with sopool.ops.backend(None):
            assert backends.chosen() == (None, "tf32x3")
        assert backends.chosen() == ("torch", "ieee")
    assert backends.chosen() == before


def test_also_after_an_error():
    before = backends.chosen()
    with pytest.raises(ZeroDivisionError), sopool.ops.backend("torch"):
        raise ZeroDivisionError
    assert backends.chosen() == before


def test_without_a_block_it_holds_from_here_on():
    before = sopool.ops.backend("torch")
    try:
        assert backends.chosen().name == "torch"
    finally:
        before.__exit__(None, None, None)
    assert backends.chosen().name is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("cuda",), r"backend 'cuda' does not exist: choose 'torch', 'triton' or None"),
        (("torch", "tf33"), r"precision='tf33' does not exist: choose one of tf32x3, ieee, tf32"),
    ],
)
def test_errors_change_nothing(given, says):
    before = backends.chosen()
    with pytest.raises(ValueError, match=says):
        sopool.ops.backend(*given)
    assert backends.chosen() == before


def test_triton_must_be_installed(monkeypatch):
    monkeypatch.setattr(backends, "triton_version", lambda: ())
    with pytest.raises(ValueError, match=r"needs Triton 3\.4 or newer, but it is not installed: run pip install"):
        sopool.ops.backend("triton")


@pytest.mark.parametrize(
    ("version", "serves"), [((), False), ((3, 2), False), ((3, 4), True), ((3, 10), True), ((4, 0), True)]
)
def test_triton_must_be_new_enough(monkeypatch, version, serves):
    monkeypatch.setattr(backends, "triton_version", lambda: version)
    assert backends.installed() is serves
    if version and not serves:
        with pytest.raises(ValueError, match=r"3\.4 or newer, but version 3\.2 is installed"):
            sopool.ops.backend("triton")


def test_forced_on_a_cpu_without_the_interpreter(monkeypatch):
    monkeypatch.setattr(backends, "installed", lambda: True)
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    x = torch.ones(3, 2)
    with sopool.ops.backend("triton"), pytest.raises(RuntimeError, match=r"are on a CPU.*set TRITON_INTERPRET=1"):
        segment_gram(x, x, torch.tensor([0, 3]))


def test_a_cpu_is_served_only_if_asked_for_and_other_types_never(monkeypatch):
    monkeypatch.setattr(backends, "installed", lambda: True)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    x = torch.ones(3, 2)
    assert not backends.serves(x)
    with sopool.ops.backend("torch"):
        assert not backends.serves(x)
    with sopool.ops.backend("triton"):
        assert all(backends.serves(x.to(dtype)) for dtype in backends.SERVED)
        assert not backends.serves(x.long())
        assert not backends.serves(x.to("meta"))
