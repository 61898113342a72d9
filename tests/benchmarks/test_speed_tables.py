import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.speed.plots import plot_results
from benchmarks.speed.results import Results
from benchmarks.speed.tables import bank_tables, figure, machine_line, readout_tables
from tests.helpers.speed_results import MACHINE, bank_row, readout_row, some_results


def shown(tables, width=80):
    console = Console(width=width, force_terminal=False, markup=False)
    with console.capture() as printed:
        for table in tables:
            console.print(table)
    return printed.get()


def lines_with(text, *words):
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if all(word in line for word in words)]


@given(st.floats(1e-9, 1e9))
def test_figures_have_three_digits(number):
    text = figure(number)
    assert "e" not in text
    assert math.isclose(float(text.replace(",", "")), number, rel_tol=0.006)
    digits = text.replace(",", "").replace(".", "").lstrip("0")
    assert len(digits) == max(3, len(str(round(number))))


def test_readouts():
    bimap, attn = readout_tables(some_results())
    text = shown([bimap])
    assert lines_with(text, "NCI1") == [["NCI1", "forward", "floor", "0.250"]]
    assert lines_with(text, "32,768 graphs")[0] == ["32,768 graphs", "sopool", "0.250", "1.00", "1.12"]
    assert lines_with(text, "1,100,000 nodes")[0] == ["1,100,000 nodes", "padded", "1.50", "6.00", "1.12"]
    assert lines_with(text, "both ways", "floor") == [["both ways", "floor", "0.750"]] * 2
    assert "4,000 GB/s" in " ".join(text.split())
    assert "padded is to_dense_batch + bmm" in " ".join(text.split())
    assert "index_add" in shown([attn])
    assert "…" not in text


def test_the_bank():
    models, other, width, nodes = bank_tables(some_results())
    text = shown([models])
    assert "Seconds per model-epoch by models: MUTAG, 32 graphs per batch, 32 wide" in " ".join(text.split())
    assert lines_with(text, "floor", "0.00175")[0] == ["1", "floor", "0.0000350", "0.00175"]
    assert lines_with(text, "sopool", "0.0200")[0] == ["sopool", "0.0150", "0.00500", "0.0200", "1.00", "571", "12.3"]
    assert len(lines_with(text, "PyG", "0.440")) == 3  # the same for any number of models
    assert lines_with(text, "PyG", "0.440")[2][4] == "1,320"
    assert len(lines_with(text, "padded", "0.00750")) == 1
    assert "50,000 GFLOP/s" in " ".join(text.split())
    assert "NCI1 $a$" in shown([other])
    assert "32 graphs per batch, 60 models" in " ".join(shown([width]).split())
    assert lines_with(shown([nodes]), "300", "floor")
    assert "…" not in shown([models, other, width, nodes])


def test_what_was_measured_before_an_interruption_is_shown():
    results = Results(dict(MACHINE), [readout_row()], 4e12, [bank_row()], 5e13)
    text = shown([*readout_tables(results), *bank_tables(results)])
    assert lines_with(text, "sopool", "0.0200")
    assert not readout_tables(Results({}))
    assert not bank_tables(Results({}))


def test_machine_line():
    assert machine_line(MACHINE) == "A [fast] GPU, PyTorch's threads: 8, torch 2.6.0, Python 3.12.1, X"


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    written = plot_results(some_results(), tmp_path)
    assert [path.name for path in written] == ["readouts.svg", "bank-models.svg", "bank-width.svg", "bank-nodes.svg"]
    assert sorted(tmp_path.iterdir()) == sorted(written)
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in plot_results(some_results(), tmp_path)] == before
    text = (tmp_path / "readouts.svg").read_text()
    for said in ("floor: a plain copy", "to_dense_batch + bmm", "index_add", "A [fast] GPU", "REDDIT"):
        assert f"<!-- {said}" in text
    text = (tmp_path / "bank-models.svg").read_text()
    for said in ("NCI1 $a$", "models", "60", "floor", "padded", "PyG", "s per model-epoch"):
        assert f"<!-- {said}" in text


def test_nothing_measured_nothing_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    assert plot_results(Results({}), tmp_path) == []
