"""Readouts of a user's own: what cannot be trained in a stack is refused before anything is trained."""

import pytest
import torch
from torch_geometric.nn import MedianAggregation

from sopool.errors import UserError
from sopool.models.presets import model_config
from sopool.nn import READOUTS, SegmentAggregation
from sopool.nn.layers import project
from sopool.ops import segment_sum
from tests.helpers.little_classifier import STORE


class Learned(SegmentAggregation):
    """A base for readouts that differ in how W meets the nodes."""

    def __init__(self, channels, rank=4):
        super().__init__(channels)
        self.weight = torch.nn.Parameter(torch.randn(channels, rank))

    @property
    def out_channels(self):
        return self.weight.shape[-1]


class Projected(Learned):
    def pool(self, x, ptr):
        return segment_sum(project(x, self.weight, ptr), ptr)


class Dropped(Learned):
    def pool(self, x, ptr):
        x = torch.nn.functional.dropout(x, 0.5, self.training)
        return segment_sum(project(x, self.weight, ptr), ptr)


class Multiplied(Learned):
    def pool(self, x, ptr):
        return segment_sum(x @ self.weight, ptr)


class OfTheFirst(Learned):
    """Gives something, but not what each model asks for."""

    def pool(self, x, ptr):
        return segment_sum(x @ self.weight.view(-1, x.shape[1], self.out_channels)[0], ptr)


@pytest.mark.parametrize("kind", [Projected, Dropped])
def test_those_that_stack_pass_and_draw_nothing(kind, monkeypatch):
    monkeypatch.setitem(READOUTS, "mine", kind)
    before = torch.get_rng_state()
    assert model_config(STORE, "gin-0", "mine", options={"rank": 3}).pool_options == {"rank": 3}
    assert torch.equal(torch.get_rng_state(), before)


class PowerOfTheFirst(SegmentAggregation):
    """The same, where what is learned begins alike in all models."""

    def __init__(self, channels):
        super().__init__(channels)
        self.power = torch.nn.Parameter(torch.ones(1))

    def pool(self, x, ptr):
        return segment_sum(x.abs().pow(self.power.flatten()[0]), ptr)


@pytest.mark.parametrize("kind", [Multiplied, OfTheFirst, PowerOfTheFirst])
def test_those_that_do_not_are_told_how(kind, monkeypatch):
    monkeypatch.setitem(READOUTS, "mine", kind)
    with pytest.raises(UserError, match=r"mine cannot be trained.*project\(x, weight, ptr\) instead of x @ weight"):
        model_config(STORE, "gin-0", "mine")


class OfTheWide(SegmentAggregation):
    """Asks for more features than one layer has."""

    def __init__(self, channels, used=64):
        if channels < used:
            raise ValueError(f"channels={channels}")
        super().__init__(channels)
        self.used = used

    out_channels = property(lambda self: self.used)

    def pool(self, x, ptr):
        return segment_sum(x[:, : self.used], ptr)


def test_they_are_tried_with_all_layers_side_by_side(monkeypatch):
    monkeypatch.setitem(READOUTS, "mine", OfTheWide)
    assert model_config(STORE, "gin-0", "mine").pool == "mine"


def test_those_that_do_not_pool_by_ptr(monkeypatch):
    monkeypatch.setitem(READOUTS, "mine", lambda channels: MedianAggregation())
    with pytest.raises(UserError, match=r"mine cannot be trained: it does not pool rows \[10, 130\].*ptr"):
        model_config(STORE, "gin-0", "mine")


class Untold(Learned):
    """Does not say how wide it is."""

    out_channels = SegmentAggregation.out_channels

    def pool(self, x, ptr):
        return segment_sum(project(x, self.weight, ptr), ptr)


class Nameless(SegmentAggregation):
    def pool(self, x, ptr):
        return segment_sum(x, ptr)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Untold, r"mine returns shape \[2, 4\] for 2 graphs with 130 features, but its out_channels says \[2, 130\]"),
        (lambda: Nameless(), "Nameless does not define the width of its output"),
    ],
)
def test_those_of_another_width_than_they_say(make, says, monkeypatch):
    monkeypatch.setitem(READOUTS, "mine", make)
    with pytest.raises(UserError, match=says):
        model_config(STORE, "gin-0", "mine")
