import io
import re

import pytest

from sopool.cli.output import SafeConsole
from sopool.experiments.comparison import corrected_paired_test
from sopool.experiments.results import Result, compare
from sopool.models.config import Setting
from sopool.report.grids.results import comparison_grid, results_grid
from sopool.training.protocols.outcome import Outcome, Stop
from sopool.training.protocols.protocols import PROTOCOLS

GRID = [Setting(hidden, batch) for hidden in (16, 32, 64) for batch in (32, 128)]
FOLDS = tuple(i / 20 for i in range(10, 20))


def outcome(protocol, folds=FOLDS, stopped=()):
    epochs = {
        "per-fold-max": tuple(range(100, 100 + len(folds))),
        "single-epoch": 123,
        "last-epoch": (350,) * len(folds),
        "fair": tuple((i + 1, 350, 200) for i in range(len(folds))),
    }
    setting = tuple(GRID[i % len(GRID)] for i in range(len(folds))) if protocol == "fair" else GRID[5]
    return Outcome(
        protocol=protocol,
        optimistic=PROTOCOLS[protocol].optimistic,
        folds=folds,
        epochs=epochs[protocol],
        setting=setting,
        scores={"balanced_accuracy": folds, "roc_auc": folds},
        repeats=3 if protocol == "fair" else 1,
        stopped=stopped,
    )


def results(**changes):
    return [
        Result("REDDIT-MULTI-5K", "sum-1-layer", pool, outcome(protocol, **changes), 12345.6)
        for pool in ("sum", "sopool-m-attn")
        for protocol in PROTOCOLS
    ]


def shown(table, width=160):
    console = SafeConsole(width=width, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_nothing_is_cut_at_160():
    text = shown(results_grid(results()))
    assert "…" not in text
    lines = [line for line in text.splitlines() if "sopool-m-attn" in line]
    assert text.count("REDDIT-MULTI-5K, sum-1-layer") == 1
    for line, protocol in zip(lines, PROTOCOLS, strict=True):
        assert protocol in line
        assert "72.5 +- 14.4" in line
        assert "12,346" in line
    assert "per-fold-max (optimistic)" in lines[0]
    assert "104.5 (100-109)" in lines[0]
    assert "64/128/0.01/0.5" in lines[0]
    assert "10 x 1" in lines[0]
    assert "single-epoch (less optimistic)" in lines[1]
    assert "123" in lines[1]
    assert "200 (1-350)" in lines[-1]
    assert "fair (" not in lines[-1]
    assert "2 x 16/32/0.01/0.5" in text
    assert "10 x 3" in lines[-1]
    assert "ddof=0" in text


def letters(text):
    return sorted("".join(character for character in text if character.isalnum()))


@pytest.mark.parametrize("width", [80, 100, 400])
def test_wraps_and_loses_nothing_at_other_widths(width):
    for table in (results_grid(results()), comparison_grid(compare(results(), "sum"))):
        assert letters(shown(table, width)) == letters(shown(table))


def test_stopped_runs_are_told():
    stop = Stop(3, GRID[0], 0, 17)
    assert "1 run was stopped because" in shown(
        results_grid([Result("A", "gcn", "sum", outcome("fair", stopped=(stop,)))])
    )
    both = (stop, stop._replace(epoch=1))
    text = " ".join(shown(results_grid([Result("[b]A", "gcn", "sum", outcome("fair", stopped=both))])).split())
    assert "[b]A, gcn, sum, fair: 2 runs were stopped" in text
    assert "(1 in the first epoch: accuracy counted as 0)" in text


def test_comparisons_stay_within_data_set_gnn_and_protocol():
    better = tuple(x + 0.02 + 0.01 * (i % 3) for i, x in enumerate(FOLDS))
    rows = [Result("A", "gcn", "sum", outcome("fair")), Result("B", "gcn", "sum", outcome("fair", better))]
    rows += [Result(data, "gcn", "sopool", outcome("fair", better)) for data in "AB"]
    first, second = compare(rows, "sum")
    assert first.comparison == corrected_paired_test(better, FOLDS)
    assert first.result.dataset == first.reference.dataset == "A"
    assert second.comparison.difference == 0.0
    text = shown(comparison_grid(compare(rows, "sum")))
    line = next(line for line in text.splitlines() if "A" in line and "sopool" in line)
    expected = first.comparison
    assert f"+{100 * expected.difference:.1f}" in line
    assert f"+{100 * expected.low:.1f} to +{100 * expected.high:.1f}" in line
    assert "<0.001" in line
    assert "1.000" in text
    assert "same 10 folds" in " ".join(text.split())


def test_p_is_shown_and_nothing_is_cut():
    rows = results()
    worse = tuple(x - 0.05 * (i % 2) for i, x in enumerate(FOLDS))
    rows[-1] = Result(rows[-1].dataset, rows[-1].network, rows[-1].pool, outcome("fair", worse))
    text = shown(comparison_grid(compare(rows, "sum")))
    assert "…" not in text
    assert f"{corrected_paired_test(worse, FOLDS).p:.3f}" in text
    assert "-2.5" in text


def test_no_gain_has_no_minus():
    """As in the report."""
    ours, theirs = (outcome("fair", tuple(one + less for one in FOLDS)) for less in (-0.0001, 0))
    pair = [Result("TOY", "gin-0", "sopool", ours), Result("TOY", "gin-0", "sum", theirs)]
    (line,) = [line for line in shown(comparison_grid(compare(pair, "sum"))).splitlines() if line.startswith("sopool ")]
    assert re.search(r" \+0\.0 +-0\.0 to -0\.0 ", line)


def test_refused():
    rows = [Result("A", "gcn", "sum", outcome("fair")), Result("A", "gcn", "sopool", outcome("per-fold-max"))]
    with pytest.raises(ValueError, match="has no result on A, gcn, per-fold-max"):
        compare(rows, "sum")
    rows[1] = Result("A", "gcn", "sopool", outcome("fair", FOLDS[:5]))
    with pytest.raises(ValueError, match="5 and 10 folds on A, gcn, fair"):
        compare(rows, "sum")


def test_no_rows():
    assert "accuracy" in shown(results_grid([]))
