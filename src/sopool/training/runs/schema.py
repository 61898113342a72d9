"""Check the contents of a run's files."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sopool._files.schema import SCALAR, Array, check_arrays, list_of, mapping_of, optional, record, text, whole
from sopool.errors import DataError
from sopool.objectives import METRICS
from sopool.training.runs.config import RunConfig

EPOCH = whole(0, 2**31)
DIGEST = text("[0-9a-f]{64}")
CURVE_FACTS = record(
    {"chosen_epoch": optional(EPOCH), "stopped": optional(EPOCH), "environment": DIGEST, "predictions": DIGEST}
)
NO_FACTS = record({})
CHECKPOINT_FACTS = record({"epoch": EPOCH, "chosen_epoch": optional(EPOCH), "layout": text()})
DATASET_FACTS = record(
    {"name": text(), "classes": list_of(text()), "target_names": list_of(text())}, {"target_names": []}
)
CIRCUMSTANCES = mapping_of(SCALAR)
MEMORY = optional(whole())

GRAPHS = Array(("graphs",), (torch.int64,), low=0)
LOOKED_AT = {"test": "test", "validation": "validation", "chosen": "validation"}
"""The part that a run is scored on at every epoch."""
AT_THE_END: dict[str, tuple[str, ...]] = {"test": (), "validation": ("validation",), "chosen": ("validation", "test")}
"""The parts that are predicted once, at the chosen epoch."""


def check_environment(found: Any) -> dict[str, Any]:
    """Return the environment of a run; any names are accepted, since versions add and remove some."""
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
    """Raise ``DataError`` unless these can be the results of a finished run."""
    if stopped is not None and stopped >= config.epochs:
        raise DataError(f"stopped is {stopped}, expected an epoch below {config.epochs}.")
    done = config.epochs if stopped is None else stopped
    check_curves(config, curves, done)
    check_chosen(config, chosen_epoch, done)
    check_arrays(predictions, _predictions(config, chosen_epoch))
    for part in ("validation", "test"):
        graphs = predictions.get(f"{part}_graphs")
        if graphs is not None and (not len(graphs) or len(graphs.unique()) < len(graphs)):
            raise DataError(f"{part}_graphs is empty or names a graph twice, expected distinct graphs.")
    if config.looks == "test":
        _check_gaps("test_logits", predictions["test_logits"], done)


def check_curves(config: RunConfig, curves: Mapping[str, Tensor], done: int) -> None:
    """Raise ``DataError`` unless the curves have a value for each epoch that is ``done`` and NaN for the others."""
    check_arrays(curves, curve_arrays(config))
    for name, curve in curves.items():
        _check_gaps(name, curve, done)


def curve_arrays(config: RunConfig) -> dict[str, Array]:
    """Return the expected shapes and ranges of a run's curves."""
    shape = (config.epochs,)
    found = {
        "step_loss": Array(shape, gaps=True),
        "seconds": Array(shape, low=0, gaps=True),
    }
    if not config.path:
        found["learning_rate"] = Array(shape, low=0, gaps=True)
    for part in ("train", LOOKED_AT[config.looks]):
        found[f"{part}_{config.metric}"] = _range_of(config.metric, shape)
        found[f"{part}_loss"] = Array(shape, low=0, high=math.inf, gaps=True)
    return found


def _range_of(metric: str, shape: tuple[int, ...]) -> Array:
    """Return the shape and the range of a curve of scores."""
    if METRICS[metric].share:
        return Array(shape, low=0, high=1, gaps=True)
    return Array(shape, low=None if metric in ("r2", "spearman", "mcc") else 0, high=math.inf, gaps=True)


def output_type(config: RunConfig) -> type[np.floating]:
    """Return the type in which outputs are stored: numbers may be much larger than their differences.

    Fixed systems compute and store theirs in double precision.
    """
    return np.float64 if config.task == "regression" or config.path else np.float32


def check_chosen(config: RunConfig, chosen_epoch: int | None, done: int) -> None:
    """Raise ``DataError`` unless a finished epoch is chosen if, and only if, held-out graphs were scored."""
    if (chosen_epoch is not None) != (config.looks != "test" and done > 0):
        raise DataError(
            f"chosen_epoch is {chosen_epoch}, which is impossible for a run with looks={config.looks!r} after {done} "
            "epochs."
        )
    if chosen_epoch is not None and chosen_epoch >= done:
        raise DataError(f"chosen_epoch is {chosen_epoch}, expected one of the {done} finished epochs.")


def _predictions(config: RunConfig, chosen_epoch: int | None) -> dict[str, Array]:
    """Return the expected arrays of predictions; scores need not be finite, since those that are not count as wrong."""
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
    """Raise ``DataError`` unless the rows before ``done`` have no NaN and all others are NaN."""
    gaps = values.isnan()
    if bool(gaps[:done].any()) or not bool(gaps[done:].all()):
        raise DataError(f"{name} is damaged: expected values for the first {done} epochs and NaN for all others.")


def check_checkpoint(
    config: RunConfig,
    arrays: Mapping[str, Tensor],
    facts: Mapping[str, Any],
    sizes: tuple[int, int, int, int],
    curves: Collection[str] | None = None,
) -> None:
    """Raise ``DataError`` unless a run can continue from this checkpoint.

    ``sizes`` are the numbers of parameters and statistics of the model, of test graphs and of outputs. ``curves`` are
    the names of the curves with a value for each epoch, None for all.
    """
    epoch = facts["epoch"]
    parameters, statistics, graphs, outputs = sizes
    if not epoch <= config.epochs:
        raise DataError(f"epoch is {epoch}, expected at most {config.epochs}.")
    check_chosen(config, facts["chosen_epoch"], epoch)
    lengths = {"values": parameters, "statistics": statistics, "mean": parameters, "square": parameters}
    lengths["average"] = parameters + statistics if config.average else 0
    if facts["chosen_epoch"] is not None:
        lengths |= {"best_values": parameters, "best_statistics": statistics}
    # All values are accepted: a run whose weights are not finite is stopped and reported.
    like = Array((), (getattr(torch, config.precision),), high=math.inf, gaps=True)
    expected = {name: like._replace(shape=(length,)) for name, length in lengths.items()}
    recorded = {f"curve_{name}": rule._replace(dtypes=(torch.float64,)) for name, rule in curve_arrays(config).items()}
    if config.looks == "test":
        kind = torch.float64 if config.task == "regression" else torch.float32
        recorded["logits"] = Array((config.epochs, graphs, outputs), (kind,), high=math.inf, gaps=True)
    check_arrays(arrays, expected | recorded)
    for name in recorded:
        told = curves is None or name.removeprefix("curve_") in curves
        _check_gaps(name, arrays[name], epoch if told else 0)
