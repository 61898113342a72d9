"""A small part of the paper's second table, on MUTAG."""

from sopool.data.sources.catalogue import load
from sopool.experiments.reproduce.paper import read_tables
from sopool.experiments.reproduce.reproducer import Reproducer
from sopool.experiments.reproduce.selection import TableSelection
from sopool.training.runs.store import RunStore

SMALL = {
    "datasets": ["MUTAG"],
    "pools": ["sum-avg", "sopool-bimap"],
    "hidden": [4],
    "batch_sizes": [16],
    "epochs": 2,
    "folds": 2,
    "steps": 1,
}


def little_table(folder, not_run=None, **changes):
    selection = TableSelection(read_tables()["table2"], **SMALL | changes)
    return Reproducer(selection, {"MUTAG": load("MUTAG")}, RunStore(folder), not_run)
