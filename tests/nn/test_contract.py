"""What every readout in the registry promises, tested on each. A new one is covered by its registry line."""

import pytest
import torch
from hypothesis import given
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.nn.aggr import Aggregation

from sopool.models.stack import stack
from sopool.nn import SegmentAggregation, make_readout
from sopool.ops import segment_sum
from tests.helpers.readouts import CHANNELS, SIZES, batch_of, every_own_readout, every_readout, readout_of
from tests.helpers.strategies import draw_rows, seeds, sizes


@every_readout
def test_is_an_aggregation_that_knows_its_width(name):
    readout = readout_of(name)
    x, ptr, _ = batch_of(SIZES)
    assert isinstance(readout, Aggregation)
    assert readout(x, ptr=ptr).shape == (len(SIZES), getattr(readout, "out_channels", CHANNELS))


@every_readout
@given(sizes=sizes, seed=seeds)
def test_index_is_ptr_is_unsorted_index(name, sizes, seed):
    readout = readout_of(name)
    x, ptr, index = batch_of(sizes, seed=seed)
    want = readout(x, ptr=ptr)
    torch.testing.assert_close(readout(x, index, dim_size=len(sizes)), want)
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(readout(x[shuffle], index[shuffle], dim_size=len(sizes)), want)


@every_readout
@given(sizes=sizes, seed=seeds)
def test_a_graph_does_not_see_its_batch(name, sizes, seed):
    readout = readout_of(name)
    x, ptr, _ = batch_of(sizes, seed=seed)
    alone = [readout(part, ptr=torch.tensor([0, len(part)])) for part in (x.split(sizes) if sizes else [])]
    torch.testing.assert_close(readout(x, ptr=ptr), torch.cat([readout(x[:0], ptr=ptr[:1]), *alone]))


@every_readout
def test_without_dim_size_trailing_empty_graphs_are_unknown(name):
    x, ptr, index = batch_of(SIZES)
    torch.testing.assert_close(readout_of(name)(x, index), readout_of(name)(x, ptr=ptr[:-1]))


@every_readout
def test_no_index_is_one_graph_and_no_rows_are_fine(name):
    readout = readout_of(name)
    x, *_ = batch_of([5])
    torch.testing.assert_close(readout(x), readout(x, ptr=torch.tensor([0, 5])))
    empty = readout(x[:0], torch.empty(0, dtype=torch.long), dim_size=2)
    assert torch.equal(empty, torch.zeros_like(empty))
    assert readout(x[:0], torch.empty(0, dtype=torch.long)).shape[0] == 0


@every_readout
def test_non_contiguous(name):
    x, ptr, _ = batch_of(SIZES)
    readout = readout_of(name)
    torch.testing.assert_close(readout(x.t().contiguous().t(), ptr=ptr), readout(x, ptr=ptr))


@every_own_readout
@pytest.mark.parametrize("dim", [0, 1, -2, -3])
def test_further_dimensions(name, dim):
    """Each of the other dimensions' slices is pooled by itself."""
    readout = readout_of(name)
    _, ptr, index = batch_of(SIZES)
    x = draw_rows(0, 2, len(index), CHANNELS)  # dim 1
    want = torch.stack([readout(part, ptr=ptr) for part in x])
    x, want = (t.movedim(1, dim) for t in (x, want))
    torch.testing.assert_close(readout(x, ptr=ptr, dim=dim), want)
    shuffle = torch.randperm(len(index))
    shuffled = x.index_select(dim, shuffle)
    torch.testing.assert_close(readout(shuffled, index[shuffle], dim_size=len(SIZES), dim=dim), want)


@every_readout
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_types_against_float64(name, dtype):
    x, ptr, _ = batch_of(SIZES, dtype)
    got = readout_of(name, dtype)(x, ptr=ptr)
    want = readout_of(name, dtype).double()(x.double(), ptr=ptr)
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), want, rtol=0.05, atol=0.02 * want.abs().max().item())


@every_own_readout
def test_gradients(name):
    readout = readout_of(name)
    x, ptr, _ = batch_of([3, 0, 1, 4])
    inputs = (x.requires_grad_(), *readout.parameters())

    def function(x, *parameters):
        named = dict(zip(dict(readout.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(readout, named, (x,), {"ptr": ptr})

    many = sum(p.numel() for p in readout.parameters()) > 30
    assert gradcheck(function, inputs, fast_mode=many)
    assert gradgradcheck(function, inputs, fast_mode=many)
    assert all(p.grad is None for p in readout.parameters())


@every_own_readout
def test_reset_parameters_draws_anew(name):
    readout = readout_of(name)
    before = [p.clone() for p in readout.parameters()]
    readout.reset_parameters()
    bound = CHANNELS**-0.5
    for old, new in zip(before, readout.parameters(), strict=True):
        assert not torch.equal(old, new)
        assert new.abs().max() <= bound


@every_own_readout
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"index": torch.tensor([0, 0, -1])}, r"index\[2\] is -1"),
        ({"index": torch.tensor([0, 0, 5]), "dim_size": 2}, r"index\[2\] is 5"),
        ({"ptr": torch.tensor([0, 2])}, "ptr ends at 2, but there are 3 rows"),
        ({"ptr": torch.tensor([0, 3, 2, 3])}, "goes down from 3 to 2"),
        ({"index": torch.tensor([0, 1])}, "index has 2 entries for 3 rows"),
    ],
)
def test_bad_input(name, given, says):
    with pytest.raises(ValueError, match=says):
        readout_of(name)(torch.ones(3, CHANNELS, dtype=torch.float64), **given)


