import pytest

from sopool.estimator.estimate import Estimate
from sopool.objectives import SingleLabel
from sopool.report.grids.estimates import no_better


def found(accuracy, balanced, largest, classes):
    scores = {"accuracy": [accuracy], "balanced_accuracy": [balanced]}
    alike = {"accuracy": [largest], "balanced_accuracy": [1 / classes]}
    return Estimate(SingleLabel(tuple(range(classes))), [scores], [alike])


@pytest.mark.parametrize(
    ("given", "balanced", "said"),
    [
        ((0.5, 0.5, 0.6, 2), False, "its accuracy is 50.0 % against 60.0 %"),
        ((0.1 + 0.2, 0.5, 0.3, 4), False, "its accuracy is 30.0 % against 30.0 %"),
        ((0.61, 0.3, 0.6, 2), False, ""),
        ((0.5, 0.51, 0.6, 2), True, ""),
        ((0.9, 0.25, 0.9, 4), True, "its balanced accuracy is 25.0 % against 25.0 %"),
    ],
)
def test_what_is_no_better_than_the_most_frequent_class_is_told(given, balanced, said):
    told = no_better(found(*given), balanced)
    assert said in told
    assert bool(said) == bool(told)
