"""Tables for papers: CSV, Markdown, LaTeX."""

import csv
import io

from sopool.experiments.summary import summarise
from sopool.report.grid import Cell, Grid
from sopool.report.papers import grid_markdown, latex, markdown, tidy
from tests.helpers.stores import ODD, fill


def test_one_line_for_each_fold_as_csv(summary):
    rows = list(csv.DictReader(io.StringIO(tidy(summary))))
    assert len(rows) == 2 * 3 * 3 * 4
    for entry in summary.entries:
        for protocol, outcome in entry.outcomes.items():
            place = (entry.data, entry.pool, protocol)
            mine = [row for row in rows if (row["data"], row["pool"], row["protocol"]) == place]
            assert [int(row["fold"]) for row in mine] == [1, 2, 3, 4]
            assert [float(row["accuracy"]) for row in mine] == list(outcome.folds)
            assert {len(row["epochs"].split()) for row in mine} == {3 if protocol == "fair" else 1}


def test_markdown(summary):
    text = markdown(summary)
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in tables[:8]}) == 1
    assert r"a\|b\_c &amp; &lt;i&gt;\*" in text
    assert "per-fold-max (optimistic)" in text
    assert f"{100 * summary.entries[0].outcomes['fair'].mean:.1f} ± " in text


def test_tables_for_papers_say_what_is_missing(tmp_path):
    store = fill(tmp_path, (ODD,), looks=("test",), hidden=(8,))
    store.remove([next(info.key for info in store.list())])
    summary = summarise(store)
    assert summary.notes
    text = markdown(summary)
    assert text.count("\n- a\\|b\\_c &amp; &lt;i&gt;\\*, gin-0, ") == len(summary.notes)
    assert "## Missing results" in text
    lines = latex(summary).splitlines()
    assert [line for line in lines if line.startswith("% Missing: ")] == lines[: len(summary.notes)]
    assert "1 of 4 are missing" in lines[0]


def test_latex(summary):
    text = latex(summary)
    assert r"a|b\_c \& $<$i$>$*" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == 1 + 3
    assert r"$\pm$" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 4 + 6 + 3 * 4


def test_a_name_cannot_leave_its_cell_of_markdown():
    hostile = "a\r## b\x1b[2J | c $x$ ~~d~~ \u2028e"
    text = grid_markdown(Grid("title", ["name"], [[Cell(hostile)]]))
    assert r"| a\\r## b\\x1b\[2J \| c \$x\$ \~\~d\~\~ \\u2028e |" in text.splitlines()
