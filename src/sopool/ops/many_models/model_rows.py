"""The assignment of the rows of a batch to models."""

from functools import cached_property

import torch
from torch import Tensor

EPS = 1e-5
MOMENTUM = 0.1


class Rows:
    """The rows of each model, ``ptr[m]:ptr[m + 1]``. Their numbers are copied to the host only if they are needed."""

    def __init__(self, ptr: Tensor) -> None:
        self.ptr = ptr.contiguous()
        self._by_type: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}

    def __len__(self) -> int:
        return self.ptr.numel() - 1

    @cached_property
    def sizes(self) -> list[int]:
        """Return the number of rows of each model on the host, which on CUDA waits for the device."""
        sizes: list[int] = self.ptr.diff().tolist()
        return sizes

    def share(self, like: Tensor) -> Tensor:
        """Return 1 / the number of rows of each model, 1 for a model without rows, ``[M, 1]``."""
        return self._numbers(like.dtype)[0]

    def update(self, running: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor) -> None:
        """Update running statistics like ``torch.nn.BatchNorm1d``; those of a model without rows do not change."""
        _, unbias, momentum = self._numbers(mean.dtype)
        running[0].lerp_(mean, momentum)
        running[1].lerp_(variance * unbias, momentum)

    def _numbers(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Return 1 / n, n / (n - 1) and the momentum, ``[M, 1]`` each; they are cached, since all layers share them."""
        if dtype not in self._by_type:
            counts = self.ptr.diff().unsqueeze(1).to(dtype)
            several = counts.clamp(min=1)
            unbias = several / (several - 1).clamp(min=1)
            self._by_type[dtype] = (1 / several, unbias, MOMENTUM * counts.clamp(max=1))
        return self._by_type[dtype]

    @cached_property
    def places(self) -> Tensor:
        """Return the position of each row in a flattened block ``[M, most, F]``, ``[N]``."""
        model = torch.arange(len(self), device=self.ptr.device)
        first = max(self.sizes) * model - self.ptr[:-1]
        first = first.repeat_interleave(self.ptr.diff(), output_size=sum(self.sizes))
        return first + torch.arange(sum(self.sizes), device=self.ptr.device)

    @cached_property
    def filled(self) -> Tensor:
        """Return which positions of a block hold a row, ``[M, most, 1]``, bool."""
        places = torch.arange(max(self.sizes), device=self.ptr.device)
        return (places < self.ptr.diff().unsqueeze(1)).unsqueeze(2)

    def block(self, x: Tensor) -> Tensor:
        """Copy rows ``[N, F]`` to a block ``[M, most, F]``, zero where there is no row."""
        block = x.new_zeros(len(self) * max(self.sizes), x.shape[1])
        return block.index_copy(0, self.places, x).view(len(self), -1, x.shape[1])

    def unblock(self, block: Tensor) -> Tensor:
        """Return the rows ``[N, F]`` of a block ``[M, most, F]``."""
        return block.flatten(0, 1).index_select(0, self.places)
