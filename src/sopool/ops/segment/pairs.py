"""Second order across nodes: the sum of z_i z_j^T over all pairs of nodes at each distance.

    S_k = Z_g^T D_k Z_g        D_k[i, j] = 1 if node j is k steps from node i,   D_0 = I

D_k Z is one sum over lists of nodes (:mod:`sopool.ops.message_passing.pairs`), and Z_g^T (D_k Z) is one call of the
primitive for all distances together. Nothing needs n x n numbers, and both parts have derivatives of any order.

All pairs in no list, which are farther apart or not connected, are the rest: with the sum s of all rows,

    S_rest = s s^T - sum_k S_k = sum_i z_i u_i^T,        u_i = s - sum_k (D_k Z)_i.

u_i is computed in float64 and is exactly zero where a node has no such pair, which the lengths of the lists tell. The
difference of the two matrices would leave rounding noise there, which a normalization might scale up.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from sopool.ops.message_passing.dense import Dense, normalize_by_degree
from sopool.ops.message_passing.neighbors import Adjacency, Neighbors, aggregate
from sopool.ops.message_passing.pairs import Pairs
from sopool.ops.segment.first_order import segment_sum
from sopool.ops.segment.gram import check_rows, promote, segment_apply, segment_gram
from sopool.ops.segment.segments import Segments, find_segments, owners
from sopool.ops.segment.standard import total
from sopool.ops.segment.torch_backend import widen


def segment_pairs(
    z: Tensor,
    pairs: Pairs,
    ptr: Tensor | None = None,
    *,
    index: Tensor | None = None,
    dim_size: int | None = None,
    order: Tensor | None = None,
    rest: bool = False,
) -> Tensor:
    """Return the sum of ``z_i z_j^T`` over the pairs (i, j) at each distance, for every segment.

    The matrices are symmetric if the graphs are undirected. Sums of half types are computed in float32. Under autocast
    the result is float32.

    Args:
        z: Rows ``[N, R]``.
        pairs: The pairs at distances 1 to K; both nodes of each are in one segment.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``. Default: None.
        index: The segment of each row ``[N]``, in any order; used if ``ptr`` is None. Default: None.
        dim_size: The number of segments G, for use with ``index``. Default: None, ``index.max() + 1``.
        order: Permutation ``[N]`` that sorts the rows by segment, for use with ``ptr``. Default: None, the rows are
            sorted.
        rest: Whether to add the matrix of all pairs that are farther apart or not connected. Default: False.

    Returns:
        The matrices ``[G, C, R, R]`` at distances 0 (each node with itself), 1, ..., K, followed by that of the rest:
        C is K + 1, or K + 2 with the rest. ``out[g, k, a, b]`` is the sum of ``z_i[a] z_j[b]``.

    Examples:
        >>> import torch
        >>> from sopool.ops import find_pairs, segment_pairs
        >>> z = torch.tensor([[1.0], [2.0], [4.0]])
        >>> path = find_pairs(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3, distances=2)
        >>> segment_pairs(z, path, torch.tensor([0, 3])).flatten()  # 1 + 4 + 16, 2 (1 * 2 + 2 * 4), 2 * 1 * 4
        tensor([21., 20.,  8.])
    """
    segments = _check(z, pairs, ptr, index, dim_size, order)
    z = promote(z)
    wide = widen(z)
    return _gram(wide, _pair_rows(wide, pairs, segments, rest), segments, z.dtype)


def segment_walks(
    z: Tensor,
    neighbors: Pairs | Adjacency,
    steps: int,
    ptr: Tensor | None = None,
    *,
    index: Tensor | None = None,
    dim_size: int | None = None,
    order: Tensor | None = None,
) -> Tensor:
    """Return ``Z_g^T P^k Z_g`` for k = 0 to ``steps``, for every segment.

    P is the normalized adjacency matrix, with the entry ``1 / sqrt(a b)`` for an edge from a node with a successors to
    a node with b predecessors. Unlike distances, walks need no lists beyond the edges.

    Pooled graphs may have weights, some of them negative: an entry of P is then the weight of an edge, divided by the
    square roots of the sums of all absolute weights from its first node and to its second. Self-loops and repeated
    edges count there, but are no pairs at distance 1.

    Args:
        z: Rows ``[N, R]``.
        neighbors: The pairs at distance 1, or the neighbors of each node, as pooled graphs have them.
        steps: The largest power K.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``. Default: None.
        index: The segment of each row ``[N]``, in any order; used if ``ptr`` is None. Default: None.
        dim_size: The number of segments G, for use with ``index``. Default: None, ``index.max() + 1``.
        order: Permutation ``[N]`` that sorts the rows by segment, for use with ``ptr``. Default: None, the rows are
            sorted.

    Returns:
        The matrices ``[G, K + 1, R, R]``.

    Examples:
        >>> import torch
        >>> from sopool.ops import find_pairs, segment_walks
        >>> z = torch.tensor([[1.0], [2.0]])
        >>> edge = find_pairs(torch.tensor([[0, 1], [1, 0]]), num_nodes=2, distances=1)
        >>> segment_walks(z, edge, 2, torch.tensor([0, 2])).flatten()
        tensor([5., 4., 5.])
    """
    if isinstance(neighbors, Pairs) and neighbors.distances != 1:
        raise ValueError(
            f"neighbors has pairs at distances up to {neighbors.distances}: walks take those at distance 1 only, as "
            "find_pairs(edge_index, num_nodes, distances=1) returns them."
        )
    segments = _check(z, neighbors, ptr, index, dim_size, order)
    z = promote(z)
    wide = widen(z)
    if not isinstance(neighbors, Pairs):  # a node aggregates its predecessors, so these are rows of the transposed P^k
        return _gram(wide, _walk(wide, neighbors, steps), segments, z.dtype).mT
    leaving, arriving = (_inverse_roots(lists.diff(), wide) for lists in (neighbors.ptr, neighbors.transposed[0]))
    rows = [wide]
    for _ in range(steps):
        rows.append(leaving * neighbors.total(arriving * rows[-1]).squeeze(1))
    return _gram(wide, torch.stack(rows, 1), segments, z.dtype)


def count_pairs(
    pairs: Pairs,
    ptr: Tensor | None = None,
    *,
    index: Tensor | None = None,
    dim_size: int | None = None,
    order: Tensor | None = None,
    rest: bool = False,
) -> Tensor:
    """Return the number of pairs at each distance in every segment, what :func:`segment_pairs` sums over.

    Args:
        pairs: The pairs at distances 1 to K.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``. Default: None.
        index: The segment of each row ``[N]``, in any order; used if ``ptr`` is None. Default: None.
        dim_size: The number of segments G, for use with ``index``. Default: None, ``index.max() + 1``.
        order: Permutation ``[N]`` that sorts the rows by segment, for use with ``ptr``. Default: None, the rows are
            sorted.
        rest: Whether to add the number of all pairs that are farther apart or not connected. Default: False.

    Returns:
        The numbers, int64 ``[G, K + 1]``, or ``[G, K + 2]`` with the rest.

    Examples:
        >>> import torch
        >>> from sopool.ops import count_pairs, find_pairs
        >>> path = find_pairs(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3, distances=1)
        >>> count_pairs(path, torch.tensor([0, 3]), rest=True)
        tensor([[3, 4, 2]])
    """
    segments = find_segments(pairs.num_nodes, pairs.ptr.device, ptr, index, dim_size, order)
    near = total(pairs.counts(), _segment_of(segments, pairs.num_nodes), segments.ptr.numel())[:-1]
    sizes = segments.ptr.diff().unsqueeze(1)
    numbers = [sizes, near]
    if rest:
        numbers.append(sizes * sizes - sizes - near.sum(1, keepdim=True))
    return torch.cat(numbers, 1)


class PairShares(NamedTuple):
    """What pairs of nodes add to a score; the sum of all shares is the score."""

    own: Tensor
    """The share of each node with itself ``[N]``."""
    pairs: Tensor
    """The share of each pair ``[P]``, in the order of ``Pairs.nodes``."""
    rest: Tensor | None
    """The share of each node with all nodes that are in no list of it ``[N]``; None without the rest."""
    nodes: Tensor
    """The share of each node ``[N]``: its own, and one half of each pair that it is in."""


def share_pairs(
    z: Tensor,
    pairs: Pairs,
    theta: Tensor,
    ptr: Tensor | None = None,
    *,
    index: Tensor | None = None,
    order: Tensor | None = None,
) -> PairShares:
    """Return what each pair of nodes and, by halves, each node adds to a linear function of :func:`segment_pairs`.

    The score of a segment is the sum of ``<theta[k], S_k>`` over all distances k, and so the sum of
    ``z_i^T theta[k] z_j`` over all pairs (i, j) at each distance k.

    Args:
        z: Rows ``[N, R]``.
        pairs: The pairs at distances 1 to K.
        theta: One matrix for each distance from 0 to K ``[K + 1, R, R]``, or one more for the rest ``[K + 2, R, R]``.
        ptr: Segment boundaries ``[G + 1]``; segment g has the rows ``ptr[g]:ptr[g + 1]``. Default: None, there is one
            segment.
        index: The segment of each row ``[N]``, in any order; used if ``ptr`` is None. Default: None.
        order: Permutation ``[N]`` that sorts the rows by segment, for use with ``ptr``. Default: None, the rows are
            sorted.

    Examples:
        >>> import torch
        >>> from sopool.ops import find_pairs, segment_pairs, share_pairs
        >>> z = torch.tensor([[1.0], [2.0], [4.0]])
        >>> path = find_pairs(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3, distances=1)
        >>> shares = share_pairs(z, path, theta=torch.tensor([0.0, 1.0]).view(2, 1, 1))
        >>> shares.pairs, shares.nodes
        (tensor([2., 2., 8., 8.]), tensor([ 2., 10.,  8.]))
    """
    if ptr is None and index is None:
        ptr = torch.tensor([0, z.shape[0]], device=z.device)
    segments = _check(z, pairs, ptr, index, None, order)
    with_rest = theta.shape[0] == pairs.distances + 2
    expected = (pairs.distances + 1 + with_rest, z.shape[1], z.shape[1])
    if theta.shape != expected:
        raise ValueError(f"theta has shape {list(theta.shape)}: it must be {list(expected)}, or have one matrix more.")
    left = torch.einsum("nr,crs->ncs", z, theta)
    own = (left[:, 0] * z).sum(1)
    lists = pairs.owners()
    near = left[:, 1 : 1 + pairs.distances].flatten(0, 1).index_select(0, lists)
    shares = (near * z.index_select(0, pairs.nodes)).sum(1)
    ends = torch.cat([lists // pairs.distances, pairs.nodes])
    nodes = own + total(shares.repeat(2) / 2, ends, z.shape[0])
    if not with_rest:
        return PairShares(own, shares, None, nodes)
    forth, back = (_far_rows(z, one.total(z.double()), one, segments) for one in (pairs, _reversed(pairs)))
    rest = (left[:, -1] * forth).sum(1)
    return PairShares(own, shares, rest, nodes + rest / 2 + (z @ theta[-1].mT * back).sum(1) / 2)


def _pair_rows(z: Tensor, pairs: Pairs, segments: Segments, rest: bool) -> Tensor:
    """Return ``D_k Z`` for every distance k, and the rows u_i of the rest if it is wanted, ``[N, C, R]``."""
    near = pairs.total(z.double() if rest else z)
    rows = [z.unsqueeze(1), near.to(z.dtype)]
    if rest:
        rows.append(_far_rows(z, near, pairs, segments).unsqueeze(1))
    return torch.cat(rows, 1)


def _far_rows(z: Tensor, near: Tensor, pairs: Pairs, segments: Segments) -> Tensor:
    """Return the sum of all rows that are in no list of each node, given those of the lists in float64 ``[N, K, R]``.

    The node itself does not count either.
    """
    wide = z.double()
    sums = segment_sum(wide, segments.ptr, segments.order).unsqueeze(2)
    everything = segment_apply(wide.new_ones(z.shape[0], 1), sums, segments.ptr, order=segments.order)
    sizes = F.pad(segments.ptr.diff(), (0, 1)).index_select(0, _segment_of(segments, z.shape[0]))
    none_left = sizes == 1 + pairs.counts().sum(1)
    return (everything - wide - near.sum(1)).masked_fill(none_left.unsqueeze(1), 0).to(z.dtype)


def _gram(z: Tensor, rows: Tensor, segments: Segments, dtype: torch.dtype) -> Tensor:
    """Return ``Z_g^T Y_g`` for rows Y of several distances: ``[N, C, R]`` to ``[G, C, R, R]``."""
    flat = segment_gram(z, rows.flatten(1), segments.ptr, order=segments.order)
    matrices: Tensor = flat.unflatten(2, rows.shape[1:])
    return matrices.transpose(1, 2).to(dtype)


def _reversed(pairs: Pairs) -> Pairs:
    """Return the pairs (j, i) for all pairs (i, j), as if all were at distance 1."""
    ptr, lists = pairs.transposed
    return Pairs(ptr, lists // pairs.distances, (pairs.ptr[:: pairs.distances].contiguous(), pairs.nodes), 1)


def _segment_of(segments: Segments, num_rows: int) -> Tensor:
    """Return the segment of each row ``[N]``, G for spare rows."""
    return segments.unsort(owners(segments.ptr, num_rows))


def _walk(z: Tensor, neighbors: Adjacency, steps: int) -> Tensor:
    """Return the rows of ``Q^k Z`` for k = 0 to ``steps``, where Q is the transposed P, ``[N, steps + 1, R]``."""
    neighbors, arriving, leaving = _normalized(neighbors, like=z)
    rows = [z]
    for _ in range(steps):
        sent = leaving * rows[-1]
        rows.append(arriving * (aggregate(sent, neighbors, "sum") - sent))
    return torch.stack(rows, 1)


def _normalized(neighbors: Adjacency, like: Tensor) -> tuple[Adjacency, Tensor, Tensor]:
    """Return neighbors, and the factors of what each node receives and sends with which they are normalized."""
    if isinstance(neighbors, Dense):
        one = like.new_ones(())
        return Dense(normalize_by_degree(neighbors.weights.to(like.dtype))), one, one
    if isinstance(neighbors, Neighbors):  # every node is in its own list
        lengths = [lists.diff() - 1 for lists in (neighbors.ptr, neighbors.transposed[0])]
    else:
        sizes = torch.ones_like(neighbors.edge_index[0]) if neighbors.weight is None else neighbors.weight.abs()
        lengths = [total(sizes, neighbors.edge_index[end], like.shape[0]) for end in (1, 0)]
    arriving, leaving = (_inverse_roots(one, like) for one in lengths)
    return neighbors, arriving, leaving


def _inverse_roots(numbers: Tensor, like: Tensor) -> Tensor:
    """Return one by the square root of each number, or 1 where it is not positive, ``[N, 1]``."""
    numbers = numbers.to(like.dtype)
    return torch.where(numbers > 0, numbers, 1.0).rsqrt().unsqueeze(1)


def _check(
    z: Tensor,
    pairs: Pairs | Adjacency,
    ptr: Tensor | None,
    index: Tensor | None,
    dim_size: int | None,
    order: Tensor | None,
) -> Segments:
    """Return the segments; raise unless the rows are those of the pairs."""
    check_rows("z", z)
    if isinstance(pairs, Pairs) and z.shape[0] != pairs.num_nodes:
        raise ValueError(
            f"z has {z.shape[0]} rows, but the pairs are of {pairs.num_nodes} nodes: they must have the same number. "
            "Do they come from the same batch?"
        )
    return find_segments(z.shape[0], z.device, ptr, index, dim_size, order)
