import pytest

from sopool.data.features.encoders import (
    AttributeEncoder,
    CategoryEncoder,
    ConcatEncoder,
    ConstantEncoder,
    DegreeEncoder,
    NodeLabelEncoder,
)
from sopool.data.features.structural import LaplacianEncoder, RandomWalkEncoder
from sopool.data.pack import Graph, pack

RINGS = {"charge": [0, -1, 0], "ring": ["yes"] * 3}
STORE = pack([Graph(3, [[0, 1], [1, 0]], 0, ["C", "N", "C"], [[1.0, 2.0]] * 3, node_categories=RINGS)])


@pytest.mark.parametrize(
    ("encoder", "names"),
    [
        (NodeLabelEncoder(), ["label C", "label N", "unknown label"]),
        (NodeLabelEncoder(unknown=False), ["label C", "label N"]),
        (DegreeEncoder(), ["degree 0", "degree 1", "unknown degree"]),
        (ConstantEncoder(), ["constant"]),
        (CategoryEncoder(), ["charge -1", "charge 0", "unknown charge", "ring yes", "unknown ring"]),
        (CategoryEncoder(unknown=False), ["charge -1", "charge 0", "ring yes"]),
        (AttributeEncoder(), ["attribute 0", "attribute 1"]),
        (RandomWalkEncoder(2), ["return after 1 step", "return after 2 steps"]),
        (LaplacianEncoder(3), ["heat after time 1", "heat after time 2", "heat after time 4"]),
        (ConcatEncoder([ConstantEncoder(), AttributeEncoder()]), ["constant", "attribute 0", "attribute 1"]),
    ],
)
def test_every_column_has_a_name(encoder, names):
    assert encoder.fit(STORE).feature_names == names
    assert len(names) == encoder.width
