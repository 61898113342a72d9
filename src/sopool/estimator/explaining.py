"""Explain predictions: each model separately in double precision, then averaged over the ensemble."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sopool.data.features.node_features import NodeFeatures
from sopool.data.formats.atom_names import node_names
from sopool.data.graphs import PackedGraphs
from sopool.estimator.ensemble import Ensemble, training_tables
from sopool.models.base import Classifier
from sopool.models.explain.explanation import AnyExplanation, Explanation, NamedPair, TargetExplanation
from sopool.models.explain.shares import Explained, Feature, NodePairs, explain_graph, margins
from sopool.models.stack import member_of
from sopool.objectives import Objective
from sopool.training.bank.batching import Batch, GraphTables

if TYPE_CHECKING:
    from sopool.estimator.base import GraphEstimator


def explain_graphs(
    estimator: "GraphEstimator", store: PackedGraphs, features: NodeFeatures, top: int
) -> Iterator[AnyExplanation]:
    """Yield an explanation for each graph, with ``top`` pairs of features for each class or target."""
    names = estimator.encoder_.feature_names
    ensemble = estimator.ensemble_
    width = estimator.objective_.width
    views = torch.eye(width) if estimator.target_names_ else margins(width)
    for graph, seen in enumerate(seen_by_members(ensemble, store, features)):
        found = [explain_graph(member, batch.x, batch.neighbors, top, views, batch.graph_x) for member, batch in seen]
        pairs = partial(_pairs, names=names, top=top)
        yield _together(estimator.objective_, ensemble, found, pairs, store[graph])


def seen_by_members(
    ensemble: Ensemble, store: PackedGraphs, features: NodeFeatures
) -> Iterator[list[tuple[Classifier, Batch]]]:
    """Yield, for each graph, every single model and its input, on the CPU and in double precision."""
    numbers = range(ensemble.model.models)
    inputs = ensemble.inputs.to("cpu")
    members = [member_of(ensemble.model, number).to("cpu", torch.float64) for number in numbers]
    tables = _tables(ensemble, store, features)
    for graph in range(len(store)):
        batches = [tables.batch(torch.tensor([[graph]]), inputs.rows([number])) for number in numbers]
        yield [(member, batch.to(torch.float64)) for member, batch in zip(members, batches, strict=True)]


def _tables(ensemble: Ensemble, store: PackedGraphs, features: NodeFeatures) -> GraphTables:
    """Return the tables for gradients; the labels in them are placeholders."""
    numbers = ensemble.encode_graphs(store)
    store, edges = ensemble.graphs_and_edges(store)
    none = torch.zeros(len(store), dtype=torch.long)
    labelled = replace(store, labels=none, classes=(0,))
    return training_tables(labelled, features, edges, numbers, ensemble.model.config, cached=False)


def _together(
    objective: Objective,
    ensemble: Ensemble,
    found: Sequence[Explained],
    pairs: Callable[[Sequence[Explained], int], list[NamedPair]],
    graph: PackedGraphs,
) -> AnyExplanation:
    """Combine the explanations of all models into one."""
    combined = ensemble.combine(torch.stack([one.scores for one in found]).unsqueeze(1))
    found = [_in_unit(one, own) for one, own in zip(found, ensemble.objectives, strict=True)]
    shared: dict[str, Any] = {
        "scores": torch.stack([one.scores for one in found]).mean(0).numpy(),
        "bias": torch.stack([one.bias for one in found]).mean(0).numpy(),
        "each": torch.stack([one.contributions for one in found]).numpy(),
        "exact": all(one.exact for one in found),
        "pairs": [pairs(found, number) for number in range(objective.width)],
        "pooled": [one.pooled for one in found if one.pooled is not None],
        "nodes": node_names(graph),
        "node_pairs": _node_pairs(found),
        "attributes": _attributes(found, [] if ensemble.graphs is None else ensemble.graphs.names),
    }
    shares = None if combined.probabilities is None else combined.probabilities[0]
    if objective.task == "classification":
        assert shares is not None
        uncertainty = float(combined.uncertainty[0])
        return Explanation(classes=list(objective.names), probabilities=shares, uncertainty=uncertainty, **shared)
    targets = list(objective.names)
    told = {"predictions": combined.predicted[0], "probabilities": shares, "uncertainty": combined.uncertainty[0]}
    return TargetExplanation(targets=targets, **told, **shared)


def _in_unit(found: Explained, objective: Objective) -> Explained:
    """Return the explanation of a model in the units of the targets that it was trained on."""
    scale, shift = (torch.from_numpy(one) for one in objective.scaling)
    pairs = [
        [pair._replace(value=pair.value * factor) for pair in some]
        for some, factor in zip(found.pairs, scale.tolist(), strict=True)
    ]
    pooled = found.pooled
    if pooled is not None and pooled.shares is not None:
        pooled = pooled._replace(shares=pooled.shares * scale)
    return Explained(
        found.scores * scale + shift,
        found.bias * scale + shift,
        found.contributions * scale,
        found.exact,
        pairs,
        pooled,
        found.attributes * scale,
        None if found.node_pairs is None else found.node_pairs._replace(shares=found.node_pairs.shares * scale),
    )


def _node_pairs(found: Sequence[Explained]) -> NodePairs | None:
    """Return the contributions of pairs of nodes, averaged over the models; the pairs are the same for all."""
    each = [one.node_pairs for one in found if one.node_pairs is not None]
    return each[0]._replace(shares=torch.stack([one.shares for one in each]).mean(0)) if each else None


def _attributes(found: Sequence[Explained], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the contribution of each attribute of the graph, averaged over the models; nothing if none are used."""
    each = torch.stack([one.attributes for one in found]).mean(0).numpy()
    return dict(zip(names, each, strict=True)) if len(each) else {}


def _pairs(found: Sequence[Explained], number: int, *, names: Sequence[str], top: int) -> list[NamedPair]:
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
