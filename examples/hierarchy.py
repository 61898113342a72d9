"""Hierarchical pooling: graphs into smaller graphs, block after block, and back to the nodes.

``MultiHeadSecondOrderPooling`` shrinks each graph to k nodes with weighted edges between them, which message passing
goes on with. Then a whole classifier in blocks, trained and tested.
"""

import torch
from torch_geometric.data import Batch
from torch_geometric.nn import GraphConv

from sopool import GraphClassifier
from sopool.data import load, to_pyg
from sopool.nn import MultiHeadSecondOrderPooling

torch.manual_seed(0)
molecules = load("MUTAG")

# Layer by layer, in PyG: 8 nodes, then 2.
batch = Batch.from_data_list(to_pyg(molecules[:4]))
x = torch.nn.functional.one_hot(batch.node_label, 7).float()
edge_index = batch.edge_index
weight = None
graph_of = batch.batch
sizes = [batch.num_nodes]
for heads in (8, 2):
    x = GraphConv(x.shape[1], 16)(x, edge_index, weight).relu()
    pooled = MultiHeadSecondOrderPooling(16, heads=heads)(x, edge_index, graph_of, edge_weight=weight)
    if len(sizes) == 1:
        strongest = pooled.contribution[graph_of == 0].abs().argmax(0)
    x = pooled.x
    edge_index = pooled.edge_index
    weight = pooled.edge_weight
    graph_of = pooled.batch
    sizes.append(len(x))
print(f"nodes of 4 molecules after each block: {' -> '.join(map(str, sizes))}")
print(f"the atom of the first molecule that gives most to each of its 8 new nodes: {strongest.tolist()}")

# The same in one line: blocks of one GIN layer and one pooling, a classifier after each.
model = GraphClassifier(pool="sopool-m-attn", blocks=2, hidden=16, n_models=2, epochs=10, random_state=0)
train = molecules[::2]
test = molecules[1::2]
model.fit(train)
truth = [test.classes[label] for label in test.labels]
print(f"two blocks, {len(train)} molecules: right on {100 * model.score(test, truth):.0f} % of {len(test)} others")
