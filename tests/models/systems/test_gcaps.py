"""GCAPS-CNN beside its formulas, node by node."""

from dataclasses import replace

import torch

from sopool.experiments.systems import SYSTEMS
from sopool.models import make_model

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 5), (5, 5), (6, 7), (7, 8), (1, 9)]


def network(moments):
    torch.manual_seed(0)
    config = replace(SYSTEMS["gcaps-cnn"].model, hidden=5, system_options={"moments": moments})
    model = make_model(config, 3, 2).network.double().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model


def layer(part, x, around):
    """The capsules of one layer: the mean over neighbors of each power, a step at a time."""
    capsules = []
    for order, (capsule, weight) in enumerate(zip(x, part.weight, strict=True), 1):
        powers = capsule**order
        once = torch.stack([powers[near].mean(0) for near in around])
        twice = torch.stack([once[near].mean(0) for near in around])
        own, first, second = weight.chunk(3)
        capsules.append(powers @ own + once @ first + twice @ second)
    return part.norm(torch.cat(capsules, 1)).relu().chunk(len(x), 1)


def reference(model, x, edges, histogram):
    """Scores of one graph."""
    around = [[node, *(a for a, b in edges if b == node)] for node in range(len(x))]
    degree = torch.tensor([[float(len(near))] for near in around]).double().log()
    start = torch.cat([x, degree], 1)
    nodes = torch.cat(layer(model.second, layer(model.first, [start] * model.moments, around), around), 1)
    covariance = torch.cov(nodes.T, correction=0)
    row, column = torch.triu_indices(*covariance.shape)
    upper = torch.where(row == column, 1, 2**0.5) * covariance[row, column]  # inner products remain
    return model.head(model.dense(model.norm(torch.cat([upper, nodes.mean(0), histogram])[None])).relu())


def test_it_is_the_formula():
    edges = [*EDGES, *((b, a) for a, b in EDGES if a != b)]
    pairs = torch.tensor(edges).T
    x = torch.rand(10, 3, dtype=torch.float64)
    histogram = torch.rand(64, dtype=torch.float64)
    for moments in (1, 3):
        model = network(moments)
        batch = torch.arange(2).repeat_interleave(10)
        with torch.no_grad():
            twice = torch.cat([x, x]), torch.cat([pairs, pairs + 10], 1), batch
            found = model(*twice, resistances=histogram.expand(2, -1))
            want = reference(model, x, edges, histogram)
        torch.testing.assert_close(found, want.expand(2, 2), rtol=1e-10, atol=1e-10)


def test_a_batch_of_one_node_can_be_trained_on():
    model = network(2).train()
    graph = torch.ones(1, 3).double(), torch.zeros(2, 0).long(), torch.tensor([0])
    found = model(*graph, resistances=torch.zeros(1, 64).double())
    assert found.isfinite().all()
