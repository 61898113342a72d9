"""What the files of a run must hold, as :class:`~sopool.training.runs.record.Run` and the trainer have it."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sopool._files.schema import SCALAR, Array, check_arrays, list_of, mapping_of, optional, record, text, whole
from sopool.errors import DataError
from sopool.training.runs.config import RunConfig

EPOCH = whole(0, 2**31)
DIGEST = text("[0-9a-f]{64}")
CURVE_FACTS = record(
    {"chosen_epoch": optional(EPOCH), "stopped": optional(EPOCH), "environment": DIGEST, "predictions": DIGEST}
)
NO_FACTS = record({})
CHECKPOINT_FACTS = record({"epoch": EPOCH, "chosen_epoch": optional(EPOCH), "layout": text()})
DATASET_FACTS = record({"name": text(), "classes": list_of(text(), least=1)})
CIRCUMSTANCES = mapping_of(SCALAR)
MEMORY = optional(whole())

GRAPHS = Array(("graphs",), (torch.int64,), low=0)
LOOKED_AT = {"test": "test", "validation": "validation", "chosen": "validation"}
"""What a run looks at at every epoch."""
AT_THE_END: dict[str, tuple[str, ...]] = {"test": (), "validation": ("validation",), "chosen": ("validation", "test")}
"""What is predicted once, at the chosen epoch."""


def check_environment(found: Any) -> dict[str, Any]:
    """Return what a run was made with; versions add and drop facts, so any names are fine."""
    facts: dict[str, Any] = CIRCUMSTANCES(found, "environment")
    MEMORY(facts.get("peak_memory"), "environment.peak_memory")
    return facts


def check_run(
    config: RunConfig,
    curves: Mapping[str, Tensor],
    predictions: Mapping[str, Tensor],
    chosen_epoch: int | None,
    stopped: int | None,
) -> None:
    """Raise a ``DataError`` unless these can be the figures of a finished run."""
    if stopped is not None and stopped >= config.epochs:
        raise DataError(f"stopped is {stopped}, expected an epoch below {config.epochs}.")
    done = config.epochs if stopped is None else stopped
    check_curves(config, curves, done)
    check_chosen(config, chosen_epoch, done)
    check_arrays(predictions, _predictions(config, chosen_epoch))
    for part in ("validation", "test"):
        graphs = predictions.get(f"{part}_graphs")
        if graphs is not None and (not len(graphs) or len(graphs.unique()) < len(graphs)):
            raise DataError(f"{part}_graphs has a graph twice or none at all, expected distinct ones.")
    if config.looks == "test":
        _check_gaps("test_logits", predictions["test_logits"], done)


def check_curves(config: RunConfig, curves: Mapping[str, Tensor], done: int) -> None:
    """Raise a ``DataError`` unless the curves have a value for each epoch that is ``done``, and none for the others."""
    check_arrays(curves, curve_arrays(config))
    for name, curve in curves.items():
        _check_gaps(name, curve, done)


def curve_arrays(config: RunConfig) -> dict[str, Array]:
    """Return what the curves of a run must be."""
    shape = (config.epochs,)
    found = {
        "step_loss": Array(shape, gaps=True),
        "learning_rate": Array(shape, low=0, gaps=True),
        "seconds": Array(shape, low=0, gaps=True),
    }
    for part in ("train", LOOKED_AT[config.looks]):
        found[f"{part}_accuracy"] = Array(shape, low=0, high=1, gaps=True)
        found[f"{part}_loss"] = Array(shape, low=0, high=math.inf, gaps=True)
    return found


def check_chosen(config: RunConfig, chosen_epoch: int | None, done: int) -> None:
    """Raise a ``DataError`` unless an epoch that was ``done`` is chosen where held-out graphs were looked at."""
    if (chosen_epoch is not None) != (config.looks != "test" and done > 0):
        raise DataError(
            f"chosen_epoch is {chosen_epoch}, which a run of {done} epochs that looks at {config.looks} has not."
        )
    if chosen_epoch is not None and chosen_epoch >= done:
        raise DataError(f"chosen_epoch is {chosen_epoch}, expected one of the {done} epochs that were done.")


def _predictions(config: RunConfig, chosen_epoch: int | None) -> dict[str, Array]:
    """Return what the predictions must be; scores that are not finite count as wrong, so any will do."""
    if config.looks == "test":
        return {
            "test_graphs": GRAPHS,
            "test_logits": Array((config.epochs, "graphs", "classes"), high=math.inf, gaps=True),
        }
    found = {}
    for part in AT_THE_END[config.looks] if chosen_epoch is not None else ():
        found[f"{part}_graphs"] = GRAPHS._replace(shape=(f"{part} graphs",))
        found[f"{part}_logits"] = Array((f"{part} graphs", "classes"), high=math.inf, gaps=True)
    return found


def _check_gaps(name: str, values: Tensor, done: int) -> None:
    """Raise a ``DataError`` unless the rows before ``done`` have no NaN, and the others nothing else."""
    gaps = values.isnan()
    if bool(gaps[:done].any()) or not bool(gaps[done:].all()):
        raise DataError(
            f"{name} has other values than those of the first {done} epochs, expected NaN for the rest alone."
        )


def check_checkpoint(
    config: RunConfig, arrays: Mapping[str, Tensor], facts: Mapping[str, Any], sizes: tuple[int, int, int, int]
) -> None:
    """Raise a ``DataError`` unless a run can go on from these.

    ``sizes``: how many parameters and other numbers its model has, how many graphs it tests, and how many classes
    there are.
    """
    epoch = facts["epoch"]
    parameters, statistics, graphs, classes = sizes
    if not epoch < config.epochs:
        raise DataError(f"epoch is {epoch}, expected a number below {config.epochs}.")
    check_chosen(config, facts["chosen_epoch"], epoch)
    lengths = {"values": parameters, "statistics": statistics, "mean": parameters, "square": parameters}
    lengths["average"] = parameters + statistics if config.average else 0
    if facts["chosen_epoch"] is not None:
        lengths |= {"best_values": parameters, "best_statistics": statistics}
    # Any values will do: a run whose weights are not finite is stopped, and that is told.
    like = Array((), (getattr(torch, config.precision),), high=math.inf, gaps=True)
    expected = {name: like._replace(shape=(length,)) for name, length in lengths.items()}
    recorded = {f"curve_{name}": rule._replace(dtypes=(torch.float64,)) for name, rule in curve_arrays(config).items()}
    if config.looks == "test":
        recorded["logits"] = Array((config.epochs, graphs, classes), (torch.float32,), high=math.inf, gaps=True)
    check_arrays(arrays, expected | recorded)
    for name in recorded:
        _check_gaps(name, arrays[name], epoch)
