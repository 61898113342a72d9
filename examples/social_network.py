"""A social-network set: graphs without node features, where degrees are all a node has.

IMDB-BINARY (who played together in films of one genre) where SOPOOL_DATA names a folder with it; else circles of
friends are made up: tight circles joined by one person, or loose acquaintance with as many ties.
"""

import os

import networkx as nx
import numpy as np

from sopool import GraphClassifier
from sopool.data import DegreeEncoder, PackedGraphs, find, from_networkx, load


def circles(random: np.random.Generator) -> nx.Graph:
    """Two or three groups in which everybody knows everybody; the first person knows all."""
    groups = nx.disjoint_union_all([nx.complete_graph(int(n)) for n in random.integers(4, 8, random.integers(2, 4))])
    groups.add_edges_from((0, person) for person in groups if person)
    return groups


def make(graphs: int) -> PackedGraphs:
    """As many graphs of circles as of acquaintance, alike in people and ties."""
    random = np.random.default_rng(0)
    made = []
    for number in range(graphs):
        graph = circles(random)
        if number % 2:
            graph = nx.gnm_random_graph(len(graph), graph.number_of_edges(), seed=number)
        graph.graph["label"] = "loose" if number % 2 else "circles"
        made.append(graph)
    return from_networkx(made, name="made-up circles of friends")


here = "SOPOOL_DATA" in os.environ and find("IMDB-BINARY").path is not None
graphs = load("IMDB-BINARY") if here else make(200)
mixed = np.random.default_rng(1).permutation(len(graphs))
train = graphs[mixed[: len(graphs) * 4 // 5]]
test = graphs[mixed[len(graphs) * 4 // 5 :]]

model = GraphClassifier(encoder=DegreeEncoder(), n_models=3, epochs=8, random_state=0).fit(train)
print(f"{graphs.name}: {len(graphs)} graphs, {graphs.num_nodes / len(graphs):.1f} nodes each on average")
print(f"features: {model.encoder_.transform(test).width} different degrees")
print(f"right on {100 * model.score(test):.0f} % of {len(test)} graphs left out")
