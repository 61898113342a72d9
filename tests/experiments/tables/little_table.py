"""A small part of the paper's second table, on MUTAG."""

from sopool.data.catalogue import load
from sopool.experiments.tables.paper import read_tables
from sopool.experiments.tables.reproduce import Reproducer
from sopool.experiments.tables.selection import Selection
from sopool.training.run_store import RunStore

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
    selection = Selection(read_tables()["table2"], **SMALL | changes)
    return Reproducer(selection, {"MUTAG": load("MUTAG")}, RunStore(folder), not_run)
