"""Which rows of a batch belong to which model."""

from functools import cached_property

import torch
from torch import Tensor

EPS = 1e-5
MOMENTUM = 0.1


class Rows:
    """Where the rows of each model lie: ``ptr[m]:ptr[m + 1]``. How many those are is looked up only if asked for."""

    def __init__(self, ptr: Tensor) -> None:
        self.ptr = ptr.contiguous()
        self._by_type: dict[torch.dtype, tuple[Tensor, Tensor, Tensor]] = {}

    def __len__(self) -> int:
        return self.ptr.numel() - 1

    @cached_property
    def sizes(self) -> list[int]:
        """How many rows each model has, on the host: on CUDA this waits for the device."""
        sizes: list[int] = self.ptr.diff().tolist()
        return sizes

    def share(self, like: Tensor) -> Tensor:
        """1 / the number of rows, 1 where there are none [M, 1]."""
        return self._numbers(like.dtype)[0]

    def update(self, running: tuple[Tensor, Tensor], mean: Tensor, variance: Tensor) -> None:
        """Move running statistics on as ``torch.nn.BatchNorm1d`` does; a model without rows keeps its own."""
        _, unbias, momentum = self._numbers(mean.dtype)
        running[0].lerp_(mean, momentum)
        running[1].lerp_(variance * unbias, momentum)

    def _numbers(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """1 / n, n / (n - 1) and the momentum [M, 1] each: the same for all layers, so made once."""
        if dtype not in self._by_type:
            counts = self.ptr.diff().unsqueeze(1).to(dtype)
            several = counts.clamp(min=1)
            unbias = several / (several - 1).clamp(min=1)
            self._by_type[dtype] = (1 / several, unbias, MOMENTUM * counts.clamp(max=1))
        return self._by_type[dtype]

    @cached_property
    def places(self) -> Tensor:
        """Where each row goes in a block [M, most, f], counted through models and rows [N]."""
        model = torch.arange(len(self), device=self.ptr.device)
        first = max(self.sizes) * model - self.ptr[:-1]
        first = first.repeat_interleave(self.ptr.diff(), output_size=sum(self.sizes))
        return first + torch.arange(sum(self.sizes), device=self.ptr.device)

    @cached_property
    def filled(self) -> Tensor:
        """Which places of the block hold a row [M, most, 1], bool."""
        places = torch.arange(max(self.sizes), device=self.ptr.device)
        return (places < self.ptr.diff().unsqueeze(1)).unsqueeze(2)

    def block(self, x: Tensor) -> Tensor:
        """The rows in a block, zeros where there are none: [N, f] -> [M, most, f]."""
        block = x.new_zeros(len(self) * max(self.sizes), x.shape[1])
        return block.index_copy(0, self.places, x).view(len(self), -1, x.shape[1])

    def unblock(self, block: Tensor) -> Tensor:
        """The rows of a block: [M, most, f] -> [N, f]."""
        return block.flatten(0, 1).index_select(0, self.places)
