import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.data import make_agreement
from sopool.estimator import GraphClassifier
from sopool.estimator.fitting import LEAST_STEPS, schedule_for


@given(st.integers(1, 10**7), st.sampled_from([1, 32, 128]))
def test_an_epoch_is_a_pass_of_at_least_ten_batches(graphs, batch_size):
    steps = schedule_for(graphs, batch_size).steps
    assert steps >= LEAST_STEPS
    assert steps == LEAST_STEPS or graphs <= steps * batch_size < graphs + batch_size


@given(st.integers(1, 6400))
def test_up_to_6400_graphs_the_epochs_are_as_many(graphs):
    assert schedule_for(graphs, 32)[1:] == (100, 30, 50)


@given(st.integers(6400, 10**6), st.integers(1, 10**5))
def test_more_graphs_are_seen_more_often_in_all_but_each_less_often(graphs, more):
    one, other = (schedule_for(count, 32) for count in (graphs, graphs + more))
    assert one.epochs >= other.epochs >= 1
    assert (graphs + more) * (other.epochs + 0.5) >= graphs * (one.epochs - 0.5)  # up to rounding
    assert one.epochs == pytest.approx(8000 / graphs**0.5, abs=0.5)
    assert one.patience == pytest.approx(0.3 * one.epochs, abs=0.7)
    assert one.halve_every == pytest.approx(0.5 * one.epochs, abs=0.8)


def test_a_given_number_of_epochs_and_of_steps_is_kept():
    seen = []
    model = GraphClassifier(n_models=1, hidden=4, epochs=2, steps=3, batch_size=5, callback=seen.append)
    model.fit(make_agreement(40))
    assert [(one.epoch, one.epochs, one.graphs) for one in seen] == [(1, 2, 15), (2, 2, 15)]
