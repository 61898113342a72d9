"""A graph as a line of JSON, and how to read some."""

import io
import json

from sopool.data.formats.jsonl import read_jsonl

LINE = {
    "id": "ethanol",
    "nodes": 3,
    "edges": [[0, 1], [1, 2]],
    "directed": False,
    "label": "soluble",
    "node_labels": ["C", "C", "O"],
    "node_categories": {"charge": [0, 0, -1], "ring": ["no", "no", "no"]},
    "node_attributes": [[0.5, 1], [2, 3], [4, 5]],
    "edge_labels": ["single", "single"],
    "edge_categories": {"stereo": ["none", "any"]},
    "edge_attributes": [7, 8.5],
    "edge_weights": [1, 2],
    "graph_attributes": {"temperature": 20.5, "pressure": None},
}


def read(*records):
    return read_jsonl(io.StringIO("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records)))
