"""Parameters that stay as they were drawn."""

import torch


def freeze(module: torch.nn.Module, every: bool) -> None:
    """Make its parameters buffers: there, saved and stacked as before, but out of reach of any optimiser.

    ``every`` one, or those alone that want no gradient.
    """
    for owner in module.modules():
        for name, parameter in list(owner.named_parameters(recurse=False)):
            if every or not parameter.requires_grad:
                delattr(owner, name)
                owner.register_buffer(name, parameter.detach())
