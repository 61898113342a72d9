import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from sopool.nn import (
    AttentionalSecondOrderAggregation,
    BilinearSecondOrderAggregation,
    CovarianceAggregation,
    MultiHeadSecondOrderAggregation,
    SecondOrderAggregation,
    SegmentAggregation,
)
from sopool.nn.aggr.normalize import FOR_MATRICES, matrix_sqrt, signed_sqrt
from sopool.ops import segment_sum
from tests.helpers.strategies import draw_rows, seeds

PTR = torch.tensor([0, 4, 4, 9])
H = draw_rows(0, 9, 3)


def pooled(**options):
    return SecondOrderAggregation(**options)(H, ptr=PTR)


@given(seeds)
def test_triangle_keeps_inner_products(seed):
    h = draw_rows(seed, 9, 3)
    whole = SecondOrderAggregation()(h, ptr=PTR)
    half = SecondOrderAggregation(triangle=True)(h, ptr=PTR)
    assert half.shape == (3, 6)
    torch.testing.assert_close(half @ half.T, whole @ whole.T, rtol=1e-12, atol=1e-12)


def test_size_and_trace():
    s = pooled().view(3, 3, 3)
    torch.testing.assert_close(pooled(normalize="size").view(3, 3, 3), s / torch.tensor([4, 1, 5]).view(3, 1, 1))
    trace = s.diagonal(dim1=1, dim2=2).sum(1).clamp(min=1)  # the empty graph's is 0
    torch.testing.assert_close(pooled(normalize="trace").view(3, 3, 3), s / trace.view(3, 1, 1), rtol=1e-5, atol=0)


@given(seeds, st.floats(-6, 6))
def test_the_trace_is_one_at_any_scale_of_the_features(seed, exponent):
    """In float32, with finite gradients, also of a graph whose features are all 0."""
    torch.manual_seed(0)
    for readout in (SecondOrderAggregation(normalize="trace"), BilinearSecondOrderAggregation(3, 3, normalize="trace")):
        h = draw_rows(seed, 9, 3).float() + 2
        h[:4] = 0
        scaled = (h * 10**exponent).requires_grad_()
        found = readout(scaled, ptr=PTR)
        torch.testing.assert_close(found, readout(h, ptr=PTR), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(found[2].view(3, 3).trace(), torch.tensor(1.0))
        (gradient,) = torch.autograd.grad(found.square().sum(), scaled)
        assert gradient.isfinite().all()
        assert not found[:2].any()


def test_centred_rows_that_are_all_the_same_have_no_trace():
    same = draw_rows(0, 1, 3).float().expand(9, 3)
    assert CovarianceAggregation(3, normalize="trace")(same, ptr=PTR).abs().max() < 1e-4


def test_sqrt_is_signed_and_of_length_one():
    got = pooled(normalize="sqrt")
    s = pooled()
    assert torch.equal(got.sign(), s.sign())
    torch.testing.assert_close(got.norm(dim=1), torch.tensor([1.0, 0, 1], dtype=torch.float64))
    torch.testing.assert_close(got[0].square() * s[0].abs().sum(), s[0].abs(), rtol=1e-4, atol=1e-4)


@given(seeds, st.floats(-12, 6))
def test_signed_sqrt_has_a_finite_slope_everywhere(seed, exponent):
    values = torch.cat([torch.zeros(1), 10**exponent * draw_rows(seed, 4)]).requires_grad_()
    (gradient,) = torch.autograd.grad(signed_sqrt(values).sum(), values)
    assert gradient.isfinite().all()
    assert (gradient >= 0).all()


@given(seeds, st.integers(1, 6), st.integers(6, 40))
def test_matrix_sqrt_squares_to_the_matrix(seed, f, n):
    h = draw_rows(seed, n, f)
    s = (h.T @ h)[None]
    values, vectors = torch.linalg.eigh(s)
    want = vectors @ values.clamp(min=0).sqrt().diag_embed() @ vectors.mT
    torch.testing.assert_close(matrix_sqrt(s, iterations=30), want, rtol=1e-5, atol=1e-5)
    close = matrix_sqrt(s)
    assert float((close @ close - s).norm() / s.norm()) < 1e-2


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1.0, 1e4, 1e12, 1e18])
def test_matrix_sqrt_is_stable_where_nodes_are_few(n, scale):
    h = (scale * draw_rows(0, n, 8, dtype=torch.float32)).requires_grad_()
    root = SecondOrderAggregation(normalize="matrix-sqrt")(h, ptr=torch.tensor([0, n])).view(8, 8)
    (gradient,) = torch.autograd.grad(root.sum(), h)
    assert root.isfinite().all()
    assert gradient.isfinite().all()
    s = h.T @ h
    torch.testing.assert_close(root @ root, s, rtol=0, atol=1e-2 * float(s.detach().double().norm()))


