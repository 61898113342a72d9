"""A check of whether a readout, possibly a user's, works in a stack of models."""

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
"""The number of parameters or outputs above which a readout is not checked, to save memory."""


def check_stackable(name: str, channels: int, options: Mapping[str, Any]) -> None:
    """Raise a ``SettingError`` unless the readout has the width it declares and works in a stack as it does alone."""
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
        except Exception as error:  # a user's code may raise anything
            raise SettingError(
                f"{name} cannot be trained: it does not pool rows [10, {channels}] with ptr ({first_line(error)})."
            ) from error
        width = pooled_width(readouts[0], channels)
        found = list(alone[0].shape)
        if found != [2, width]:
            raise SettingError(
                f"{name} returns shape {found} for 2 graphs with {channels} features, but its out_channels says "
                f"[2, {width}]. Set out_channels to the width of the output."
            )
        try:
            together = stack(readouts)(x, ptr=ptr)
            torch.testing.assert_close(together, torch.cat(alone), rtol=1e-3, atol=1e-3, equal_nan=True)
        except Exception as error:  # a user's code may raise anything
            raise SettingError(
                f"{name} cannot be trained: models are trained in stacks, where parameters have an additional first "
                f"dimension, and there its result differs from that of a single model ({first_line(error)}). Multiply "
                "learned matrices with sopool.nn.layers.project(x, weight, ptr) instead of x @ weight."
            ) from error


def _unlike_others(readout: torch.nn.Module) -> torch.nn.Module:
    """Perturb the parameters randomly, since they may be initialized equally in all models."""
    freeze(readout, every=False)
    for parameter in readout.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    return readout.eval()


def first_line(error: Exception) -> str:
    """Return the first line of an error message."""
    return str(error).partition("\n")[0] or type(error).__name__
