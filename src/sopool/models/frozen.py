"""Parameters that keep their initial values."""

import torch


def freeze(module: torch.nn.Module, every: bool) -> None:
    """Turn parameters into buffers, which are saved and stacked as before but not trained.

    With ``every`` all parameters are frozen, otherwise only those that require no gradient.
    """
    for owner in module.modules():
        for name, parameter in list(owner.named_parameters(recurse=False)):
            if every or not parameter.requires_grad:
                delattr(owner, name)
                owner.register_buffer(name, parameter.detach())
