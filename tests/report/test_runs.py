import io
from dataclasses import replace
from datetime import datetime, timezone

from sopool.cli.output import SafeConsole
from sopool.models.config import Setting
from sopool.report.grids.runs import groups_grid, runs_grid
from sopool.training.runs.info import RunInfo
from tests.helpers.runs import CONFIG

WHEN = datetime(2030, 1, 2, tzinfo=timezone.utc)
BASE = replace(CONFIG, data="REDDIT-MULTI-5K", looks="validation", model=replace(CONFIG.model, pool="sopool-m-attn"))


def info(config, kind="finished"):
    return RunInfo("" if config is None else config.key, config, kind, None, 1_500_000, WHEN)


def shown(table, width):
    console = SafeConsole(width=width, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def experiment(config):
    settings = [Setting(hidden) for hidden in (16, 32, 64)]
    return [info(replace(config.with_setting(setting), fold=fold)) for setting in settings for fold in range(10)]


def test_one_line_for_an_experiment():
    (line,) = [line for line in shown(groups_grid(experiment(BASE)), 160).splitlines() if "REDDIT" in line]
    for words in ("REDDIT-MULTI-5K, gin-0, sopool-m-attn", "validation, 350 x 50", "3 x 10", "30 finished", "45.0 MB"):
        assert words in line


def test_what_tells_experiments_apart_is_said():
    paper = replace(BASE, model=replace(BASE.model, dropout_on="logits"))
    other = replace(BASE, epochs=20)
    text = shown(
        groups_grid(experiment(BASE) + experiment(paper) + experiment(other) + [info(None, "unreadable")]), 200
    )
    lines = [line for line in text.splitlines() if "REDDIT" in line]
    assert ["dropout_on embedding" in line for line in lines] == [True, False, False]
    assert ["dropout_on logits" in line for line in lines] == [False, True, False]
    assert "1 unreadable" in text


def test_what_is_not_written_down_is_told_by_its_value():
    averaged = replace(BASE, average=0.99)
    text = shown(groups_grid(experiment(BASE) + experiment(averaged)), 200)
    assert [f"average {value}" in text for value in ("0.0 ", "0.99", "not set")] == [True, True, False]


def test_what_runs_look_at_is_explained():
    told = " ".join(shown(runs_grid(experiment(BASE)), 200).split())
    assert "test: the test fold; validation: held-out training graphs; chosen: held-out training graphs, then" in told


def test_words_stay_whole():
    runs = [*experiment(BASE), info(replace(BASE, seed=3), "interrupted")]
    for table in (groups_grid(runs), runs_grid(runs)):
        text = shown(table, 130)
        for word in ("REDDIT-MULTI-5K", "sopool-m-attn", "2030-01-02"):
            assert word in text
