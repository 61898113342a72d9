"""The base class of readouts, which implements PyG's ``Aggregation`` interface."""

import inspect
from collections.abc import Callable
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from sopool.nn.aggr.terms import Terms
from sopool.ops.message_passing.structure import GraphStructure
from sopool.ops.segment.segments import Segments, find_segments, is_traced

PATH = ("__call__", "forward", "_pool", "pool", "pool_by_index", "read", "matrices")
"""The methods that define the result of a readout."""


class SegmentAggregation(Aggregation):
    """Base class of readouts that are defined by one method, ``pool(x, ptr)``.

    ``pool`` receives node features ``[N, F]`` sorted by graph and the checked ``ptr`` ``[G + 1]``, and returns ``[G,
    out_channels]``. This class implements the rest of PyG's ``Aggregation`` interface: an unsorted ``index``, further
    dimensions and ``dim``.

    Sorting the rows copies them. To avoid that, a readout whose operators accept unsorted rows may define ``pool(x,
    ptr, order=None)``. It then receives the rows as they are, and ``order`` ``[N]`` sorts them by graph (``None`` if
    they are sorted).

    Args:
        channels: Number of node features ``F``. If ``None``, any width is accepted. Default: ``None``.

    Examples:
        >>> import torch
        >>> from sopool.ops import segment_sum
        >>> class SquareAggregation(SegmentAggregation):
        ...     def pool(self, x, ptr):
        ...         return segment_sum(x.square(), ptr)
        >>> SquareAggregation()(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([0, 0, 1]))
        tensor([[5.],
                [9.]])
    """

    _takes_order = False

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls._takes_order = "order" in inspect.signature(cls.pool).parameters
        nearest = next(kind for kind in cls.__mro__ if vars(kind).keys() & {"pool", "pool_by_index"})
        if "pool_by_index" not in vars(nearest):  # one that is inherited from further up computes another formula
            cls.pool_by_index = SegmentAggregation.pool_by_index  # type: ignore[method-assign]

    def __init__(self, channels: int | None = None) -> None:
        super().__init__()
        if channels is not None and (not isinstance(channels, Integral) or channels < 1):
            raise ValueError(f"channels={channels!r}: it must be the number of node features, an integer from 1.")
        self.channels: int | None = channels

    def pool(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Compute the readout of sorted rows: ``[N, F]`` and ``ptr`` ``[G + 1]`` -> ``[G, out_channels]``."""
        raise NotImplementedError(f"{type(self).__name__} must define pool(x, ptr).")

    def pool_by_index(self, x: Tensor, index: Tensor, dim_size: int | None) -> Tensor | None:
        """Compute the readout of rows ``[N, F]`` that belong to the graphs ``index`` ``[N]``, in any order.

        A readout may define this for batches on which it is faster than :meth:`pool`. It must check ``index`` itself.
        The result ``None`` stands for all other batches.
        """
        return None

    def terms(self, x: Tensor) -> Terms | None:
        """Return the terms that the nodes ``[N, F]`` of one graph add to the result.

        Explanations are exact with terms. The result is ``None`` if the readout is not a sum over nodes. Call
        :func:`terms_of` instead, which ignores terms that a subclass with another formula inherits.
        """
        return None

    @property
    def out_channels(self) -> int | None:
        """The width of the output; ``None`` if it depends on the input."""
        return self.channels

    def reset_parameters(self) -> None:
        """Reinitialize all learnable parameters."""

    def __call__(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> Tensor:
        """Call :meth:`forward`, by PyG's class only where that changes or checks the arguments.

        While tracing without ``dim_size``, the graphs of each batch are counted by the program.
        """
        given = {"index": index, "ptr": ptr, "dim_size": dim_size, "dim": dim}
        traced = index is not None and dim_size is None and is_traced()
        if traced and index is not None and ptr is None and torch.compiler.is_dynamo_compiling():
            # Without fullgraph=True this breaks the graph, as in PyG's class; further down more frames would break.
            graphs = int(index.max()) + 1 if index.numel() else 0
            torch._check(graphs >= 0)
            given["dim_size"] = graphs
        usual = x.dim() == 2 and dim in (-2, 0) and (dim_size is None if index is None else ptr is None)
        if traced or (usual and (index is not None or ptr is not None)):
            direct: Tensor = torch.nn.Module.__call__(self, x, **given)
            return direct
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
        """Pool ``x`` ``[*, N, F]`` over the dimension ``dim``, which gives ``[*, G, out_channels]``."""
        if x.dim() < 2:
            raise ValueError(
                f"x has shape {list(x.shape)}: it needs at least two dimensions, rows and channels. "
                "For a single channel, pass x.unsqueeze(-1)."
            )
        in_place = dim in (-2, x.dim() - 2)
        x = x if in_place else x.movedim(dim, -2)
        if self.channels is not None and x.shape[-1] != self.channels:
            raise ValueError(f"x has {x.shape[-1]} channels (shape {list(x.shape)}), {self!r} expects {self.channels}.")
        if not x.is_floating_point():
            raise TypeError(f"x has dtype {x.dtype}: pass floating-point features, for example x.float().")
        if index is not None and ptr is None and x.dim() == 2:
            pooled = self.pool_by_index(x, index, dim_size)
            if pooled is not None:
                return pooled if in_place else pooled.movedim(-2, dim).contiguous()
        segments = find_segments(x.shape[-2], x.device, ptr, index, dim_size)
        if x.dim() == 2:
            out = self._pool(x, segments)
        else:
            out = self._pool(x.flatten(0, -2), segments.repeat(x.shape[:-2].numel(), x.shape[-2]))
            out = out.view(*x.shape[:-2], segments.ptr.numel() - 1, out.shape[-1])
        out = out if in_place else out.movedim(-2, dim)
        return out.contiguous()  # PyG's layers with several heads call view() on it

    def _pool(self, x: Tensor, segments: Segments) -> Tensor:
        pool: Callable[..., Tensor] = self.pool
        if self._takes_order:
            return pool(x, segments.ptr, order=segments.order)
        return pool(segments.sort(x), segments.ptr)

    def __repr__(self) -> str:
        return repr_of(self)


class GraphReadout(torch.nn.Module):
    """Base class of readouts of flat models that need the edges, not only the nodes."""

    capturable = False
    """Whether all shapes are determined by input shapes, so that a step can be captured into a CUDA graph."""

    def read(self, x: Tensor, graphs: GraphStructure) -> tuple[Tensor, Tensor | None]:
        """Return graph embeddings ``[G, F]`` and the additional loss of each graph ``[G]``, or ``None``."""
        raise NotImplementedError(f"{type(self).__name__} must define read(x, graphs).")

    def terms(self, x: Tensor, graphs: GraphStructure | None) -> Terms | None:
        """Return the terms of one graph ``[N, F]``, or ``None`` if the readout is no sum over nodes or pairs."""
        return None


def inherits(layer: object, kind: type, *names: str) -> bool:
    """Return whether the class of ``layer`` has the methods and properties ``names`` unchanged from ``kind``."""
    return all(getattr(type(layer), name, None) is getattr(kind, name, None) for name in names)


def terms_of(readout: torch.nn.Module, x: Tensor, graphs: GraphStructure | None = None) -> Terms | None:
    """Return the terms of one graph with the nodes ``[N, F]``, or ``None`` if there are none.

    A user's class that derives from a readout of this package but changes its formula has no known terms.
    """
    if not isinstance(readout, (SegmentAggregation, GraphReadout)):
        return None
    kind = next(kind for kind in type(readout).__mro__ if "terms" in vars(kind))
    if not inherits(readout, kind, *PATH):
        return None
    return readout.terms(x) if isinstance(readout, SegmentAggregation) else readout.terms(x, graphs)


def repr_of(layer: torch.nn.Module) -> str:
    """Return the representation of a layer: its channels and the options that differ from the defaults.

    Options that a user's class does not store as attributes are left out.
    """
    shown = [] if layer.channels is None else [str(layer.channels)]
    for name, parameter in inspect.signature(type(layer)).parameters.items():
        value = getattr(layer, name, parameter.default)
        kept = not inspect.ismethod(value)  # an option may have the name of a method
        if name != "channels" and kept and repr(value) != repr(parameter.default):
            shown.append(f"{name}={value!r}")
    return f"{type(layer).__name__}({', '.join(shown)})"