@every_own_readout
def test_wrong_width_and_wrong_type(name):
    with pytest.raises(ValueError, match=f"x has 4 channels.*expects {CHANNELS}"):
        readout_of(name)(torch.ones(3, 4, dtype=torch.float64))
    with pytest.raises(TypeError, match=r"x has dtype torch.int64.*x\.float\(\)"):
        readout_of(name)(torch.ones(3, CHANNELS, dtype=torch.long), torch.zeros(3, dtype=torch.long))
    with pytest.raises(TypeError, match=r"index has dtype torch.float32"):
        readout_of(name)(torch.ones(3, CHANNELS, dtype=torch.float64), torch.zeros(3))
    with pytest.raises(ValueError, match="index is on meta, but the rows are on cpu"):
        readout_of(name)(torch.ones(3, CHANNELS), torch.zeros(3, dtype=torch.long, device="meta"), dim_size=1)
    with pytest.raises(ValueError, match="channels=0"):
        make_readout(name, 0)


def test_a_number_of_channels_that_is_no_integer():
    with pytest.raises(ValueError, match=r"channels=8\.0: it must be the number of node features, an integer"):
        make_readout("sopool-bimap", 8.0)


@every_readout
def test_features_of_another_type_than_the_parameters(name):
    """As NumPy's are, beside a network in float32."""
    readout = make_readout(name, CHANNELS)
    if list(readout.parameters()):
        with pytest.raises(TypeError, match=r"x has dtype torch.float64 and \w+ torch.float32: convert one"):
            readout(torch.ones(3, CHANNELS, dtype=torch.float64))


def test_rows_come_in_order_unless_a_readout_asks_for_the_order():
    """Then they come as they are, without a copy."""

    class Plain(SegmentAggregation):
        def pool(self, x, ptr):
            self.seen = x
            return segment_sum(x, ptr)

    class Asking(SegmentAggregation):
        def pool(self, x, ptr, order=None):
            self.seen = x
            self.order = order
            return segment_sum(x, ptr, order)

    x, _, index = batch_of(SIZES)
    shuffle = torch.randperm(len(x))
    shuffled = x[shuffle]
    mixed = index[shuffle]
    plain = Plain()
    asking = Asking()
    want = torch.zeros(len(SIZES), CHANNELS, dtype=x.dtype).index_add(0, index, x)
    for readout in (plain, asking):
        torch.testing.assert_close(readout(shuffled, mixed, dim_size=len(SIZES)), want)
    assert torch.equal(plain.seen, shuffled[mixed.argsort(stable=True)])
    assert asking.seen.data_ptr() == shuffled.data_ptr()
    assert torch.equal(mixed[asking.order], index)
    asking(x, index, dim_size=len(SIZES))
    assert asking.order is None


@every_own_readout
def test_a_stack_takes_an_index_too(name):
    """Two readouts side by side, each with half of the graphs, their rows in any order."""
    singles = [readout_of(name), make_readout(name, CHANNELS).double()]
    both = stack(singles)
    x, ptr, index = batch_of([3, 0, 4, 2])
    shuffle = torch.randperm(len(x))
    want = torch.cat([singles[0](x[:3], ptr=ptr[:3]), singles[1](x[3:], ptr=ptr[2:] - 3)])
    torch.testing.assert_close(both(x, ptr=ptr), want)
    torch.testing.assert_close(both(x[shuffle], index[shuffle], dim_size=4), want)


@every_own_readout
def test_a_stack_is_as_strict_about_types_and_widens_as_much(name):
    single = make_readout(name, CHANNELS)
    both = stack([single, single])
    x, ptr, _ = batch_of([3, 0, 4, 2])
    if any(parameter.is_floating_point() for parameter in both.parameters()):
        with pytest.raises(TypeError, match=r"x has dtype torch.float64 and \w+ torch.float32"):
            both(x, ptr=ptr)
    with torch.autocast("cpu", torch.bfloat16):
        want = torch.cat([single(x[:3].bfloat16(), ptr=ptr[:3]), single(x[3:].bfloat16(), ptr=ptr[2:] - 3)])
        torch.testing.assert_close(both(x.bfloat16(), ptr=ptr), want, rtol=1e-4, atol=1e-4)


@every_own_readout
def test_a_ptr_that_ends_early_is_noticed_with_further_dimensions(name):
    with pytest.raises(ValueError, match="ptr ends at"):
        readout_of(name)(torch.ones(2, 3, CHANNELS, dtype=torch.float64), ptr=torch.tensor([0, 2]))


def test_unknown_name():
    with pytest.raises(ValueError, match=r"no readout 'sopool-bimapp'. Did you mean 'sopool-bimap'\?"):
        make_readout("sopool-bimapp", 3)
