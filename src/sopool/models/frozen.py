"""Parameters that stay as they were drawn."""

import torch


def freeze(module: torch.nn.Module) -> None:
    """Make its parameters buffers: there, saved and stacked as before, but out of reach of any optimiser."""
    for owner in module.modules():
        for name, parameter in list(owner.named_parameters(recurse=False)):
            delattr(owner, name)
            owner.register_buffer(name, parameter.detach())
