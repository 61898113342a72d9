"""Pool graphs into smaller graphs, block after block.

You learn how to use ``MultiHeadSecondOrderPooling`` between PyG layers, how to see which atoms contribute most to a
pooled node, and how to train a hierarchical ``GraphClassifier``.

The first part only shows shapes: its weights are random. The second part trains on half of MUTAG and tests on the rest.
"""

import torch
from torch_geometric.data import Batch
from torch_geometric.nn import GraphConv

from sopool import GraphClassifier
from sopool.data import load, to_pyg
from sopool.nn import MultiHeadSecondOrderPooling

torch.manual_seed(0)
molecules = load("MUTAG")

# Step 1: put four molecules into a PyG batch, with one-hot atom types as node features.
batch = Batch.from_data_list(to_pyg(molecules[:4]))
x = torch.nn.functional.one_hot(batch.node_label, 7).float()
edge_index = batch.edge_index
edge_weight = None
graph_of_node = batch.batch

# Step 2: two blocks of message passing and pooling. The first leaves 8 nodes per graph, the second 2. The fields of the
# result are what the next block needs; pooled edges carry weights.
sizes = [batch.num_nodes]
for heads in (8, 2):
    x = GraphConv(x.shape[1], 16)(x, edge_index, edge_weight).relu()
    pooled = MultiHeadSecondOrderPooling(16, heads=heads)(x, edge_index, edge_weight, graph_of_node)
    if len(sizes) == 1:
        main_atoms = pooled.contribution[graph_of_node == 0].abs().argmax(0)
    x = pooled.x
    edge_index = pooled.edge_index
    edge_weight = pooled.edge_weight
    graph_of_node = pooled.batch
    sizes.append(len(x))
print(f"nodes of 4 molecules after each block: {' -> '.join(map(str, sizes))}")
print(f"atom of molecule 0 with the largest weight in each of its 8 pooled nodes: {main_atoms.tolist()}")

# Step 3: the same architecture as a classifier: blocks of one GIN layer and one pooling, with a classifier after each.
model = GraphClassifier(pool="sopool-m-attn", blocks=2, hidden=16, n_models=2, epochs=10, random_state=0)
train = molecules[::2]
test = molecules[1::2]
model.fit(train)
accuracy = model.score(test, test.class_labels)
print(f"two blocks, trained on {len(train)} molecules: accuracy {100 * accuracy:.0f} % on {len(test)} others")
