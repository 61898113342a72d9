"""The expected contents of the file of a reproduced table."""

from sopool._files.schema import (
    SCALAR,
    SHARE,
    anything,
    choice,
    list_of,
    mapping_of,
    number,
    optional,
    record,
    text,
    tuple_of,
    value_check,
    whole,
)
from sopool.training.protocols.protocols import PROTOCOLS

PROTOCOL = choice(*PROTOCOLS)
MEASURED = record(
    {
        "folds": tuple_of(SHARE, least=2),
        "epochs": tuple_of(whole()),
        "settings": mapping_of(whole()),
        "stopped": whole(),
    },
    more=anything,  # mean and standard deviation, which are computed from the folds
)
SOURCE = record(
    {
        "paper": text(),
        "judged": text(),
        "protocol": optional(PROTOCOL),
        "comparable": value_check(lambda value: type(value) is bool, "true or false"),
        "remark": text(),
        "system": optional(text()),
    }
)
CELL = record(
    {
        "row": text(),
        "dataset": text(),
        "paper": optional(record({"mean": SHARE, "std": optional(SHARE)})),
        "measured": mapping_of(MEASURED),
        "not_above": tuple_of(text()),
        "model_epochs": whole(),
        "seconds": number(0),
        "source": optional(SOURCE),
    },
    {"source": None},
)
TEST = record(
    {
        "difference": number(-1, 1),
        "t": optional(number()),
        "p": SHARE,
        "low": number(),
        "high": number(),
        "folds": whole(2),
    }
)
COMPARED = record(
    {"row": text(), "against": text(), "dataset": text(), "protocol": PROTOCOL, "why": text(), "comparison": TEST}
)
ROW = record(
    {
        "kind": text(),
        "name": text(),
        "gnn": optional(text()),
        "pool": optional(text()),
        "blocks": whole(0, 3),
        "control": optional(text()),
        "protocol": optional(text()),
        "quoted": optional(text()),
        "against": optional(text()),
        "datasets": tuple_of(text()),
    }
)
SETTING = record({"hidden": whole(1), "batch_size": whole(1), "lr": number(0), "dropout": SHARE})
SETUP = record(
    {
        "preset": text(),
        "settings": list_of(SETTING),
        "epochs": whole(1),
        "steps": optional(whole(1)),
        "folds": whole(2),
        "seeds": list_of(whole(0, 2**128)),
    },
    more=SCALAR,
)
