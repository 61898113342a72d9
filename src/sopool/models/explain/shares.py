"""The contributions of nodes and pairs of features to the scores of a graph, and the pooled graph.

    score_c = sum_i share_ic + sum_d attribute_dc + bias_c

Here i are the nodes, and d the attributes of the graph, if the model uses them; their shares are gradient x input,
where the input is the standardized attribute, so an attribute at its mean has the share 0. The sum is exact for a flat
model whose readout is a sum over nodes (:mod:`sopool.nn.aggr.terms`) followed by a linear classifier, with or without
batch normalization. If each graph is normalized nonlinearly, or if there is a hidden layer, shares are gradient x input
for the pooled terms, <d score / d S, term of node i>. For all other models they are gradient x input for the node
vectors. Message passing is not explained: the vector of a node has already aggregated its neighbors, and its share is
attributed to the node itself.

With ``sopool-pairs``, a node's share has one half of the share of each pair that it is in, and the shares of the pairs
are known too.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sopool.models.base import Classifier
from sopool.models.flat import FlatClassifier, read
from sopool.models.hierarchical import HierarchicalClassifier
from sopool.nn.aggr.base import terms_of
from sopool.nn.aggr.multi_head import MultiHeadSecondOrderAggregation
from sopool.nn.aggr.terms import PairProducts, Products, Sums, Terms
from sopool.nn.pool.multi_head import MultiHeadSecondOrderPooling
from sopool.ops._columns import join
from sopool.ops.message_passing.neighbors import Neighbors
from sopool.ops.message_passing.structure import GraphStructure, propagate


class Feature(NamedTuple):
    """A column of the pooled node vectors."""

    layer: int
    """The layer; 0 is the input."""
    column: int
    """The column in the layer."""


class Pair(NamedTuple):
    """The contribution of a pair of features: their product, summed over the nodes, times its weight."""

    first: Feature
    second: Feature | None
    """The second feature; ``None`` for a single feature in a first-order sum."""
    value: float
    """The contribution to a combination of scores, such as the margin of a class."""
    node: int
    """The node that contributes most."""


class NodePairs(NamedTuple):
    """The contributions of pairs of nodes, for ``sopool-pairs``."""

    ends: Tensor
    """The first and the second node of each pair ``[2, P]``; in an undirected graph each pair occurs in both orders."""
    distance: Tensor
    """The distance of each pair ``[P]``."""
    shares: Tensor
    """The contribution of each pair to each score ``[P, C]``. Nodes have one half each of those of their pairs."""


class PooledGraph(NamedTuple):
    """The pooled graph of ``sopool-m-attn``, with K nodes."""

    contribution: Tensor
    """C: the contribution of each node to each new node ``[K, N]``."""
    adjacency: Tensor
    """A' ``[K, K]``: entry (i, j) is the weight of the edge from new node j to new node i."""
    shares: Tensor | None
    """The contribution of each new node to the score of each class ``[K, C]``; ``None`` in a hierarchical model."""


class Explained(NamedTuple):
    """The explanation of one model's scores for one graph."""

    scores: Tensor
    """The score of each class ``[C]``."""
    bias: Tensor
    """The scores of a graph without nodes, whose attributes are 0, ``[C]``; 0 for a hierarchical model and for the
    network of a system."""
    contributions: Tensor
    """The contribution of each node to each score ``[N, C]``."""
    exact: bool
    """Whether contributions and bias add up to the scores."""
    pairs: list[list[Pair]]
    """For each combination of scores that is looked at, the pairs that contribute most, the largest first."""
    pooled: PooledGraph | None
    attributes: Tensor
    """The contribution of each attribute of the graph to each score ``[D, C]``, with D = 0 if none are used."""
    node_pairs: NodePairs | None = None
    """The contributions of pairs of nodes; ``None`` if the readout has no pairs."""


class _Part(NamedTuple):
    """The terms of a readout, with the gradients of the scores."""

    terms: Terms
    gradients: list[Tensor]
    """For each part of the terms, the gradients of the scores with respect to its pooled value, ``[C, ...]`` each."""
    features: list[Feature]

    @property
    def empty(self) -> Tensor:
        """The embedding of a graph without nodes ``[1, F]``."""
        return self.terms.finish(*(torch.zeros_like(part.pooled()) for part in self.terms.parts)).unsqueeze(0)


def margins(classes: int) -> Tensor:
    """Return the matrix M ``[C, C]``: M scores is the score of each class minus the mean of the others."""
    others = torch.full((classes, classes), -1 / max(1, classes - 1), dtype=torch.float64)
    return others.fill_diagonal_(1.0)


