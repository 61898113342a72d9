"""What the columns of an encoder stand for, in words."""

from functools import singledispatch

from sopool.data.base_encoder import Encoder
from sopool.data.encoders import AttributeEncoder, ConcatEncoder, ConstantEncoder, DegreeEncoder, NodeLabelEncoder


@singledispatch
def feature_names(encoder: Encoder) -> list[str]:
    """A name for each column of a fitted encoder."""
    return [f"feature {column}" for column in range(encoder.width)]


@feature_names.register
def _(encoder: NodeLabelEncoder) -> list[str]:
    return [f"label {value}" for value in encoder.values] + ["unknown label"] * encoder.unknown


@feature_names.register
def _(encoder: DegreeEncoder) -> list[str]:
    return [f"degree {value}" for value in encoder.values] + ["unknown degree"] * encoder.unknown


@feature_names.register
def _(encoder: ConstantEncoder) -> list[str]:
    return ["constant"]


@feature_names.register
def _(encoder: AttributeEncoder) -> list[str]:
    return [f"attribute {column}" for column in range(encoder.width)]


@feature_names.register
def _(encoder: ConcatEncoder) -> list[str]:
    return [name for part in encoder.parts for name in feature_names(part)]
