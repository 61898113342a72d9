"""Several models of one kind as one."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

Model = TypeVar("Model", bound=torch.nn.Module)


def stack(models: Sequence[Model]) -> Model:
    """One module that holds the parameters and buffers of all, [M, ...] each."""
    out = copy.deepcopy(models[0])
    for (owner, name), *tensors in zip(_places(out), *(_tensors(model) for model in models), strict=True):
        _put(owner, name, torch.stack(tensors))
    return out


def stack_of(model: Model, tensors: Mapping[str, Tensor]) -> Model:
    """A stack with these parameters and buffers, [M, ...] each by its name, of models like ``model``."""
    out = copy.deepcopy(model)
    for path, tensor in tensors.items():
        owner, _, name = path.rpartition(".")
        _put(out.get_submodule(owner), name, tensor)
    return out


def member_of(stacked: Model, number: int) -> Model:
    """One of the models of a stack, by itself."""
    return stack_of(stacked, {name: tensor[number] for name, tensor in named_tensors(stacked).items()})


def named_tensors(model: torch.nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers by name, as :func:`stack_of` takes those of a stack."""
    return {name: tensor.detach() for name, tensor in (*model.named_parameters(), *model.named_buffers())}


def _put(owner: torch.nn.Module, name: str, tensor: Tensor) -> None:
    if name in owner._parameters:
        owner._parameters[name] = torch.nn.Parameter(tensor)
    else:
        owner._buffers[name] = tensor


def _places(module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str]]:
    """Where each parameter and buffer lives."""
    for owner in module.modules():
        for tensors in (owner._parameters, owner._buffers):
            yield from ((owner, name) for name, tensor in tensors.items() if tensor is not None)


def _tensors(module: torch.nn.Module) -> list[Tensor]:
    return [getattr(owner, name).detach() for owner, name in _places(module)]
