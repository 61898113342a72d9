"""Stacks: several models with the same architecture as one module."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

Model = TypeVar("Model", bound=torch.nn.Module)


def stack(models: Sequence[Model]) -> Model:
    """Return one module with the parameters and buffers of all models, ``[M, ...]`` each.

    Args:
        models: Models with the same architecture.

    Examples:
        >>> import torch
        >>> stack([torch.nn.Linear(3, 2) for _ in range(4)]).weight.shape
        torch.Size([4, 2, 3])
    """
    out = copy.deepcopy(models[0])
    for (owner, name), *tensors in zip(_places(out), *(_tensors(model) for model in models), strict=True):
        _put(owner, name, torch.stack(tensors))
    return out


def stack_of(model: Model, tensors: Mapping[str, Tensor]) -> Model:
    """Return a stack with the given parameters and buffers.

    Args:
        model: A model with the same architecture.
        tensors: Parameters and buffers by name, ``[M, ...]`` each.

    Examples:
        >>> import torch
        >>> model = torch.nn.Linear(3, 2)
        >>> stack_of(model, {"weight": torch.zeros(4, 2, 3), "bias": torch.zeros(4, 2)}).bias.shape
        torch.Size([4, 2])
    """
    out = copy.deepcopy(model)
    for path, tensor in tensors.items():
        owner, _, name = path.rpartition(".")
        _put(out.get_submodule(owner), name, tensor)
    return out


def member_of(stacked: Model, number: int) -> Model:
    """Return one model of a stack.

    Args:
        stacked: The stack.
        number: The position of the model in the stack.

    Examples:
        >>> import torch
        >>> models = [torch.nn.Linear(3, 2) for _ in range(4)]
        >>> torch.equal(member_of(stack(models), 1).weight, models[1].weight)
        True
    """
    return stack_of(stacked, {name: tensor[number] for name, tensor in named_tensors(stacked).items()})


def named_tensors(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of a model by name, without gradients.

    Examples:
        >>> import torch
        >>> list(named_tensors(torch.nn.Linear(3, 2)))
        ['weight', 'bias']
    """
    return {name: tensor.detach() for name, tensor in (*model.named_parameters(), *model.named_buffers())}


def _put(owner: torch.nn.Module, name: str, tensor: Tensor) -> None:
    if name in owner._parameters:
        owner._parameters[name] = torch.nn.Parameter(tensor)
    else:
        owner._buffers[name] = tensor


def _places(module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str]]:
    """Yield the module and the name of each parameter and buffer."""
    for owner in module.modules():
        for tensors in (owner._parameters, owner._buffers):
            yield from ((owner, name) for name, tensor in tensors.items() if tensor is not None)


def _tensors(module: torch.nn.Module) -> list[Tensor]:
    return [getattr(owner, name).detach() for owner, name in _places(module)]
