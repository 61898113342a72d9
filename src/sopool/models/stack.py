"""Several models of one kind as one."""

import copy
from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

Model = TypeVar("Model", bound=torch.nn.Module)


def stack(models: Sequence[Model]) -> Model:
    """One module that holds the parameters and buffers of all, [M, ...] each."""
    out = copy.deepcopy(models[0])
    for (owner, name), *tensors in zip(_places(out), *(_tensors(model) for model in models), strict=True):
        stacked = torch.stack(tensors)
        if name in owner._parameters:
            owner._parameters[name] = torch.nn.Parameter(stacked)
        else:
            owner._buffers[name] = stacked
    return out


def _places(module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str]]:
    """Where each parameter and buffer lives."""
    for owner in module.modules():
        for tensors in (owner._parameters, owner._buffers):
            yield from ((owner, name) for name, tensor in tensors.items() if tensor is not None)


def _tensors(module: torch.nn.Module) -> list[Tensor]:
    return [getattr(owner, name).detach() for owner, name in _places(module)]
