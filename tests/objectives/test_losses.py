import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sopool.objectives import LOSSES, MultiLabel, Regression, SingleLabel

CPU = torch.device("cpu")
META = torch.device("meta")
NAMES = ("a", "b", "c")
PLAIN = {"squared": F.mse_loss, "absolute": F.l1_loss, "huber": F.smooth_l1_loss}


def loss_of(members, scores, truth):
    return members[0].make_loss(members, CPU, torch.float64)(scores, truth)


def regressions(loss, models=2):
    return [
        Regression(NAMES, loss_name=loss, shift=(m + 1.0, -5.0, 0.0), scale=(2.0, m + 0.5, 1e-3)) for m in range(models)
    ]


def drawn(seed, models=2, graphs=5, binary=False, missing=0.4):
    rng = torch.Generator().manual_seed(seed)
    shape = (models, graphs, len(NAMES))
    scores = torch.randn(shape, generator=rng, dtype=torch.float64)
    truth = torch.randn(shape, generator=rng, dtype=torch.float64)
    truth = (truth > 0).double() if binary else truth * torch.tensor([2.0, 1.0, 1e-3]).double() + 0.1
    gone = torch.rand(shape, generator=rng) < missing
    return scores, truth.masked_fill(gone, torch.nan)


@given(st.integers(0, 1000), st.sampled_from(LOSSES))
def test_the_mean_loss_of_a_model_is_that_of_its_known_standardized_targets(seed, name):
    scores, truth = drawn(seed)
    members = regressions(name)
    found = loss_of(members, scores, truth).mean(1)
    for m, one in enumerate(members):
        known = ~truth[m].isnan()
        wanted = (
            (truth[m] - torch.tensor(one.shift, dtype=torch.float64)) / torch.tensor(one.scale, dtype=torch.float64)
        )[known]
        expected = PLAIN[name](scores[m][known], wanted) if known.any() else torch.zeros(())
        assert found[m].item() == pytest.approx(expected.item(), rel=1e-9)
        outputs = one.outputs(scores[m].numpy())
        assert one.loss(outputs, truth[m].numpy()) == pytest.approx(expected.item(), rel=1e-9)


@given(st.integers(0, 1000), st.sampled_from([None, (1.0, 3.0, 0.5, 2.0, 1.0, 1.0)]))
def test_the_mean_loss_of_labels_is_that_of_the_known_ones(seed, weights):
    scores, truth = drawn(seed, binary=True)
    one = MultiLabel(NAMES, class_weights=weights)
    found = loss_of([one, one], scores, truth).mean(1)
    pairs = torch.tensor(weights or (1.0,) * 6, dtype=torch.float64).view(3, 2)
    for m in range(2):
        known = ~truth[m].isnan()
        own = torch.where(truth[m] > 0, pairs[:, 1], pairs[:, 0])[known]
        plain = F.binary_cross_entropy_with_logits(scores[m][known], truth[m][known], own)
        expected = plain.item() if known.any() else 0.0
        assert found[m].item() == pytest.approx(expected)
        assert one.loss(scores[m].numpy(), truth[m].numpy()) == pytest.approx(expected)


@pytest.mark.parametrize("objective", [*LOSSES, "labels"])
def test_the_gradient_agrees_with_finite_differences_and_is_zero_where_truth_is_missing(objective):
    scores, truth = drawn(3, binary=objective == "labels")
    members = [MultiLabel(NAMES)] * 2 if objective == "labels" else regressions(objective)
    loss = members[0].make_loss(members, CPU, torch.float64)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, truth), scores)
    (gradient,) = torch.autograd.grad(loss(scores, truth).sum(), scores)
    assert gradient.isfinite().all()
    assert (gradient[truth.isnan()] == 0).all()
    assert (gradient[~truth.isnan()] != 0).all()


@pytest.mark.parametrize("objective", ["squared", "labels"])
def test_no_known_value_gives_no_loss_and_no_gradient(objective):
    scores, truth = drawn(0, missing=2.0)
    members = [MultiLabel(NAMES)] * 2 if objective == "labels" else regressions(objective)
    scores.requires_grad_()
    found = loss_of(members, scores, truth)
    assert found.tolist() == torch.zeros(2, 5).tolist()
    assert not torch.autograd.grad(found.sum(), scores)[0].any()
    assert members[0].loss(scores[0].detach().numpy(), truth[0].numpy()) == 0.0


