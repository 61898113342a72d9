"""The runs of a store."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from rich import filesize

from sopool.data.division import split_title
from sopool.objectives import METRICS
from sopool.report.grid import Cell, Grid, word_cells
from sopool.report.grids.results import NETWORKS
from sopool.report.scores import axis_of, score_cell
from sopool.training.protocols.outcome import brief_setting
from sopool.training.runs.config import RunConfig
from sopool.training.runs.info import Difference, RunInfo, tell_apart
from sopool.training.runs.record import Run

LOOKS = (
    "Scored on: the graphs on which a run is scored after each epoch. test: the test fold; validation: held-out "
    "training graphs; chosen: held-out training graphs, then the test fold once, at the selected epoch."
)
WHAT = "data set,\nGNN, pool"
SIZE, WRITTEN = "size", "written"


def runs_grid(infos: Sequence[RunInfo]) -> Grid:
    """Show one row for each run, in the order given."""
    networks = all(info.config is None or info.config.setting.is_network for info in infos)
    columns = ["key", WHAT, NETWORKS if networks else "setting", "scored on", "state", WRITTEN]
    rows = []
    for info in infos:
        config = info.config
        facts = ["?"] * 3
        if config is not None:
            setting = brief_setting(config.setting)
            looks = f"{config.looks}, fold {config.fold + 1}, repeat {config.repeat}"
            facts = [_what(config), setting, looks]
        rows.append([*word_cells([info.key, *facts, info.state]), _time_cell(info.when)])
    repeats = "Repeat: 0 for runs that select a setting, 1 and up for the final runs of the fair protocol."
    return Grid("Runs", columns, rows, len(columns) - 1, [LOOKS, repeats])


def groups_grid(infos: Sequence[RunInfo]) -> Grid:
    """Show one row for all runs that differ only in fold, repeat and setting, the earliest first.

    An additional column shows what else distinguishes the groups, such as the seed.
    """
    groups: dict[str, list[RunInfo]] = {}
    for info in infos:
        groups.setdefault("" if info.config is None else info.config.evaluation().key, []).append(info)
    besides = tell_apart(
        {key: group[0].config.evaluation() for key, group in groups.items() if group[0].config}, _columns
    )
    also = ["other"] if besides else []
    columns = [WHAT, "scored on,\nepochs x steps", "settings\nx folds", *also, "state", SIZE, WRITTEN]
    rows = []
    for key, group in groups.items():
        words = [*_group(group), *(besides.get(key, "") for _ in also), _states(group)]
        size = sum(info.size for info in group)
        when = max(info.when for info in group)
        rows.append([*word_cells(words), Cell(filesize.decimal(size), size), _time_cell(when)])
    every = "Use --all to list each run with its key."
    return Grid("Runs", columns, rows, len(columns) - 2, [LOOKS, every])


def pair_grid(a: RunInfo, b: RunInfo, differ: Difference, first: Run | None, second: Run | None) -> Grid:
    """Show the differences between two runs in configuration, results and environment."""
    lines = [(name, *(_for_people(name, value) for value in values)) for name, values in differ.items()]
    lines += [] if differ else [("configuration", "the same", "the same")]
    sections = [len(lines)]
    lines.append(("state", a.state, b.state))
    left = _came_out(first)
    right = _came_out(second)
    lines += [(name, left.get(name, "-"), right.get(name, "-")) for name in left | right]
    sections.append(len(lines))
    left, right = (run.environment if run else {} for run in (first, second))
    for name in left | right:
        if first and second and left.get(name) != right.get(name):
            lines.append((name, *(_circumstance(name, one.get(name)) for one in (left, right))))
    rows = [word_cells(line) for line in lines]
    return Grid("Two runs", ["", a.key, b.key], rows, words=3, sections=sections)


def _for_people(name: str, value: Any) -> str:
    """Format a value of a configuration; folds are counted from 1."""
    return "-" if value is None else str(value + 1) if name == "fold" else str(value)


def _circumstance(name: str, value: Any) -> str:
    """Format a value of the environment of a run."""
    return "-" if value is None else filesize.decimal(value) if name == "peak_memory" else str(value)


def _came_out(run: Run | None) -> dict[str, str]:
    """Return the results of a finished run on the graphs that it scored."""
    if run is None:
        return {}
    split = "test" if run.config.looks == "test" else "validation"
    metric = run.config.metric
    curve = run.curves[f"{split}_{metric}"]
    reached = np.flatnonzero(np.isfinite(curve))
    if not len(reached):
        return {"epochs": "0"}
    best = int(np.nanargmax(METRICS[metric].sign * curve))
    last = int(reached[-1])

    def text(part: str, epoch: int) -> str:
        return score_cell(metric, float(run.curves[f"{part}_{metric}"][epoch])).text

    return {
        "epochs": f"{len(reached)}",
        f"best {split} {axis_of(metric)}": f"{text(split, best)} in epoch {best + 1}",
        f"last {split} {axis_of(metric)}": text(split, last),
        f"last train {axis_of(metric)}": text("train", last),
        "seconds": f"{np.nansum(run.curves['seconds']):.1f}",
    }


def _what(config: RunConfig) -> str:
    names = split_title(config.data, config.split_name), config.model.system or config.model.gnn, config.model.pool_name
    return ", ".join(dict.fromkeys(names))


def _columns(config: RunConfig) -> tuple[str, str, str]:
    length = f"{len(config.path)} strengths" if config.path else f"{config.epochs:,} x {config.steps}"
    return _what(config), f"{config.looks}, {length}", str(config.folds)


def _group(members: Sequence[RunInfo]) -> list[str]:
    configs = [info.config for info in members if info.config]
    if not configs:
        return ["?"] * 3
    what, how, folds = _columns(configs[0])
    return [what, how, f"{len({config.setting for config in configs})} x {folds}"]


def _states(members: Sequence[RunInfo]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in Counter(info.kind for info in members).most_common())


def _time_cell(when: datetime) -> Cell:
    return Cell(when.astimezone().strftime("%Y-%m-%d %H:%M"), when.timestamp())
