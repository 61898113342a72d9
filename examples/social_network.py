"""Classify graphs that have no node features, such as social networks.

You learn how to build a data set from NetworkX graphs and how to use node degrees as features. The script uses
IMDB-BINARY (actors who appeared in the same films) if the folder named by SOPOOL_DATA has it. Otherwise it generates
groups of friends: either tight circles that share one person, or random graphs with as many people and friendships.

The generated classes are easy to tell apart by degrees, so expect an accuracy near 100 %.
"""

import os

import networkx as nx
import numpy as np

from sopool import GraphClassifier
from sopool.data import DegreeEncoder, PackedGraphs, find, from_networkx, load


def friend_circles(random: np.random.Generator) -> nx.Graph:
    """Return two or three complete graphs whose nodes are all connected to the first node."""
    circles = nx.disjoint_union_all([nx.complete_graph(int(n)) for n in random.integers(4, 8, random.integers(2, 4))])
    circles.add_edges_from((0, person) for person in circles if person)
    return circles


def generate(number: int) -> PackedGraphs:
    """Return graphs of both classes in turn; a random graph has the size of a graph of circles."""
    random = np.random.default_rng(0)
    generated = []
    for index in range(number):
        graph = friend_circles(random)
        if index % 2:
            graph = nx.gnm_random_graph(len(graph), graph.number_of_edges(), seed=index)
        graph.graph["label"] = "random" if index % 2 else "circles"
        generated.append(graph)
    return from_networkx(generated, name="generated friend circles")


# Step 1: load or generate the graphs, and hold out a fifth of them.
available = "SOPOOL_DATA" in os.environ and find("IMDB-BINARY").path is not None
graphs = load("IMDB-BINARY") if available else generate(200)
shuffled = np.random.default_rng(1).permutation(len(graphs))
train = graphs[shuffled[: len(graphs) * 4 // 5]]
test = graphs[shuffled[len(graphs) * 4 // 5 :]]
print(f"{graphs.name}: {len(graphs)} graphs with {graphs.num_nodes / len(graphs):.1f} nodes on average")

# Step 2: train with one-hot degrees as node features. This is the default where nodes have no features of their own.
model = GraphClassifier(encoder=DegreeEncoder(), n_models=3, epochs=8, random_state=0).fit(train)
print(f"node features: {model.encoder_.transform(test).width} columns, one per degree and one for unseen degrees")

# Step 3: test on the held-out graphs.
print(f"accuracy on {len(test)} test graphs: {100 * model.score(test):.0f} %")
