import numpy as np
import pytest

from sopool.estimator.estimate import Estimate
from sopool.objectives import MultiLabel, Regression, SingleLabel
from sopool.objectives.calibration import Calibration
from sopool.report.grids.estimates import calibration_grid, estimate_grid, no_better, scores_grid, usual_metrics


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


def several(folds, objective=None):
    objective = objective or Regression(("mass", "charge"), units=(2.0, 0.5))
    alike = [{"rmse": [2.0, 0.5], "r2": [0.0, 0.0]}] * len(folds)
    return Estimate(objective, folds, alike)


def test_each_target_has_a_row_and_the_average_is_in_a_unit_that_they_share():
    found = several([{"rmse": [1.0, 0.3], "r2": [0.5, None]}, {"rmse": [2.0, 0.2], "r2": [0.7, 0.1]}])
    grid = estimate_grid(found, ["rmse", "r2"])
    assert grid.columns == ["target", "RMSE", "R2"]
    rows = {row[0].text: [cell.value for cell in row[1:]] for row in grid.rows}
    assert rows["mass"] == pytest.approx([1.5, 0.6])
    assert rows["charge"] == pytest.approx([0.25, 0.1])
    assert rows["average"] == pytest.approx([np.mean([0.55, 0.7]), np.mean([0.5, 0.4])])
    assert rows["baseline"] == pytest.approx([1.0, 0.0])
    (note,) = grid.notes
    assert "Baseline: the average for always predicting the mean of the training graphs." in note
    assert "The average of RMSE is in standard deviations of the targets" in note
    assert "R2 cannot be computed in some folds, which have too few known values, for charge; averages leave" in note


def test_a_single_number_has_a_row_for_each_metric():
    scores = [{"rmse": [1.25], "mae": [1.0]}, {"rmse": [1.5], "mae": [1.1]}]
    found = Estimate(Regression(("mass",)), scores, [{"rmse": [2.0], "mae": [1.5]}] * 2)
    grid = estimate_grid(found, ["rmse", "mae"])
    assert [row[0].text for row in grid.rows] == ["RMSE", "MAE", "RMSE of predicting the mean of the training graphs"]
    assert grid.rows[0][1].text.startswith("1.3")
    assert "percent" not in grid.title
    assert no_better(found, balanced=False) == ""
    worse = Estimate(found.objective, found.baseline, found.folds)
    told = "always predicting the mean of the training graphs: its RMSE is 2.00 against 1.38"
    assert told in no_better(worse, balanced=False)


def test_the_metric_that_chooses_is_shown_first():
    assert usual_metrics(Regression(("mass",), "mae")) == ["mae", "rmse", "r2", "spearman"]
    assert usual_metrics(Regression(("mass", "charge"), "spearman")) == ["spearman", "rmse", "mae", "r2"]
    assert usual_metrics(SingleLabel(("a", "b"))) == ["accuracy", "balanced_accuracy", "roc_auc"]


def test_scores_that_cannot_be_computed_are_left_out_of_the_average():
    objective = MultiLabel(("toxic", "rare"))
    grid = scores_grid(objective, {"roc_auc": [0.75, None], "log_loss": [0.5, 0.25]}, [100, 7])
    assert [[cell.text for cell in row] for row in grid.rows] == [
        ["toxic", "100", "75.0", "0.500"],
        ["rare", "7", "-", "0.250"],
        ["average", "", "75.0", "0.375"],
    ]
    assert any("leaves out" in note for note in grid.notes)


@pytest.mark.parametrize(
    ("objective", "reason"),
    [(SingleLabel(("a", "b")), "lack a class;"), (MultiLabel(("a",)), "lack one of the two values or any;")],
)
def test_folds_that_do_not_allow_a_score_are_told_where_there_is_one_target(objective, reason):
    folds = [{"roc_auc": [0.75], "mcc": [0.5], "f1": [0.5]}, {"roc_auc": [None], "mcc": [None], "f1": [0.7]}]
    (note,) = estimate_grid(Estimate(objective, folds, folds), ["roc_auc", "f1", "mcc"]).notes
    assert f"ROC-AUC and MCC cannot be computed in some folds, which {reason} averages leave these out." in note
    assert "F1 cannot" not in note
    (note,) = estimate_grid(Estimate(objective, folds[:1], folds[:1]), ["roc_auc", "f1"]).notes
    assert "cannot" not in note


@pytest.mark.parametrize(("temperature", "warned"), [(1.2, False), (19.99, True), (0.05, True)])
def test_a_temperature_at_its_limit_is_told(temperature, warned):
    before, after = ({"log_loss": loss, "calibration_error": 0.1} for loss in (0.7, 0.6))
    (note,) = calibration_grid(Calibration(temperature, before, after)).notes
    assert f"Temperature: {temperature:.2f}, chosen by log loss. The model uses it." in note
    assert ("do not rely on these probabilities" in note) == warned
