import re
from dataclasses import replace

from sopool.cli.output import SafeConsole
from sopool.data import load
from sopool.experiments.results import Result
from sopool.experiments.systems import SYSTEMS, ControlResult, run_control
from sopool.experiments.systems.run import read_controls
from sopool.report.grids.controls import controls_grid
from sopool.report.grids.results import results_grid
from sopool.training.protocols.outcome import Outcome

OUTCOME = Outcome("fair", "", (0.8, 0.9, 0.7), (), (), {"balanced_accuracy": (0.8, 0.9, 0.7), "roc_auc": (None,) * 3})


def shown(table, width=200):
    console = SafeConsole(width=width)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def result(control, settings, seconds=1.25):
    return ControlResult("[set]", "0", control, OUTCOME, seconds, settings)


def test_what_was_chosen_is_summed_up():
    kernels = [(3, True, 1.0), (5, False, 10.0), (4, True, 100.0)]
    settings = tuple({"iterations": i, "normalised": n, "C": c} for i, n, c in kernels)
    text = shown(controls_grid([result("majority", ({},) * 3, 0.04), result("wl", settings, 61.2)]))
    for words in (
        "under fair",
        "[set], 3 folds",
        "80.0 +- 8.2",
        "iterations 4 (3-5)",
        "normalized 2 of 3",
        "C 10 (1-100)",
        "61",
    ):
        assert words in text
    (line,) = (line for line in text.splitlines() if "majority" in line)
    assert "most frequent class" in line
    assert line.count(" - ") == 1


def test_the_same_for_all_folds_is_said_once():
    text = shown(controls_grid([result("size", ({"C": 0.1},) * 3)]))
    assert " C 0.1 " in text


def test_a_control_has_a_place_among_networks():
    """It has neither epochs nor a network's setting."""
    text = shown(results_grid([Result("SET", "-", "wl", OUTCOME, 3.0)]))
    assert "80.0 +- 8.2" in text
    (line,) = (line for line in text.splitlines() if "3 x 1" in line)
    assert re.split(" {2,}", line)[3:5] == ["-", "-"]


def test_results_of_earlier_versions_do_not_count(tmp_path, monkeypatch):
    """Nor are they taken for another seed, to be averaged with."""
    run_control("majority", load("MUTAG"), folds=3, runs_folder=tmp_path)
    monkeypatch.setitem(SYSTEMS, "majority", replace(SYSTEMS["majority"], version=7))
    assert read_controls(tmp_path) == []
    again = run_control("majority", load("MUTAG"), folds=3, runs_folder=tmp_path)
    assert len(list((tmp_path / "controls").iterdir())) == 2
    assert read_controls(tmp_path) == [again]


def test_several_data_sets_have_a_column(tmp_path):
    """On the page the controls of all data sets of a store stand together; seeds are averaged."""
    for seed in (0, 1):
        run_control("size", load("MUTAG"), folds=3, seed=seed, runs_folder=tmp_path)
    (both,) = read_controls(tmp_path)
    text = shown(controls_grid([both, result("majority", ())]))
    (line,) = (line for line in text.splitlines() if "MUTAG" in line)
    assert "3 folds x 2 seeds" in line
    assert len(both.settings) == 6
