"""Explain predictions: each model separately in double precision, then averaged over the ensemble."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from sopool.data.features.node_features import NodeFeatures
from sopool.data.graphs import PackedGraphs
from sopool.estimator.ensemble import Ensemble, training_tables
from sopool.models.base import Classifier
from sopool.models.explain.explanation import Explanation, NamedPair
from sopool.models.explain.shares import Explained, Feature, explain_graph
from sopool.models.stack import member_of
from sopool.training.bank.batching import Batch, GraphTables

if TYPE_CHECKING:
    from sopool.estimator.classifier import GraphClassifier


def explain_graphs(
    classifier: "GraphClassifier", store: PackedGraphs, features: NodeFeatures, top: int
) -> Iterator[Explanation]:
    """Yield an explanation for each graph, with ``top`` pairs of features for each class."""
    names = classifier.encoder_.feature_names
    for graph, seen in enumerate(seen_by_members(classifier.ensemble_, store, features)):
        found = [explain_graph(member, batch.x, batch.neighbors, top) for member, batch in seen]
        yield _together(classifier, found, names, node_names(store[graph]), top)


def seen_by_members(
    ensemble: Ensemble, store: PackedGraphs, features: NodeFeatures
) -> Iterator[list[tuple[Classifier, Batch]]]:
    """Yield, for each graph, every single model and its input, on the CPU and in double precision."""
    numbers = range(ensemble.model.models)
    substitutes = ensemble.substitutes.cpu()
    members = [member_of(ensemble.model, number).to("cpu", torch.float64) for number in numbers]
    tables = _tables(ensemble, store, features)
    for graph in range(len(store)):
        batches = [tables.batch(torch.tensor([[graph]]), substitutes[number : number + 1]) for number in numbers]
        yield [(member, batch._replace(x=batch.x.double())) for member, batch in zip(members, batches, strict=True)]


def node_names(graph: PackedGraphs) -> list[str]:
    """Return the label of each node, or empty strings if nodes have no labels."""
    if graph.node_labels is None:
        return [""] * graph.num_nodes
    return [str(graph.node_label_names[code]) for code in graph.node_labels.tolist()]


def _tables(ensemble: Ensemble, store: PackedGraphs, features: NodeFeatures) -> GraphTables:
    """Return the tables for gradients; the labels in them are placeholders."""
    none = torch.zeros(len(store), dtype=torch.long)
    labelled = replace(store, labels=none, classes=tuple(range(ensemble.classes)))
    return training_tables(labelled, features, ensemble.encode_edges(store), ensemble.model.config)


def _together(
    classifier: "GraphClassifier", found: Sequence[Explained], names: Sequence[str], nodes: list[str], top: int
) -> Explanation:
    """Combine the explanations of all models into one."""
    scores = torch.stack([one.scores for one in found])
    combined = classifier.combine(scores.unsqueeze(1))
    return Explanation(
        classes=classifier.classes_.tolist(),
        probabilities=combined.probabilities[0],
        uncertainty=float(combined.uncertainty[0]),
        scores=scores.mean(0).numpy(),
        bias=torch.stack([one.bias for one in found]).mean(0).numpy(),
        each=torch.stack([one.contributions for one in found]).numpy(),
        exact=all(one.exact for one in found),
        pairs=[_pairs(found, number, names, top) for number in range(scores.shape[1])],
        pooled=[one.pooled for one in found if one.pooled is not None],
        nodes=nodes,
    )


def _pairs(found: Sequence[Explained], number: int, names: Sequence[str], top: int) -> list[NamedPair]:
    """Return the ``top`` largest pairs of all models, each divided by the number of models."""

    def name(feature: Feature) -> str:
        return f"layer {feature.layer}, unit {feature.column}" if feature.layer else names[feature.column]

    every = [
        NamedPair(
            name(pair.first),
            None if pair.second is None else name(pair.second),
            pair.value / len(found),
            pair.node,
            model,
        )
        for model, one in enumerate(found)
        for pair in one.pairs[number]
    ]
    return sorted(every, key=lambda pair: -abs(pair.value))[:top]
