import pytest

from sopool.estimator.estimate import Estimate
from sopool.report.grids.estimates import no_better


def figures(accuracy, balanced, largest, classes):
    return Estimate([{"accuracy": accuracy, "balanced_accuracy": balanced}], largest, classes).to_json()


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
    found = no_better(figures(*given), balanced)
    assert said in found
    assert bool(said) == bool(found)
