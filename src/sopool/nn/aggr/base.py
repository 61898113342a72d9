"""What every readout here shares: PyG's ``Aggregation`` contract outside, rows and ``ptr`` inside."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from sopool.nn.aggr.terms import Terms
from sopool.ops.segment.segments import Segments, find_segments, is_traced

PATH = ("__call__", "forward", "_pool", "pool")
"""The methods that rows pass through."""


class SegmentAggregation(Aggregation):
    """A readout written as one method, ``pool(x, ptr)``: [N, channels] -> [G, out_channels].

    The rows come in segment order, ``ptr`` [G + 1] checked; this class does the rest of the contract: an index in any
    order, further dimensions, ``dim``. ``channels`` is the width of the input, None if the readout takes any.

    Bringing rows into order copies them. A readout whose operators read them where they lie is spared that if it asks
    for the order: ``pool(x, ptr, order=None)``, with ``order`` [N] None where the rows lie as they should.
    """

    _takes_order = False

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls._takes_order = "order" in inspect.signature(cls.pool).parameters

    def __init__(self, channels: int | None = None) -> None:
        super().__init__()
        if channels is not None and channels < 1:
            raise ValueError(f"channels={channels}: it must be the number of node features, at least 1.")
        self.channels = channels

    def pool(self, x: Tensor, ptr: Tensor) -> Tensor:
        """The formula of the readout: rows [N, channels], ``ptr`` [G + 1] -> [G, out_channels]."""
        raise NotImplementedError(f"{type(self).__name__} must define pool(x, ptr).")

    def terms(self, x: Tensor) -> Terms | None:
        """Take the readout of one graph's nodes [n, f] apart into what each adds; None if it is no sum over nodes.

        Explanations are exact where they have it. Ask with :func:`terms_of`, which leaves out a class that inherits
        this method and has another formula.
        """
        return None

    @property
    def out_channels(self) -> int | None:
        """The width of the output, None where it depends on the input."""
        return self.channels

    def reset_parameters(self) -> None:
        """Draw all learnable parameters anew."""

    def __call__(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> Tensor:
        """As PyG has it, but for a trace or a compiler: there an operator counts the graphs, anew in each batch."""
        given = {"index": index, "ptr": ptr, "dim_size": dim_size, "dim": dim}
        if is_traced() and index is not None and dim_size is None:
            traced: Tensor = torch.nn.Module.__call__(self, x, **given)
            return traced
        out: Tensor = super().__call__(x, **given)
        return out

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> Tensor:
        """Pool ``x`` [*, N, channels] over dimension ``dim`` (N): [*, G, out_channels]."""
        if x.dim() < 2:
            raise ValueError(
                f"x has shape {list(x.shape)}: it needs rows and channels. For one channel: x.unsqueeze(-1)."
            )
        x = x.movedim(dim, -2)
        if self.channels is not None and x.shape[-1] != self.channels:
            raise ValueError(f"x has {x.shape[-1]} channels (shape {list(x.shape)}), {self!r} expects {self.channels}.")
        if not x.is_floating_point():
            raise TypeError(f"x has dtype {x.dtype}: pass floating-point features, for example x.float().")
        segments = find_segments(x.shape[-2], x.device, ptr, index, dim_size)
        if x.dim() == 2:
            out = self._pool(x, segments)
        else:
            out = self._pool(x.flatten(0, -2), segments.repeat(x.shape[:-2].numel(), x.shape[-2]))
            out = out.view(*x.shape[:-2], segments.ptr.numel() - 1, out.shape[-1])
        return out.movedim(-2, dim).contiguous()  # layers with heads go on with a view of it

    def _pool(self, x: Tensor, segments: Segments) -> Tensor:
        pool: Callable[..., Tensor] = self.pool
        if self._takes_order:
            return pool(x, segments.ptr, order=segments.order)
        return pool(segments.sort(x), segments.ptr)

    def __repr__(self) -> str:
        return repr_of(self)


def inherits(layer: object, kind: type, *names: str) -> bool:
    """Whether methods and properties of a layer, perhaps of a class of a user's own, are still those of ``kind``."""
    return all(getattr(type(layer), name, None) is getattr(kind, name, None) for name in names)


def terms_of(readout: torch.nn.Module, x: Tensor) -> Terms | None:
    """Take a readout of one graph's nodes [n, f] apart; None where it is no sum over nodes, as far as is known.

    Nothing is known of a class of a user's own that derives from one here and has another formula.
    """
    if not isinstance(readout, SegmentAggregation):
        return None
    kind = next(kind for kind in type(readout).__mro__ if "terms" in vars(kind))
    return readout.terms(x) if inherits(readout, kind, *PATH) else None


def repr_of(layer: torch.nn.Module) -> str:
    """The channels of a readout or pooling, then what differs from the defaults.

    One of a user's own may be made with anything, tensors included, and need not keep it: then it is not shown.
    """
    shown = [] if layer.channels is None else [str(layer.channels)]
    for name, parameter in inspect.signature(type(layer)).parameters.items():
        value = getattr(layer, name, parameter.default)
        kept = not inspect.ismethod(value)  # else an option that has the name of a method
        if name != "channels" and kept and repr(value) != repr(parameter.default):
            shown.append(f"{name}={value!r}")
    return f"{type(layer).__name__}({', '.join(shown)})"