@torch.no_grad()
def explain_graph(
    model: Classifier,
    x: Tensor,
    neighbors: Neighbors,
    top: int = 10,
    views: Tensor | None = None,
    graph_x: Tensor | None = None,
) -> Explained:
    """Explain the scores of one model (not a stack) for one graph ``[N, F]``.

    Args:
        model: The model.
        x: The node features.
        neighbors: The neighbors of each node.
        top: The number of pairs of features for each view.
        views: The combinations of scores for which pairs are looked for ``[V, C]``. Default: None, the margin of each
            class.
        graph_x: The attributes of the graph ``[1, D]``, if the model uses them. Default: None.
    """
    model.eval()
    ptr = torch.tensor([0, len(x)], device=x.device)
    graphs = GraphStructure(ptr, neighbors)
    scores = model(x, neighbors, ptr, graph_x)[0]
    attributes = x.new_zeros(1, 0) if not model.config.graph_attributes else model.attributes(graph_x)
    if isinstance(model, FlatClassifier):
        views = margins(len(scores)) if views is None else views
        return _explain_flat(model, model.gnn(x, neighbors, ptr), graphs, attributes, scores, top, views)
    shares = gradient_times_input(model, x, neighbors, graph_x)
    of_attributes = _attribute_shares(attributes, scores, lambda given: model(x, neighbors, ptr, given)[0])
    pooled = _first_block(model, x, graphs) if isinstance(model, HierarchicalClassifier) else None
    return Explained(scores, torch.zeros_like(scores), shares, False, _none(scores), pooled, of_attributes)


def _explain_flat(
    model: FlatClassifier,
    layers: Sequence[Tensor],
    graphs: GraphStructure,
    attributes: Tensor,
    scores: Tensor,
    top: int,
    views: Tensor,
) -> Explained:
    vectors = [join(layers)] if model.config.join == "concat" else layers
    pooled = _read(model, vectors, graphs)
    of_attributes = _attribute_shares(attributes, scores, lambda given: _scores(model, pooled, given))
    parts = _take_apart(model, vectors, [layer.shape[1] for layer in layers], attributes, graphs)
    empty = [torch.zeros_like(one) for one in pooled] if parts is None else [part.empty for part in parts]
    bias = _scores(model, empty, torch.zeros_like(attributes))
    if parts is None:
        shares = _gradient_times_input(vectors, lambda inputs: _scores(model, _read(model, inputs, graphs), attributes))
        return Explained(scores, bias, shares, False, _none(scores), None, of_attributes)
    shares = torch.stack([_shares(parts, number) for number in range(len(scores))], dim=1)
    telling = [_telling(parts, weights, top) for weights in views.to(scores)]
    exact = all(part.terms.exact for part in parts) and not model.hidden
    of_graph = _pooled_graph(model, parts, graphs)
    return Explained(scores, bias, shares, exact, telling, of_graph, of_attributes, _node_pairs(parts))


@torch.no_grad()
def gradient_times_input(model: Classifier, x: Tensor, neighbors: Neighbors, graph_x: Tensor | None = None) -> Tensor:
    """Return gradient x input of each node's features for each class ``[N, C]``, which works for any model."""
    ptr = torch.tensor([0, len(x)], device=x.device)
    return _gradient_times_input([x], lambda inputs: model.eval()(inputs[0], neighbors, ptr, graph_x)[0])


def _take_apart(
    model: FlatClassifier,
    vectors: Sequence[Tensor],
    widths: Sequence[int],
    attributes: Tensor,
    graphs: GraphStructure,
) -> list[_Part] | None:
    columns = [[Feature(layer, column) for column in range(width)] for layer, width in enumerate(widths)]
    names = [[name for some in columns for name in some]] if model.config.join == "concat" else columns
    parts = []
    for place, (readout, h, own) in enumerate(zip(model.readouts, vectors, names, strict=True)):
        terms = terms_of(readout, h, graphs)
        if terms is None:
            return None
        parts.append(_Part(terms, _gradients_of_terms(model, place, terms, attributes), own))
    return parts


def _gradients_of_terms(model: FlatClassifier, place: int, terms: Terms, attributes: Tensor) -> list[Tensor]:
    def score(values: list[Tensor]) -> Tensor:
        embedding = terms.finish(*values).unsqueeze(0)
        return model.head(model.append(embedding, attributes) if joined else embedding, place)[0]

    joined = model.config.join == "concat"
    each = list(_gradients([part.pooled() for part in terms.parts], score))
    return [torch.stack(some) for some in zip(*each, strict=True)]


def _gradients(inputs: Sequence[Tensor], score: Callable[[list[Tensor]], Tensor]) -> Iterator[tuple[Tensor, ...]]:
    """Yield the gradients of each class's score with respect to all inputs."""
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in inputs]
        for one in score(leaves).unbind():
            found = torch.autograd.grad(one, leaves, retain_graph=True, allow_unused=True)
            yield tuple(
                torch.zeros_like(leaf) if gradient is None else gradient
                for leaf, gradient in zip(leaves, found, strict=True)
            )


