import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sopool.cli.output import SafeConsole
from sopool.cli.progress import Bar, Lines, Tally, training_progress
from sopool.training.trainer import TrainingProgress


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_what_was_found_does_not_make_the_rest_look_quick(clock):
    tally = Tally(1000, 10, clock)
    for _ in range(5):
        tally.add(TrainingProgress(1, 100, finished=1))
    tally.add(TrainingProgress(1, 40))  # from a checkpoint
    assert (tally.done, tally.finished, tally.trained, tally.left, tally.score) == (540, 5, 0, None, None)
    for _ in range(6):
        clock.now += 2
        tally.add(TrainingProgress(2, 1, 0.5))
    assert tally.trained == 12
    assert tally.left == pytest.approx(1000 - 552)  # 2 model-epochs in 2 s
    assert tally.facts() == ["5/10 runs", "held-out accuracy 50.0 %", "0:07:28 left"]


def test_accuracy_is_that_of_late_and_weighs_models(clock):
    tally = Tally(1000, 10, clock)
    tally.add(TrainingProgress(4, 1, 0.9))
    tally.add(TrainingProgress(1, 1, 0.4))
    assert tally.score == pytest.approx(0.8)
    for _ in range(50):
        tally.add(TrainingProgress(1, 1, 0.25))
    assert tally.score == pytest.approx(0.25)


def test_two_workers_reporting_at_once_say_nothing_of_the_time_left(clock):
    tally = Tally(1000, 10, clock)
    tally.add(TrainingProgress(4, 1, 0.9))
    clock.now += 1e-3
    tally.add(TrainingProgress(4, 1, 0.9))
    assert tally.left is None


@given(st.integers(1, 400), st.floats(0.001, 100))
def test_lines_are_few(epochs, seconds):
    """One for each tenth, and else at most one in 10 s; never twice the same."""
    clock = Clock()
    tally = Tally(epochs, 1, clock)
    printed = []
    lines = Lines(printed.append)
    for done in range(1, epochs + 1):
        clock.now += seconds
        tally.add(TrainingProgress(1, 1, 0.5, finished=int(done == epochs)))
        lines.show(tally)
    assert len(printed) <= 10 + epochs * seconds / 10
    assert len(set(printed)) == len(printed)
    assert printed[-1].startswith(f"100 %: {epochs}/{epochs} model-epochs, 1/1 runs")


def test_nothing_is_printed_for_what_was_found(capsys):
    tally = Tally(100, 1)
    with training_progress(tally) as report:
        report(TrainingProgress(1, 100, finished=1))
    assert capsys.readouterr() == ("", "")


def test_a_stopped_run_is_told_at_once(capsys):
    with training_progress(Tally(100, 1)) as report:
        report(TrainingProgress(1, 1, None, 0, ("the loss of [sum] is not finite.",)))
        assert capsys.readouterr().err == "warning: the loss of [sum] is not finite.\n"


def test_the_bar(clock):
    console = SafeConsole(file=io.StringIO(), force_terminal=True, width=80, _environ={})
    bar = Bar(console)
    tally = Tally(200, 10, clock)
    for _ in range(3):
        clock.now += 5
        tally.add(TrainingProgress(10, 1, 0.843, finished=3))
        bar.show(tally)
    bar.close()
    text = console.file.getvalue()
    assert "training" in text
    assert "15 %  9/10 runs  held-out accuracy 84.3 %  0:01:25 left" in text
    assert "…" not in text
