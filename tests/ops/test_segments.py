"""Bad input at the door of the primitive: what was given, and what to do."""

import pytest
import torch

from sopool.ops import segment_apply, segment_gram
from sopool.ops.segment.largest import segment_max
from tests.helpers.backends import by_kernels, on_cpu

X = torch.randn(6, 3)
PTR = torch.tensor([0, 2, 6])


def gram(**changed):
    given = {"x": X, "y": X[:, :2], "ptr": PTR, "index": None, "dim_size": None} | changed
    if "index" in changed:
        given["ptr"] = None
    return segment_gram(**given)


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"x": torch.randn(6)}, ValueError, r"x has shape \[6\]"),
        ({"y": torch.randn(2, 6, 3)}, ValueError, r"y has shape \[2, 6, 3\]"),
        ({"y": torch.randn(5, 2)}, ValueError, "x has 6 rows and y has 5"),
        ({"x": torch.ones(6, 3, dtype=torch.long)}, TypeError, r"x has dtype torch.int64.*x\.float\(\)"),
        ({"y": X.double()}, TypeError, "x has dtype torch.float32 and y torch.float64"),
        ({"y": X.to("meta")}, ValueError, "x is on cpu and y on meta"),
        ({"ptr": None}, ValueError, "Neither ptr nor index"),
        ({"ptr": [0, 6]}, TypeError, "ptr is a list"),
        ({"ptr": PTR.float()}, TypeError, r"ptr has dtype torch.float32.*ptr\.long\(\)"),
        ({"ptr": PTR.view(1, 3)}, ValueError, r"ptr has shape \[1, 3\]"),
        ({"ptr": PTR.to("meta")}, ValueError, "ptr is on meta, but the rows are on cpu"),
        ({"ptr": PTR[:0]}, ValueError, "ptr is empty"),
        ({"dim_size": 3}, ValueError, "dim_size=3, but ptr has 3 entries, which means 2 segments"),
        ({"index": torch.zeros(6)}, TypeError, "index has dtype torch.float32"),
        ({"index": torch.zeros(6, dtype=torch.bool)}, TypeError, "index has dtype torch.bool"),
        ({"index": torch.zeros(5, dtype=torch.long)}, ValueError, "index has 5 entries for 6 rows"),
        ({"index": torch.tensor([0, 0, -1, 1, 1, 1])}, ValueError, r"index\[2\] is -1"),
        ({"index": torch.tensor([0, 0, 0, 1, 7, 1]), "dim_size": 4}, ValueError, r"index\[4\] is 7.*at least 8"),
        ({"index": torch.zeros(6, dtype=torch.long), "dim_size": -1}, ValueError, "dim_size=-1 is negative"),
    ],
)
def test_errors(changed, error, says):
    with pytest.raises(error, match=says):
        gram(**changed)


@on_cpu
@pytest.mark.parametrize(
    ("ptr", "says"),
    [
        ([1, 2, 6], "ptr starts at 1"),
        ([0, 4, 2, 6], "goes down from 4 to 2 at position 2"),
        ([0, 2, 5], "ptr ends at 5, but there are 6 rows"),
        ([0, 2, 8], "ptr ends at 8, but there are 6 rows"),
    ],
)
def test_errors_in_the_values_of_ptr(ptr, says):
    with pytest.raises(ValueError, match=says):
        gram(ptr=torch.tensor(ptr))


@by_kernels
def test_rows_past_the_end_of_ptr_are_spare_where_kernels_serve():
    """What kernels assert of ptr is asserted on the device, which an interpreter does not do; the rest is checked."""
    assert torch.equal(segment_max(X, torch.tensor([0, 2, 5])), segment_max(X[:5], torch.tensor([0, 2, 5])))
    with pytest.raises(ValueError, match="ptr ends at 8, but there are 6 rows"):
        segment_max(X, torch.tensor([0, 2, 8]))


def test_errors_of_apply():
    with pytest.raises(ValueError, match=r"s has shape \[2, 3, 4\]"):
        segment_apply(X, torch.randn(2, 3, 4), PTR)
    with pytest.raises(ValueError, match="dim_size=5, but ptr"):
        segment_apply(X, torch.randn(5, 3, 3), PTR)


@on_cpu
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ptr": torch.tensor([0, 9])}, "ptr ends at 9"),
        ({"index": torch.tensor([0, 1, 2, 3, 4, 9]), "dim_size": 5}, r"index\[5\] is 9"),
    ],
)
def test_compiled_graphs_keep_the_checks(given, says, fresh_compiler):
    compiled = torch.compile(segment_gram, fullgraph=True, dynamic=True, backend="aot_eager")
    with pytest.raises(ValueError, match=says):
        compiled(X, X, **given)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_any_integer_will_do(dtype):
    index = torch.tensor([0, 0, 1, 1, 1, 1], dtype=dtype)
    assert torch.equal(gram(index=index), gram())
    assert torch.equal(gram(ptr=PTR.to(dtype)), gram())


def test_no_rows_and_no_segments():
    empty = torch.empty(0, dtype=torch.long)
    assert segment_gram(X[:0], X[:0], index=empty).shape == (0, 3, 3)
    assert torch.equal(segment_gram(X[:0], X[:0], index=empty, dim_size=2), torch.zeros(2, 3, 3))