def _gradient_times_input(inputs: Sequence[Tensor], score: Callable[[list[Tensor]], Tensor]) -> Tensor:
    each = _gradients(inputs, score)
    shares = [sum((x * gradient).sum(1) for x, gradient in zip(inputs, gradients, strict=True)) for gradients in each]
    return torch.stack([torch.as_tensor(share) for share in shares], dim=1)


def _attribute_shares(attributes: Tensor, scores: Tensor, score: Callable[[Tensor], Tensor]) -> Tensor:
    """Return gradient x input of each attribute of the graph for each class: ``[1, D]``, ``[C]`` to ``[D, C]``."""
    if not attributes.shape[1]:
        return scores.new_zeros(0, len(scores))
    each = _gradients([attributes], lambda inputs: score(inputs[0]))
    return torch.stack([(attributes * gradient)[0] for (gradient,) in each], dim=1)


def _read(model: FlatClassifier, vectors: Sequence[Tensor], graphs: GraphStructure) -> list[Tensor]:
    return [read(readout, h, graphs)[0] for readout, h in zip(model.readouts, vectors, strict=True)]


def _scores(model: FlatClassifier, pooled: list[Tensor], attributes: Tensor) -> Tensor:
    """Return the scores of a graph ``[C]``, given the results of the readouts."""
    return model.scores(model.with_attributes(pooled, attributes))[0]


def _shares(parts: Sequence[_Part], number: int) -> Tensor:
    """Return the contribution of each node to the score of a class ``[N]``."""
    each = [
        term.shares(gradient[number])
        for part in parts
        for term, gradient in zip(part.terms.parts, part.gradients, strict=True)
    ]
    return torch.stack(each).sum(0)


def _telling(parts: Sequence[_Part], weights: Tensor, top: int) -> list[Pair]:
    """Return the pairs that contribute most to the combination of scores with the ``weights`` ``[C]``."""
    found = list[Pair]()
    for part in parts:
        for term, gradients in zip(part.terms.parts, part.gradients, strict=True):
            if len(term.rows):
                gradient = torch.tensordot(weights, gradients, 1)
                found += _largest(term, gradient, part.features, top)
    return sorted(found, key=lambda pair: -abs(pair.value))[:top]


def _largest(
    term: Products | PairProducts | Sums, gradient: Tensor, features: list[Feature], top: int
) -> Iterator[Pair]:
    width = term.rows.shape[1]
    if not isinstance(term, Sums):
        both = term.pairs(gradient)
        values = (both + both.T).triu(1) + both.diagonal().diag()
    else:
        values = (term.map @ gradient) * term.rows.sum(0)
    for place in values.flatten().abs().topk(min(top, values.numel())).indices.tolist():
        value = float(values.flatten()[place])
        if value:
            if isinstance(term, Sums):
                yield Pair(features[place], None, value, term.leading_node(place))
            else:
                first, second = divmod(place, width)
                yield Pair(features[first], features[second], value, term.leading_node(first, second, gradient))


def _node_pairs(parts: Sequence[_Part]) -> NodePairs | None:
    """Return the contributions of pairs of nodes, added up over all readouts."""
    found = None
    for part in parts:
        term = part.terms.second
        if isinstance(term, PairProducts) and term.listed is not None:
            shares = torch.stack([term.node_pairs(gradient) for gradient in part.gradients[0]], dim=1)
            total = shares if found is None else found.shares + shares
            found = NodePairs(*term.listed.coordinates(), total)
    return found


def _pooled_graph(model: FlatClassifier, parts: Sequence[_Part], graphs: GraphStructure) -> PooledGraph | None:
    """Return the pooled graph of the last readout, if it is ``sopool-m-attn``."""
    readout = model.readouts[-1]
    terms = parts[-1].terms
    if not isinstance(readout, MultiHeadSecondOrderAggregation) or not isinstance(terms.second, Products):
        return None
    gives = terms.second.rows @ terms.second.left
    gives = gives / max(1, len(gives)) if readout.normalize == "size" else gives
    aggregated = propagate(gives, graphs.neighbors) - gives
    shares = (parts[-1].gradients[0] * terms.second.pooled()).sum(2).T
    return PooledGraph(gives.T, gives.T @ aggregated, shares)


def _first_block(model: HierarchicalClassifier, x: Tensor, graphs: GraphStructure) -> PooledGraph | None:
    pool = model.pools[0]
    if not isinstance(pool, MultiHeadSecondOrderPooling):
        return None
    h = model.gnns[0](x, graphs.neighbors, graphs.ptr)[-1]
    pooled = pool.pool(h, graphs)
    assert pooled.contribution is not None
    assert pooled.adj is not None
    return PooledGraph(pooled.contribution.T, pooled.adj[0], None)


def _none(scores: Tensor) -> list[list[Pair]]:
    return [[] for _ in scores]
