"""Read, convert and store data sets of graphs, and encode the features of their nodes."""

from sopool._runtime.packages import EXTRAS, require

require("sopool.data", *EXTRAS["estimator"])

from sopool.data.division import keep_copies_together, with_split
from sopool.data.features.edge_features import EdgeEncoder, EdgeFeatures
from sopool.data.features.encoders import (
    AttributeEncoder,
    CategoryEncoder,
    ConcatEncoder,
    ConstantEncoder,
    DegreeEncoder,
    NodeLabelEncoder,
    default_encoder,
    encoder_from_json,
    paper_encoder,
)
from sopool.data.features.graph_attributes import GraphAttributeEncoder
from sopool.data.features.node_features import NodeFeatures
from sopool.data.features.structural import LaplacianEncoder, RandomWalkEncoder
from sopool.data.formats.convert import from_networkx, from_pyg, to_networkx, to_pyg
from sopool.data.formats.molecule_features import MoleculeFeatures
from sopool.data.formats.packed import load_graphs, save_graphs
from sopool.data.graphs import GraphBatch, PackedGraphs, concatenate
from sopool.data.names import CategoryColumn
from sopool.data.pack import Graph, pack
from sopool.data.sources.catalogue import PAPER, DatasetNote, find, list_datasets, load
from sopool.data.splits import random_folds, stratified_folds
from sopool.data.synthetic import make_agreement, make_distant, make_measurements, make_rings
from sopool.errors import DataError

__all__ = [
    "PAPER",
    "AttributeEncoder",
    "CategoryColumn",
    "CategoryEncoder",
    "ConcatEncoder",
    "ConstantEncoder",
    "DataError",
    "DatasetNote",
    "DegreeEncoder",
    "EdgeEncoder",
    "EdgeFeatures",
    "Graph",
    "GraphAttributeEncoder",
    "GraphBatch",
    "LaplacianEncoder",
    "MoleculeFeatures",
    "NodeFeatures",
    "NodeLabelEncoder",
    "PackedGraphs",
    "RandomWalkEncoder",
    "concatenate",
    "default_encoder",
    "encoder_from_json",
    "find",
    "from_networkx",
    "from_pyg",
    "keep_copies_together",
    "list_datasets",
    "load",
    "load_graphs",
    "make_agreement",
    "make_distant",
    "make_measurements",
    "make_rings",
    "pack",
    "paper_encoder",
    "random_folds",
    "save_graphs",
    "stratified_folds",
    "to_networkx",
    "to_pyg",
    "with_split",
]
