import csv

import pytest

from tests.cli.conftest import QUICK

pytest.importorskip("rdkit")

TABLE = "smiles,label\n" + "CC[NH3+],no\nC[C@H](N)C(=O)O,yes\nc1cc[nH]c1,no\nC/C=C/C,yes\n" * 2


@pytest.mark.parametrize("given", [["--features", "all"], ["--features", "charge", "--descriptors", "rdkit2d,morgan"]])
def test_what_was_fitted_on_a_csv_predicts_from_a_csv(given, call, tmp_path):
    (tmp_path / "m.csv").write_text(TABLE)
    assert call("fit", "m.csv", *given, "-o", "m.sopool", *QUICK, "--folds", "0").code == 0
    shown = call("predict", "m.sopool", "m.csv")
    assert shown.code == 0, shown.err
    assert [row["row"] for row in csv.DictReader(shown.out.splitlines())] == [str(line) for line in range(2, 10)]
    assert call("explain", "m.sopool", "m.csv", "--graph", "3", "-o", "page.html").code == 0


@pytest.mark.parametrize("command", [["fit", "-o", "m.sopool"], ["evaluate"]])
def test_refusals(command, call, tmp_path):
    (tmp_path / "m.csv").write_text(TABLE)
    for given, words in (
        (["MUTAG", "--features", "all"], "features of molecules were chosen, but this source has none"),
        (["MUTAG", "--descriptors", "morgan"], "features of molecules were chosen, but this source has none"),
        (["m.csv", "--descriptors", "ecfp"], "no kind of descriptors 'ecfp'. Known: rdkit2d, morgan, atom-pairs"),
        (["m.csv", "--descriptors", "morgan,"], "--descriptors morgan,: '' is not a name"),
        (["m.csv", "--features", "some"], "'some' is not one of"),
    ):
        shown = call(*command, *given)
        assert shown.code != 0
        assert words in " ".join(shown.err.replace("│", " ").split())
