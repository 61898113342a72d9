"""Whether a readout, perhaps a user's own, does its work in a stack of models."""

from collections.abc import Mapping
from typing import Any

import torch

from sopool._runtime.generators import drawing_from, planning
from sopool.errors import SettingError
from sopool.models.flat import pooled_width
from sopool.models.frozen import freeze
from sopool.models.stack import stack
from sopool.nn.registry import make_readout

LARGE = 2**20
"""Numbers of a readout, or of what it makes of a graph, beyond which it is not tried: memory might not suffice."""


def check_stackable(name: str, channels: int, options: Mapping[str, Any]) -> None:
    """Raise a ``SettingError`` unless it is as wide as it says and two, stacked as in a bank, give what each does."""
    with planning():
        planned = make_readout(name, channels, **options)
    if max(pooled_width(planned, channels), sum(part.numel() for part in planned.parameters())) > LARGE:
        return
    with drawing_from(0), torch.no_grad():
        x = torch.randn(10, channels)
        ptr = torch.tensor([0, 3, 4, 8, 10])
        readouts = [_unlike_others(make_readout(name, channels, **options)) for _ in range(2)]
    with torch.no_grad():
        try:
            alone = [readouts[0](x[:4], ptr=ptr[:3]), readouts[1](x[4:], ptr=ptr[2:] - 4)]
        except Exception as error:  # whatever it does with its rows
            raise SettingError(
                f"{name} cannot be trained: it does not pool rows [10, {channels}] of graphs that ptr tells apart "
                f"({first_line(error)})."
            ) from error
        width = pooled_width(readouts[0], channels)
        found = list(alone[0].shape)
        if found != [2, width]:
            raise SettingError(
                f"{name} makes {found} of 2 graphs with {channels} features, and says that it makes [2, {width}]: let "
                "its out_channels be the width of what it gives."
            )
        try:
            together = stack(readouts)(x, ptr=ptr)
            torch.testing.assert_close(together, torch.cat(alone), rtol=1e-3, atol=1e-3, equal_nan=True)
        except Exception as error:  # whatever it does with tensors of another shape
            raise SettingError(
                f"{name} cannot be trained: models are trained in stacks, where a parameter has one axis more, and "
                f"there it does not give what it gives by itself ({first_line(error)}). Let a learned matrix meet the "
                "nodes through sopool.nn.layers.project(x, weight, ptr) instead of x @ weight."
            ) from error


def _unlike_others(readout: torch.nn.Module) -> torch.nn.Module:
    """As in a bank, but for what is learned, which may begin alike in all models: moved a little, by chance."""
    freeze(readout, every=False)
    for parameter in readout.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    return readout.eval()


def first_line(error: Exception) -> str:
    """What went wrong; PyTorch has where it was in its own code below."""
    return str(error).partition("\n")[0] or type(error).__name__
