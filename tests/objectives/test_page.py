"""The page on metrics says what the code does."""

import re
from pathlib import Path

from sopool.objectives import METRICS, TASKS, MultiLabel, Regression, SingleLabel

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def table(heading):
    rows = PAGE.read_text().split(f"| `{heading}` |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def test_every_metric_is_listed():
    found = [(name.strip("`"), tasks, better) for name, tasks, better, _ in table("--metric")]
    assert found == [
        (name, ", ".join(metric.tasks), "lower" if metric.lower_is_better else "higher")
        for name, metric in METRICS.items()
    ]


def test_every_task_is_listed_with_its_metric():
    rows = table("--task")
    assert [row[0].strip("`") for row in rows] == list(TASKS)
    used = [SingleLabel((0, 1)).metric, MultiLabel(("a",)).metric, Regression(("a",)).metric]
    assert [re.findall("`(.*?)`", row[2])[0] for row in rows] == used
    assert Regression(("a",), loss_name="huber").metric in rows[2][2]