def test_the_loss_of_one_model_does_not_depend_on_the_others():
    scores, truth = drawn(1)
    members = regressions("huber")
    together = loss_of(members, scores, truth)
    for m in range(2):
        assert torch.equal(together[m : m + 1], loss_of([members[m]], scores[m : m + 1], truth[m : m + 1]))


def test_classes_have_the_cross_entropy_of_pytorch():
    scores = torch.randn(2, 5, 3, dtype=torch.float64)
    truth = torch.randint(3, (2, 5))
    weights = (1.0, 2.0, 0.5)
    one = SingleLabel(NAMES, class_weights=weights)
    expected = F.cross_entropy(
        scores.flatten(0, 1), truth.flatten(), torch.tensor(weights, dtype=torch.float64), reduction="none"
    )
    assert torch.equal(loss_of([one, one], scores, truth).flatten(), expected)


def test_targets_are_standardized_by_known_values_only():
    truth = np.array([[1.0, np.nan, 5.0], [3.0, np.nan, 5.0], [np.nan, 7.0, 5.0]])
    one = Regression(NAMES).fit(truth)
    assert one.shift == (2.0, 7.0, 5.0)
    assert one.scale == (1.0, 1.0, 1.0)  # a single value, and equal values, have no spread
    assert Regression(("a",)).fit(np.full((7, 1), 0.1)).scale == (1.0,)  # although the mean is rounded
    assert Regression(("a",)).fit(np.array([[1e-200], [3e-200]])).scale == (1.0,)  # its square is 0 in double precision
    assert Regression(NAMES).fit(np.full((2, 3), np.nan)).shift == (0.0, 0.0, 0.0)


def test_a_large_mean_costs_no_precision():
    truth = 1e9 + np.array([[0.0], [1e-3], [2e-3]])
    one = Regression(("energy",)).fit(truth)
    assert one.scale == (pytest.approx(truth.std(), rel=1e-3),)
    standard = (truth - one.shift) / one.scale
    loss = loss_of([one], torch.from_numpy(standard)[None].float(), torch.from_numpy(truth)[None])
    assert loss.abs().max() < 1e-6
    assert loss_of([one], torch.zeros(1, 3, 1), torch.from_numpy(truth)[None]).mean() == pytest.approx(1, rel=1e-3)
    assert np.abs(one.outputs(standard) - truth).max() < 1e-6


def test_a_metric_is_chosen_by_the_loss():
    metrics = [Regression(NAMES, loss_name=name).metric for name in LOSSES]
    assert metrics == ["rmse", "mae", "mae"]


class OnDevice(TorchDispatchMode):
    """Refuses operators that are given a tensor of another device, which they would copy there and wait for."""

    def __torch_dispatch__(self, operator, types, given=(), named=None):
        out = operator(*given, **(named or {}))
        elsewhere = [one for one in tree_leaves((given, named)) if isinstance(one, torch.Tensor) and one.device != META]
        assert not elsewhere, f"{operator} is given {elsewhere}"
        return out


@pytest.mark.parametrize("name", [*LOSSES, "labels", "weighted labels", "classes", "weighted classes"])
def test_neither_a_loss_nor_its_gradient_waits_for_the_device(name):
    """A captured step may not: tensors of the meta device have shapes and no values to ask for."""
    truth = torch.zeros((2, 5) if "classes" in name else (2, 5, 3), dtype=torch.long if "classes" in name else None)
    weights = (1.0, 2.0, 0.5) if "weighted" in name else None
    members = {
        "labels": [MultiLabel(NAMES, class_weights=weights and weights * 2)] * 2,
        "classes": [SingleLabel(NAMES, class_weights=weights)] * 2,
    }.get(name.removeprefix("weighted "))
    members = members or regressions(name)
    scores = torch.zeros(2, 5, 3, device=META, requires_grad=True)
    loss = members[0].make_loss(members, META, torch.float32)
    truth = truth.double().to(META) if truth.is_floating_point() else truth.to(META)
    with OnDevice():
        (gradient,) = torch.autograd.grad(loss(scores, truth).sum(), scores)
    assert gradient.shape == scores.shape