@given(seeds, st.floats(-12, 12))
def test_matrix_sqrt_does_not_see_the_scale(seed, exponent):
    h = draw_rows(seed, 9, 4).float()
    s = (h.T @ h)[None]
    torch.testing.assert_close(
        matrix_sqrt(10**exponent * s) / 10 ** (exponent / 2), matrix_sqrt(s), rtol=1e-4, atol=1e-5
    )


def test_the_root_of_the_mean_product():
    got = pooled(normalize="size+matrix-sqrt").view(3, 3, 3)
    s = pooled().view(3, 3, 3)
    torch.testing.assert_close(got, matrix_sqrt(s / torch.tensor([4, 1, 5]).view(3, 1, 1)))


@pytest.mark.parametrize("normalize", FOR_MATRICES)
@pytest.mark.parametrize("triangle", [False, True])
@pytest.mark.parametrize("moments", [(2,), (1, 2)])
def test_options_work_together(normalize, triangle, moments):
    options = {"normalize": normalize, "triangle": triangle, "moments": moments}
    for readout in (
        SecondOrderAggregation(3, **options),
        BilinearSecondOrderAggregation(3, 2, **options),
        CovarianceAggregation(3, **options),
        CovarianceAggregation(3, rank=2, **options),
    ):
        readout = readout.double()
        relu = H.relu().requires_grad_()  # exact zeros
        out = readout(relu, ptr=PTR)
        assert out.shape == (3, readout.out_channels)
        assert torch.equal(out[1], torch.zeros_like(out[1]))
        (gradient,) = torch.autograd.grad(out.sum(), relu)
        assert gradient.isfinite().all()
        half = readout.to(torch.bfloat16)(H.to(torch.bfloat16), ptr=PTR)
        assert half.dtype == torch.bfloat16
        assert half.isfinite().all()


@pytest.mark.parametrize("normalize", FOR_MATRICES)
def test_gradients_of_the_normalisations(normalize):
    assert gradcheck(lambda h: SecondOrderAggregation(normalize=normalize)(h, ptr=PTR), (H.clone().requires_grad_(),))


def test_moments_may_be_read_once():
    assert BilinearSecondOrderAggregation(3, 2, moments=iter((1, 2))).moments == (1, 2)


def test_first_moment_is_appended():
    sums = torch.stack([H[:4].sum(0), torch.zeros(3), H[4:].sum(0)])
    torch.testing.assert_close(pooled(moments=(1, 2)), torch.cat([pooled(), sums], 1))
    means = sums / torch.tensor([4, 1, 5]).view(3, 1)
    torch.testing.assert_close(pooled(moments=[1, 2], normalize="size")[:, -3:], means)
    torch.testing.assert_close(CovarianceAggregation(3, moments=(1, 2))(H, ptr=PTR)[:, -3:], sums)


def test_slow_mapping_starts_alike_and_moves_less():
    readouts = []
    for lr_scale in (1.0, 0.1):
        torch.manual_seed(0)
        readouts.append(BilinearSecondOrderAggregation(3, 2, lr_scale=lr_scale).double())
    plain, slow = readouts
    torch.testing.assert_close(slow.mapping, plain.mapping)
    torch.testing.assert_close(slow(H, ptr=PTR), plain(H, ptr=PTR))
    start = plain.mapping.detach().clone()
    for readout in readouts:
        adam = torch.optim.Adam(readout.parameters(), 0.01, eps=0)
        readout(H, ptr=PTR).sum().backward()
        adam.step()
    torch.testing.assert_close(slow.mapping - start, 0.1 * (plain.mapping - start))


