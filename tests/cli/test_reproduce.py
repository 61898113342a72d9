import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sopool.cli import app
from sopool.experiments.reproduce.reproduction import load_reproduction
from tests.cli.conftest import TINY

SMALL = ["--datasets", "MUTAG", "--pools", "sum-avg,sopool-bimap", "--hidden", "4", "--batch-size", "16", *TINY]


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory, clean_environment):
    """A small part of a table, through typer's own runner: its folder and what was printed."""
    folder = tmp_path_factory.mktemp("reproduced")
    command = ["reproduce", "table2", *SMALL, "--runs", folder / "runs", "-o", folder / "found.json"]
    return folder, CliRunner().invoke(app, [str(part) for part in command], env=clean_environment)


def test_our_figures_beside_the_papers(reproduced):
    shown = reproduced[1]
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.stdout.split())
    for words in (
        "MUTAG, accuracy in percent",
        "95.3 +- 4.4 per-fold-max ",
        "89.4 +- 5.6 single-epoch ",
        "quoted: Xu et al.",
        "Gain over the baseline",
        "GIN-0 + SOPool_bimap, random",
        "copied from GIN",
        "Not the paper's budget: 2 epochs instead of 350; 2 folds instead of 10",
        "2 epochs of 2 batches, 2 folds, seed 0; hidden/batch/lr/dropout 4/16/0.01/0.5",
        "need at least two data sets",
        "not above",
    ):
        assert words in text
    assert max(len(line) for line in shown.stdout.splitlines()) <= 160
    assert "…" not in shown.stdout
    assert "\x1b" not in shown.stdout


def test_all_of_it_is_in_the_files(reproduced):
    (path,) = (reproduced[0] / "runs").glob("reproduce-table2-*.json")
    assert path.name in reproduced[1].stdout.replace("\n", "")
    kept = load_reproduction(path)
    assert json.loads((reproduced[0] / "found.json").read_text()) == json.loads(json.dumps(kept.to_json()))
    assert [row.name for row in kept.rows][:2] == ["GIN-0 + Sum/Avg", "GIN-0 + SOPool_bimap"]
    assert kept.setup["epochs"] == 2


def test_again_it_says_the_same_and_trains_nothing(reproduced, call):
    folder = reproduced[0]
    again = call("reproduce", "table2", *SMALL, "--runs", folder / "runs", "--json")
    assert json.loads(again.out) == json.loads((folder / "found.json").read_text())
    assert "Nothing to train" in again.err
    planned = call("reproduce", "table2", *SMALL, "--runs", folder / "runs", "--dry-run", "-o", "planned.json")
    (line,) = json.loads(Path("planned.json").read_text())
    assert (line["left"], line["seconds"]) == (0, 0)
    assert "Runs to train" in planned.out


def test_a_kernel_of_the_first_table_stands_beside_the_quoted_figure(call):
    shown = call("reproduce", "table1", "--datasets", "MUTAG", "--systems", "gk", "--folds", "2", "--no-controls")
    assert shown.code == 0, shown.err
    text = " ".join(shown.out.split())
    for words in (
        "GK [2009] 81.4 +- 1.7 fair ",
        "MUTAG, sources of the quoted figures",
        "EigenGCN paper's rerun of DiffPool",
        "All 10 runs are stored in runs.",
    ):
        assert words in text
    kept = load_reproduction(*Path("runs").glob("reproduce-table1-*.json"))
    assert tuple(kept.cell("GK [2009]", "MUTAG").measured) == ("per-fold-max", "single-epoch", "fair")
    assert kept.cell("AWE [2018]", "MUTAG").measured == {}


def test_a_dry_run_trains_nothing(call):
    shown = call("reproduce", "table2", *SMALL, "--dry-run")
    assert shown.code == 0, shown.err
    text = " ".join(shown.out.split())
    assert "MUTAG gin-0 sum-avg, sopool-bimap, sopool-bimap-random 24 0 48 48 " in text
    assert "an estimate" in text
    assert not Path("runs").exists()


def test_the_second_figure(call):
    shown = call("reproduce", "figure2", "-o", "found.json")
    assert shown.code == 0, shown.err
    assert "distinguished" in shown.out
    (one,) = [v for v in json.loads(Path("found.json").read_text()) if (v["pool"], v["example"]) == ("covpool", "a")]
    assert (one["told_apart"], one["paper"]) == (False, "fails")


@pytest.mark.filterwarnings("ignore::sopool.data.sources.catalogue.DatasetNote")
def test_data_sets_of_the_whole_table_that_are_not_here_are_left_out(call, monkeypatch):
    from sopool.data.sources import catalogue
    from sopool.errors import DataError

    def no_network(name, *_):
        raise DataError(f"{name} could not be downloaded.")

    monkeypatch.setattr(catalogue, "download", no_network)
    small = [part for part in SMALL if part not in ("--datasets", "MUTAG")]
    shown = call("reproduce", "table2", *small, "--protocol", "per-fold-max", "--no-controls")
    assert shown.code == 0, shown.err
    assert "IMDB-MULTI, REDDIT-BINARY, REDDIT-MULTI-5K are skipped. PROTEINS was not found." in shown.err
    kept = load_reproduction(*Path("runs").glob("reproduce-table2-*.json"))
    assert "NCI1" in kept.not_run
    assert "MUTAG" not in kept.not_run
    assert "Not run: NCI1 was not found." in shown.out
    asked = call("reproduce", "table2", *small, "--datasets", "NCI1")
    assert asked.code == 2
    none = call("reproduce", "table4", *small[2:])
    assert "none of the data sets of table4 was found" in none.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--datasets", "DD"], "there is no table2 data set 'DD'"),
        (["--gnns", "gcn"], "there is no table2 GNN 'gcn'"),
        (["--systems", "gk"], "no systems are run for table2"),
        (["--pools", "sopool-bimapp"], "Did you mean 'sopool-bimap'?"),
        (["--protocol", "fairr"], "Did you mean 'fair'?"),
        (["--seeds", "-1"], "numbers of at least 0"),
        (["--address", "auto"], "needs --executor ray"),
        (["-o", "nowhere/found.json"], "the folder nowhere does not exist"),
    ],
)
def test_mistakes(call, tmp_path, arguments, says):
    shown = call("reproduce", "table2", *arguments)
    assert shown.code == 2
    assert says in " ".join(shown.err.split())
    assert "Traceback" not in shown.err
    assert (shown.out, list(tmp_path.iterdir())) == ("", [])
