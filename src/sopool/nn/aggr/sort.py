import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.inits import uniform

from sopool.nn.aggr.base import SegmentAggregation
from sopool.nn.layers import project
from sopool.nn.registry import readout
from sopool.ops.message_passing.select import rank

LEAST = 10
"""The smallest number of nodes to which the convolutions of DGCNN can be applied."""


@readout(
    "sortpool",
    formula="conv(conv(first k of H sorted by its last column))",
    cost="N log N + k f",
    vector="two 1-D convolutions over k sorted nodes",
    default="k: 60 % quantile of sizes, at least 10",
    paper="Zhang et al. 2018, AAAI, doi 10.1609/aaai.v32i1.11782",
)
class SortConvolutionAggregation(SegmentAggregation):
    r"""Sort pooling (SortPool) followed by the two convolutions of DGCNN.

    The nodes are sorted by their last channel, the first K are kept, and graphs with fewer nodes are padded with zeros.
    Then follow a convolution over single nodes to 16 channels, ReLU, max pooling over pairs, a convolution of width 5
    to 32 channels, and ReLU. An empty graph gives zeros.

    .. math:: Z = H_{\mathrm{sort}(H_{:, F})_{1 \ldots K}}, \quad
        \mathrm{relu}(\mathrm{conv}_5(\mathrm{max}_2(\mathrm{relu}(Z W_1 + b_1)))) \in \mathbb{R}^{32 (K / 2 - 4)}

    Nodes with equal last channels, which are common after ReLU, are sorted by the sums of their features; PyG's layer
    keeps their input order. Unlike PyG's layer, this one accepts an unsorted ``index``. From the paper `"An End-to-End
    Deep Learning Architecture for Graph Classification" <https://doi.org/10.1609/aaai.v32i1.11782>`_ (DGCNN).

    Args:
        channels: Number of node features ``F``.
        k: Number of nodes ``K`` to keep, at least 10. DGCNN chooses the size that 60 % of the graphs do not exceed.
            Default: ``10``.

    Shapes:
        - **input:** node features ``[*, N, F]``, with ``index`` ``[N]`` or ``ptr`` ``[G + 1]``
        - **output:** graph embeddings ``[*, G, 32 * (K // 2 - 4)]``

    Examples:
        >>> import torch
        >>> x = torch.randn(6, 8)  # 6 nodes with 8 features
        >>> batch = torch.tensor([0, 0, 0, 1, 1, 1])
        >>> SortConvolutionAggregation(8, k=12)(x, batch).shape
        torch.Size([2, 64])
    """

    def __init__(self, channels: int, k: int = LEAST) -> None:
        super().__init__(channels)
        if k < LEAST:
            raise ValueError(f"k={k}: it must be at least {LEAST}, which the two convolutions need.")
        self.k = k
        self.weight = torch.nn.Parameter(torch.empty(channels, 16))
        self.bias = torch.nn.Parameter(torch.empty(16))
        self.next_weight = torch.nn.Parameter(torch.empty(5 * 16, 32))
        self.next_bias = torch.nn.Parameter(torch.empty(32))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize both convolutions as ``torch.nn.Conv1d`` does."""
        for size, tensors in ((self.channels, (self.weight, self.bias)), (80, (self.next_weight, self.next_bias))):
            for tensor in tensors:
                uniform(size, tensor)

    @property
    def out_channels(self) -> int:
        """The width of the output: 32 channels for each position of the second convolution."""
        return 32 * (self.k // 2 - 4)

    def pool(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Sort the nodes, keep the first k, and apply both convolutions."""
        graphs = ptr.numel() - 1
        first = self._convolve(self._sorted(x, ptr), self.k, self.weight, self.bias)
        pairs = first.view(graphs, self.k, 16)[:, : self.k // 2 * 2].unflatten(1, (-1, 2)).amax(2)
        windows = pairs.unfold(1, 5, 1).transpose(2, 3).flatten(2)  # [G, K // 2 - 4, 80]
        second = self._convolve(windows.flatten(0, 1), self.k // 2 - 4, self.next_weight, self.next_bias)
        return second.view(graphs, self.out_channels) * (ptr.diff() > 0).unsqueeze(1)

    def _convolve(self, rows: Tensor, each: int, weight: Tensor, bias: Tensor) -> Tensor:
        """Compute relu(X W + b) for ``each`` rows of every graph, ``[G r, F]`` -> ``[G r, H]``."""
        out = project(rows, weight, torch.arange(0, rows.shape[0] + 1, each, device=rows.device))
        if bias.dim() == 1:
            return (out + bias).relu()
        return (out.view(bias.shape[0], -1, bias.shape[1]) + bias.unsqueeze(1)).relu().view_as(out)

    def _sorted(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Return the first k nodes of each graph by their last channel, padded with zeros, ``[G k, F]``."""
        order: Tensor = rank(x[:, -1].detach(), ptr, x.detach().sum(1))
        place = torch.arange(self.k, device=x.device)
        there = place < ptr.diff().unsqueeze(1)
        at = (ptr[:-1].unsqueeze(1) + place).flatten()  # positions past the end of a graph are masked below
        rows = F.pad(order, (0, self.k)).index_select(0, at)
        first = F.pad(x, (0, 0, 0, 1)).index_select(0, rows)  # an additional row, in case there are no nodes
        return first.masked_fill(~there.view(-1, 1), 0)
