"""Which encoder a data set gets."""

import torch
from torch import Tensor

from sopool.data.base_encoder import Encoder
from sopool.data.edges import degrees
from sopool.data.encoders import (
    AttributeEncoder,
    ConcatEncoder,
    ConstantEncoder,
    DegreeEncoder,
    NodeLabelEncoder,
)
from sopool.data.errors import DataError
from sopool.data.store import PackedGraphs

LABELLED = ("MUTAG", "PTC", "PROTEINS", "NCI1", "DD")
BY_DEGREE = ("COLLAB", "IMDB-BINARY", "IMDB-MULTI")
FEATURELESS = ("REDDIT-BINARY", "REDDIT-MULTI-5K")


def paper_encoder(name: str, unknown: bool = True) -> Encoder:
    """The features that the paper's models get on one of its ten data sets (in its code, without ``unknown``)."""
    if name in LABELLED:
        return NodeLabelEncoder(unknown)
    if name in BY_DEGREE:
        return DegreeEncoder(unknown)
    if name in FEATURELESS:
        return ConstantEncoder()
    raise DataError(f"{name!r} is not a data set of the paper: {', '.join(LABELLED + BY_DEGREE + FEATURELESS)}.")


def default_encoder(store: PackedGraphs, unknown: bool = True) -> Encoder:
    """The paper's choice for its data sets; else node labels and attributes, as far as they are there, else degree."""
    if store.name in BY_DEGREE + FEATURELESS or (store.name in LABELLED and store.node_labels is not None):
        return paper_encoder(store.name, unknown)
    parts: list[Encoder] = [NodeLabelEncoder(unknown)] if has_node_labels(store) else []
    if has_node_attributes(store):
        parts.append(AttributeEncoder())
    return ConcatEncoder(parts) if len(parts) > 1 else parts[0] if parts else DegreeEncoder(unknown)


def has_node_labels(store: PackedGraphs) -> bool:
    """Whether nodes carry labels that say more than the structure does.

    The text format of GIN has a tag for every node: of social networks, whose nodes have no labels, that is 0
    everywhere, or the degree.
    """
    labels = store.node_labels
    if labels is None or store.name in BY_DEGREE + FEATURELESS:
        return False
    if store.name in LABELLED:
        return True
    if not labels.numel() or bool((labels == labels[0]).all()):
        return False
    return not _are_degrees(labels, store)


def has_node_attributes(store: PackedGraphs) -> bool:
    """Whether nodes carry attributes."""
    return store.node_attributes is not None and store.node_attributes.shape[1] > 0


def _are_degrees(labels: Tensor, store: PackedGraphs) -> bool:
    if any(isinstance(name, str) for name in store.node_label_names):
        return False
    possible = [name if 0 <= int(name) <= store.num_edges else -1 for name in store.node_label_names]  # of any size
    names = torch.tensor(possible, dtype=torch.long, device=labels.device)
    return bool((names[labels.long()] == degrees(store)).all())
