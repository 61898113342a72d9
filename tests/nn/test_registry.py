"""What the registry says of readouts and pooling layers."""

import inspect

import pytest

from sopool.nn import GRAPH_READOUTS, POOLINGS, READOUTS, PooledReadout, make_pooling, make_readout
from sopool.nn.registry import default_options

FLAT = [(name, False) for name in (*READOUTS, *GRAPH_READOUTS)]
every_pooling = pytest.mark.parametrize(("name", "blocks"), [*FLAT, *((name, True) for name in POOLINGS)])


@every_pooling
def test_default_options_are_those_of_a_layer_made_without_options(name, blocks):
    made = make_pooling(name, 4) if blocks else make_readout(name, 4)
    layer = made.pooling if isinstance(made, PooledReadout) else made
    options = default_options(name, blocks)
    assert {option: getattr(layer, option) for option in options} == options
    assert {"channels", *options} >= set(inspect.signature(type(layer)).parameters)


@pytest.mark.parametrize(
    ("name", "blocks", "options"),
    [
        ("sum", False, {}),
        ("sopool-m-attn", False, {"heads": 8, "normalize": None}),
        ("sopool-m-attn", True, {"heads": 16, "normalize": "norm"}),
        ("covpool", False, {"rank": 32, "triangle": False, "normalize": None, "moments": (2,)}),
        ("diffpool", False, {"clusters": 8, "link": 1.0, "entropy": 1.0}),
        ("diffpool", True, {"clusters": 16, "link": 1.0, "entropy": 1.0}),
        ("eigenpool", False, {"vectors": 8, "size": None}),
        ("eigenpool", True, {"vectors": 2, "size": 4}),
        (
            "sopool-pairs",
            False,
            {"rank": 16, "distances": 6, "rest": False, "walks": False, "normalize": "norm", "with_sum": True}
            | {"layers": None, "batch_norm": False, "lr_scale": 1.0, "decay": 0.1},
        ),
        ("topkpool", True, {"ratio": 0.5, "min_score": None, "multiplier": 1.0, "nonlinearity": "tanh"}),
    ],
)
def test_presets_of_the_registry_overlay_the_defaults_of_the_class(name, blocks, options):
    assert default_options(name, blocks) == options


def test_channels_can_be_the_widths_of_layers():
    assert make_readout("sopool-bimap", [2, 3]).channels == 5
    assert make_readout("topkpool", [2, 3]).pooling.channels == 5
    pairs = make_readout("sopool-pairs", [2, 3, 4], layers=2)
    assert (pairs.channels, pairs.paired_channels) == (9, 5)


def test_default_options_follow_a_user_s_own_readout(monkeypatch):
    class Own(READOUTS["sum"]):
        def __init__(self, channels, power, scale=2.0):
            super().__init__(channels)

    monkeypatch.setitem(READOUTS, "own", Own)
    assert default_options("own", blocks=False) == {"scale": 2.0}


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"no readout 'sopol'. Did you mean 'sopool'"):
        default_options("sopol", blocks=False)
    with pytest.raises(ValueError, match="no pooling layer 'sum'"):
        default_options("sum", blocks=True)
