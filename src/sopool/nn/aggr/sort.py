import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.layers import project
from sopool.nn.registry import readout
from sopool.ops.message_passing.select import rank

LEAST = 10
"""The fewest nodes that the convolutions of DGCNN can be applied to."""


@readout(
    "sortpool",
    formula="conv(conv(first k of H sorted by its last column))",
    cost="N log N + k f",
    vector="two 1-D convolutions over k nodes in order",
    default="k: 60 % quantile of sizes, at least 10",
    paper="Zhang et al. 2018, AAAI, doi 10.1609/aaai.v32i1.11782",
)
class SortConvolutionAggregation(SegmentAggregation):
    r"""Sort pooling (SortPool) with its convolutions from the `"An End-to-End Deep Learning Architecture for Graph
    Classification" <https://doi.org/10.1609/aaai.v32i1.11782>`_ paper (DGCNN).

    The nodes are sorted by their last channel, the first k kept, zeros put in place of those that a small graph lacks.
    Then, as in DGCNN: a convolution over each node to 16 channels, ReLU, the larger of every two, a convolution over 5
    of those in a row to 32 channels, ReLU. An empty graph gives zeros.

    .. math:: Z = H_{\mathrm{sort}(H_{:, f})_{1 \ldots k}}, \quad
        \mathrm{relu}(\mathrm{conv}_5(\mathrm{max}_2(\mathrm{relu}(Z W_1 + b_1)))) \in \mathbb{R}^{32 (k / 2 - 4)}

    Nodes that agree in the last channel, as ReLU makes them, are sorted by their sums; PyG's layer leaves them as they
    come. It also asks for an ``index`` in order, which this one does not.

    Args:
        channels: Number of node features :math:`f`.
        k: How many nodes to keep, at least 10; DGCNN takes the size that 60 % of the graphs do not exceed.
    """

    def __init__(self, channels: int, k: int = LEAST) -> None:
        super().__init__(channels)
        if k < LEAST:
            raise ValueError(f"k={k}: the convolutions need at least {LEAST} nodes.")
        self.k = k
        self.weight = torch.nn.Parameter(torch.empty(channels, 16))
        self.bias = torch.nn.Parameter(torch.empty(16))
        self.next_weight = torch.nn.Parameter(torch.empty(5 * 16, 32))
        self.next_bias = torch.nn.Parameter(torch.empty(32))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both convolutions anew, as ``torch.nn.Conv1d`` does."""
        for size, tensors in ((self.channels, (self.weight, self.bias)), (80, (self.next_weight, self.next_bias))):
            for tensor in tensors:
                uniform(size, tensor)

    @property
    def out_channels(self) -> int:
        """32 channels of each place that the second convolution has."""
        return 32 * (self.k // 2 - 4)

    def pool(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Sort, keep k, convolve twice."""
        graphs = ptr.numel() - 1
        first = self._convolve(self._sorted(x, ptr), self.k, self.weight, self.bias)
        pairs = first.view(graphs, self.k, 16)[:, : self.k // 2 * 2].unflatten(1, (-1, 2)).amax(2)
        windows = pairs.unfold(1, 5, 1).transpose(2, 3).flatten(2)  # [G, places, 80]
        second = self._convolve(windows.flatten(0, 1), self.k // 2 - 4, self.next_weight, self.next_bias)
        return second.view(graphs, self.out_channels) * (ptr.diff() > 0).unsqueeze(1)

    def _convolve(self, rows: Tensor, each: int, weight: Tensor, bias: Tensor) -> Tensor:
        """relu(X W + b), with ``each`` rows of every graph and so equally many of every model: [G r, f] -> [G r, h]."""
        out = project(rows, weight, torch.arange(0, rows.shape[0] + 1, each, device=rows.device))
        if bias.dim() == 1:
            return (out + bias).relu()
        return (out.view(bias.shape[0], -1, bias.shape[1]) + bias.unsqueeze(1)).relu().view_as(out)

    def _sorted(self, x: Tensor, ptr: Tensor) -> Tensor:
        """The first k nodes of each graph by their last channel, zeros where there are fewer [G k, f]."""
        order: Tensor = rank(x[:, -1].detach(), ptr, x.detach().sum(1))
        place = torch.arange(self.k, device=x.device)
        there = place < ptr.diff().unsqueeze(1)
        at = (ptr[:-1].unsqueeze(1) + place).flatten()  # past a small graph: any row, which is not used
        rows = F.pad(order, (0, self.k)).index_select(0, at)
        first = F.pad(x, (0, 0, 0, 1)).index_select(0, rows)  # one row more: there may be none
        return first.masked_fill(~there.view(-1, 1), 0)
