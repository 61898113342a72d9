"""Which encoder a data set gets."""

from sopool.data.base_encoder import Encoder
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
    parts: list[Encoder] = [] if store.node_labels is None else [NodeLabelEncoder(unknown)]
    if store.node_attributes is not None and store.node_attributes.shape[1]:
        parts.append(AttributeEncoder())
    return ConcatEncoder(parts) if len(parts) > 1 else parts[0] if parts else DegreeEncoder(unknown)