@pytest.mark.parametrize("lr_scale", [0, -1, float("nan"), float("inf")])
def test_mapping_must_learn_at_some_speed(lr_scale):
    with pytest.raises(ValueError, match=r"lr_scale=.*positive number.*freeze"):
        BilinearSecondOrderAggregation(3, 2, lr_scale=lr_scale)


@pytest.mark.parametrize(
    "make", [AttentionalSecondOrderAggregation, lambda f, **o: MultiHeadSecondOrderAggregation(f, 2, **o)]
)
def test_what_attention_may_be_asked_for(make):
    torch.manual_seed(0)
    plain = make(3).double()
    for normalize in ("size", "sqrt"):
        readout = make(3, normalize=normalize).double()
        readout.load_state_dict(plain.state_dict())
        out = readout(H, ptr=PTR)
        want = plain(H, ptr=PTR)
        if normalize == "size":
            torch.testing.assert_close(out, want / torch.tensor([4, 1, 5]).view(3, 1))
        else:
            assert torch.equal(out.sign(), want.sign())
            torch.testing.assert_close(out.norm(dim=1), torch.tensor([1.0, 0, 1], dtype=torch.float64))
    for normalize in ("trace", "matrix-sqrt"):
        with pytest.raises(ValueError, match=f"normalize='{normalize}'.*needs a symmetric matrix.*'sqrt'"):
            make(3, normalize=normalize)
    for option in ("triangle", "moments"):
        with pytest.raises(TypeError, match=option):
            make(3, **{option: True})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"normalize": "trase"}, r"normalize='trase'.*'trace'"),
        ({"moments": (1,)}, r"moments=\(1,\)"),
        ({"moments": (1, 2, 3)}, r"moments=\(1, 2, 3\)"),
        ({"rank": 0}, "rank=0"),
    ],
)
def test_wrong_options(wrong, says):
    with pytest.raises(ValueError, match=says):
        BilinearSecondOrderAggregation(3, **wrong)
    with pytest.raises(ValueError, match="heads=0"):
        MultiHeadSecondOrderAggregation(3, 0)


def test_repr_shows_channels_and_what_differs():
    assert repr(SecondOrderAggregation()) == "SecondOrderAggregation()"
    assert repr(BilinearSecondOrderAggregation(160)) == "BilinearSecondOrderAggregation(160)"
    shown = repr(BilinearSecondOrderAggregation(160, rank=16, triangle=True, normalize="size", moments=[1, 2]))
    assert shown == "BilinearSecondOrderAggregation(160, rank=16, triangle=True, normalize='size', moments=(1, 2))"
    assert (
        repr(AttentionalSecondOrderAggregation(160, bias=True)) == "AttentionalSecondOrderAggregation(160, bias=True)"
    )
    assert repr(MultiHeadSecondOrderAggregation(160, 4)) == "MultiHeadSecondOrderAggregation(160, heads=4)"
    assert repr(CovarianceAggregation(160, rank=32)) == "CovarianceAggregation(160, rank=32)"


def test_repr_of_a_readout_of_a_user_s_own():
    """It need not keep what it was made with."""

    class Mapped(SegmentAggregation):
        def __init__(self, channels, scale, hidden=4, **options):
            super().__init__(channels)
            self.scale = scale
            self.lin = torch.nn.Linear(channels, hidden, **options)

        def pool(self, x, ptr):
            return segment_sum(self.scale * self.lin(x), ptr)

    assert repr(Mapped(3, torch.tensor(2.0), 5, bias=False)) == "Mapped(3, scale=tensor(2.))"
    with pytest.raises(ValueError, match=r"x has 2 channels .*, Mapped\(3, scale=1\) expects 3"):
        Mapped(3, 1)(torch.zeros(4, 2))


def test_repr_of_one_whose_option_has_the_name_of_a_method():
    class Typed(SegmentAggregation):
        def __init__(self, channels, type="a"):
            super().__init__(channels)
            self.kind = type

    assert repr(Typed(3, "b")) == "Typed(3)"


def test_out_channels():
    assert SecondOrderAggregation().out_channels is None
    assert SecondOrderAggregation(triangle=True).out_channels is None
    assert BilinearSecondOrderAggregation(160, triangle=True, moments=(1, 2)).out_channels == 32 * 33 // 2 + 32
    assert CovarianceAggregation(160).out_channels == 160**2
