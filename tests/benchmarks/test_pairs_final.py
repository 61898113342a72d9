"""The choice of a setting of pairs, and the declared comparisons with a sum."""

import json
from argparse import Namespace

import numpy as np
import pytest

from benchmarks import pairs_choice, pairs_final
from benchmarks.molecules import packed
from sopool.experiments.comparison import corrected_paired_test


def choices(scores):
    return [
        {"data": data, "candidate": name, "decay": decay, "fold_seed": 3, "folds": [score] * 10}
        for (data, name, decay), score in scores.items()
    ]


def test_the_best_mean_over_the_data_sets_is_chosen():
    """Not the sum, nor what lacks a data set."""
    found = choices(
        {
            **{("A", "norm", 0.1): 0.8, ("B", "norm", 0.1): 0.6, ("A", "size", 0.0): 0.9, ("B", "size", 0.0): 0.4},
            **{("A", "sum", 0.0): 1.0, ("B", "sum", 0.0): 1.0, ("A", "near", 0.0): 1.0},
        }
    )
    assert pairs_choice.best(found) == {"normalize": "norm", "layers": 2, "decay": 0.1}
    assert [row[0].text for row in pairs_choice.grid(found, ["A", "B"]).rows][:2] == ["sum", "near"]


def molecules(contender, seed, found, truth):
    facts = {"data": "ESOL", "contender": contender, "seed": seed, "spread": [1.0]}
    score = float(np.sqrt(np.mean((found - truth) ** 2)))
    return facts | {"score": score, "predictions": packed(found), "truth": packed(truth)}


def test_gains_are_tested_as_the_plan_says(monkeypatch):
    monkeypatch.setattr(pairs_final, "DRAWS", 200)
    draw = np.random.default_rng(0)
    truth = draw.normal(size=(50, 1))
    error = draw.normal(size=(50, 1))
    found = [molecules("pairs", seed, truth + 0.1 * error, truth) for seed in range(2)]
    found += [molecules("sum", seed, truth + error, truth) for seed in range(2)]
    folds = {"pairs": draw.uniform(0.6, 0.8, (2, 10)), "sum": draw.uniform(0.6, 0.8, (2, 10))}
    for name, some in folds.items():
        for seed, own in zip((1, 2), some, strict=True):
            found.append({"data": "MUTAG", "contender": name, "seed": seed, "folds": own.tolist()})
    table = pairs_final.grid(found)
    esol, mutag = table.rows
    assert [esol[0].text, mutag[0].text] == ["ESOL", "MUTAG"]
    assert esol[3].strong
    assert esol[3].text.startswith("+")
    test = corrected_paired_test(folds["pairs"].flatten(), folds["sum"].flatten(), repeats=2)
    gain = pairs_final.gain_of(
        "MUTAG", *({one["seed"]: one for one in found if one["contender"] == name and "folds" in one} for name in folds)
    )
    assert (gain.p, gain.difference) == (pytest.approx(test.p), pytest.approx(test.difference))


def test_results_are_appended_once(tmp_path, monkeypatch):
    monkeypatch.setattr(pairs_final, "graph_result", lambda data, name, seed, args: {"folds": [0.5] * 10})
    figures = tmp_path / "found.jsonl"
    args = Namespace(contenders=["pairs", "sum"], data=["MUTAG"], seeds=None, figures=figures)
    first = list(pairs_final.compute(args))
    assert [(one["contender"], one["seed"]) for one in first] == [("pairs", 1), ("pairs", 2), ("sum", 1), ("sum", 2)]
    figures.write_text("".join(json.dumps(one) + "\n" for one in first[:3]))
    assert list(pairs_final.compute(args)) == first[3:]
