"""One run written as plainly as can be: a loop over graphs, dense matrices, torch's own layers and optimiser.

It shares with the package only the batches that are drawn, the dropout masks and the initial weights.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F

from sopool.data.features.numbers import Moments
from sopool.nn.dropout import Dropout
from sopool.nn.gnn import VARIANTS
from sopool.training.bank.sampling import draw_batches

FORMULAS = {
    *("sum", "mean", "max", "sopool", "sopool-bimap", "sopool-attn", "sopool-m-attn"),
    *("covpool", "attnpool", "sortpool"),
}
"""The readouts whose formulas are written here once more."""

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
}


def dense_graph(store, features, number):
    """(adjacency [n, n], edges, x [n, d]): row i counts the edges into node i; (source, target, label) each."""
    first, last = store.node_ptr[number : number + 2].tolist()
    start, stop = store.edge_ptr[number : number + 2].tolist()
    adjacency = torch.eye(last - first, dtype=torch.float64)
    for source, target in store.edge_index[:, start:stop].t().tolist():
        adjacency[target, source] += 1
    labels = [0] * (stop - start) if store.edge_labels is None else store.edge_labels[start:stop].tolist()
    edges = [(*pair, label) for pair, label in zip(store.edge_index[:, start:stop].t().tolist(), labels, strict=True)]
    return adjacency, edges, features.rows(torch.arange(first, last)).double()


def propagate(how, adjacency, edges, x, vectors):
    if vectors is not None:
        rows = list(x)
        for source, target, label in edges:
            rows[target] = rows[target] + (x[source] + vectors[label]).relu()
        return torch.stack(rows) if rows else x
    if how == "sum":
        return adjacency @ x
    if how == "mean":
        return adjacency @ x / adjacency.sum(1, keepdim=True)
    return x.unsqueeze(0).masked_fill(adjacency.unsqueeze(2) == 0, -torch.inf).amax(1)


def steps_between(edges, size):
    """The number of steps from each node of a graph to each other, infinite if there is no path."""
    steps = torch.full((size, size), torch.inf).fill_diagonal_(0)
    for source, target, _ in edges:
        steps[source, target] = steps[source, target].clamp(max=1)
    for middle in range(size):
        steps = torch.minimum(steps, steps[:, middle, None] + steps[middle])
    return steps


def pairs(h, readout, edges):
    """Z^T D_k Z of one graph for each distance k, the rest after them, and the sum of the nodes."""
    z = h[:, : readout.weight.shape[0]] @ readout.weight * readout.lr_scale
    if readout.walks:
        adjacency = (steps_between(edges, len(h)) == 1).to(z.dtype)
        leaving, arriving = (adjacency.sum(axis).clamp(min=1).rsqrt() for axis in (1, 0))
        walk = leaving.unsqueeze(1) * adjacency * arriving
        matrices = [torch.linalg.matrix_power(walk, k) for k in range(readout.distances + 1)]
    else:
        steps = steps_between(edges, len(h))
        matrices = [(steps == k).to(z.dtype) for k in range(readout.distances + 1)]
        matrices += [(steps > readout.distances).to(z.dtype)] * readout.rest
    pooled = torch.cat([(z.t() @ matrix @ z).flatten() for matrix in matrices])
    if readout.normalize == "log":
        pooled = pooled.sign() * pooled.abs().log1p()
    elif readout.normalize == "norm":
        pooled = pooled / (pooled.square().sum() + 1e-6).sqrt()
    elif readout.normalize == "size":
        pooled = pooled / max(1, len(h))
    return torch.cat([pooled * readout.lr_scale, h.sum(0)] if readout.with_sum else [pooled * readout.lr_scale])


def pool(name, h, readout, edges=()):
    """The formula of each readout for one graph [n, f]; for one that has none here, the readout of that graph alone."""
    if name == "sopool-pairs":
        return pairs(h, readout, edges)
    if name not in FORMULAS:
        return readout(h, ptr=torch.tensor([0, len(h)]))[0]
    if not len(h):
        width = {"sopool": h.shape[1] ** 2, "sopool-bimap": 32**2, "covpool": 32**2, "sopool-m-attn": 8 * h.shape[1]}
        width |= {"sortpool": 32}
        return h.new_zeros(width.get(name, h.shape[1]))
    if name in ("sum", "mean"):
        return getattr(h, name)(0)
    if name == "max":
        return h.amax(0)
    if name in ("sopool", "sopool-bimap"):
        z = h if name == "sopool" else h @ readout.weight
        return (z.t() @ z).flatten()
    if name == "covpool":
        z = h @ readout.weight
        z = z - z.mean(0)
        return (z.t() @ z).flatten()
    if name == "sopool-attn":
        bias = 0 if readout.query_bias is None else readout.query_bias
        return (h.t() @ (h @ readout.query + bias)).flatten()
    if name == "sopool-m-attn":
        return (readout.queries @ h.t() @ h).flatten()
    if name == "sortpool":
        return convolve(h, readout)
    return (h.t() @ (h @ readout.query).softmax(0)).flatten()


def convolve(h, readout):
    """DGCNN's head with torch's own convolutions, k = 10."""
    rows = sorted(h, key=lambda row: (row[-1].item(), row.sum().item()), reverse=True)[:10]
    z = torch.cat([torch.stack(rows), h.new_zeros(10 - len(rows), h.shape[1])])
    z = F.conv1d(z.view(1, 1, -1), readout.weight.t().unsqueeze(1), readout.bias, stride=h.shape[1]).relu()
    kernel = readout.next_weight.t().reshape(32, 5, 16).transpose(1, 2)
    z = F.conv1d(F.max_pool1d(z, 2), kernel, readout.next_bias).relu()
    return z.squeeze(0).t().flatten()


def in_own_units(store, features, train):
    """The features with the mean and the standard deviation of the nodes of the training graphs."""
    if features.numbers is None:
        return features
    nodes = torch.cat([torch.arange(*store.node_ptr[graph : graph + 2].tolist()) for graph in sorted(train)])
    values = features.numbers.values[nodes].double()
    moments = Moments(values.mean(0), values.std(0, correction=0))
    return replace(features, numbers=replace(features.numbers, moments=moments))


class Reference:
    """Trains copies of ``model`` 's weights."""

    def __init__(self, store, features, model, config, train, seed):
        self.store = store
        self.features = in_own_units(store, features, train)
        self.config = config
        self.train = train
        self.seed = seed
        self.model = model.double()
        self.norms = [
            [torch.nn.BatchNorm1d(block.scale.shape[0], dtype=torch.float64) for block in layer]
            for layer in model.gnn.layers
        ]
        parameters = {id(p): p for p in model.parameters()}
        for norms, layer in zip(self.norms, model.gnn.layers, strict=True):
            for norm, block in zip(norms, layer, strict=True):
                norm.weight = block.scale
                norm.bias = block.shift
        options = {"momentum": config.momentum} if config.momentum else {}
        options |= {"lr": config.lr, "weight_decay": config.weight_decay}
        self.parameters = list(parameters.values())
        self.optimizer = OPTIMIZERS[config.optimizer](self.parameters, **options)

    def logits(self, numbers, dropout):
        graphs = [dense_graph(self.store, self.features, int(number)) for number in numbers]
        sizes = [len(x) for *_, x in graphs]
        x = torch.cat([x for *_, x in graphs])
        model = self.model
        how = VARIANTS[self.config.model.gnn].how
        layers = [x]
        for number, (layer, norms) in enumerate(zip(model.gnn.layers, self.norms, strict=True)):
            parts = zip(graphs, x.split(sizes), strict=True)
            vectors = model.gnn.edges[number].weight if len(model.gnn.edges) else None
            adjacency = torch.cat([propagate(how, matrix, edges, part, vectors) for (matrix, edges, _), part in parts])
            x = adjacency if model.gnn.eps is None else adjacency + model.gnn.eps[number] * x
            for block, norm in zip(layer, norms, strict=True):
                x = norm(x @ block.weight).relu()
            layers.append(x)
        layers = [torch.cat(layers, dim=1)] if self.config.model.join == "concat" else layers
        total = 0
        for place, (h, readout, head) in enumerate(zip(layers, model.readouts, model.heads, strict=True)):
            parts = zip(h.split(sizes), graphs, strict=True)
            pooled = torch.stack([pool(self.config.model.pool, part, readout, edges) for part, (_, edges, _) in parts])
            if self.config.model.dropout_on == "embedding":
                pooled = dropout(pooled, place)
            scores = pooled @ head.weight.t() + head.bias
            total = total + (dropout(scores, place) if self.config.model.dropout_on == "logits" else scores)
        return total

    def run_epoch(self, epoch):
        config = self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.lr * 0.5 ** (epoch // config.halve_every)
        graphs, keys = (
            one[:, 0] for one in draw_batches([self.seed], epoch, [self.train], config.steps, config.batch_size)
        )
        losses = []
        for numbers, key in zip(graphs, keys, strict=True):
            dropout = Dropout(torch.tensor([int(key)], dtype=torch.int32), torch.tensor([config.dropout]))
            loss = F.cross_entropy(self.logits(numbers, dropout), self.store.labels[torch.from_numpy(numbers)])
            self.optimizer.zero_grad()
            loss.backward()
            if config.clip:
                torch.nn.utils.clip_grad_norm_(self.parameters, config.clip)
            self.decay_pairs()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def decay_pairs(self):
        """Shrink the weights of pairs, as AdamW does."""
        for readout, head in zip(self.model.readouts, self.model.heads, strict=True):
            if self.config.model.pool == "sopool-pairs":
                kept = 1 - self.optimizer.param_groups[0]["lr"] * readout.decay
                with torch.no_grad():
                    readout.weight.mul_(kept)
                    head.weight[:, : readout.pair_width].mul_(kept)
