"""The result of a control, and the file it is stored in."""

import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sopool._files.atomic import whole_file, why
from sopool._files.schema import (
    SCALAR,
    anything,
    blamed_on,
    choice,
    mapping_of,
    number,
    optional,
    read_json,
    record,
    text,
    tuple_of,
    whole,
)
from sopool._files.sealed import json_digest
from sopool.errors import DataError, UserError
from sopool.experiments.systems.views import Choice
from sopool.models.config import without_defaults
from sopool.objectives import METRICS, TASKS, Task
from sopool.training.protocols.outcome import Outcome


@dataclass(frozen=True)
class ControlResult:
    """The result of one control on one data set under ``fair``.

    Examples:
        >>> from sopool.data import make_agreement
        >>> from sopool.experiments.systems import ControlResult, run_control
        >>> result = run_control("majority", make_agreement(60), folds=3)
        >>> ControlResult.from_json(result.to_json()) == result
        True
    """

    dataset: str
    """The name of the data set."""
    fingerprint: str
    """A hash of the graphs, labels and classes, see :func:`sopool.data.formats.packed.content_key`."""
    control: str
    """The name of the control."""
    outcome: Outcome
    """The scores, without epochs and with an empty ``setting``, which only networks have."""
    seconds: float
    """The time that it took."""
    settings: tuple[Choice, ...]
    """The hyperparameters chosen on the held-out graphs of each fold; empty if there is nothing to choose."""
    version: int = 1
    """The version of the control. Results of earlier versions remain stored but do not count."""
    task: Task = "classification"
    """What is predicted."""
    split: str = "random"
    """What the graphs were divided by, see :attr:`sopool.training.runs.config.RunConfig.split`."""
    split_seed: int = 0
    """The random seed of the folds."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; shares such as accuracies are fractions."""
        plain = asdict(self) | {"outcome": self.outcome.to_json(), "settings": list(self.settings)}
        return without_defaults(plain, LATER)

    @classmethod
    def from_json(cls, saved: Any) -> "ControlResult":
        """Return the result that :meth:`to_json` wrote; raise ``DataError`` if ``saved`` is not one."""
        found = SAVED(saved, "result")
        outcome = found["outcome"]
        folds = outcome["folds"]
        scores = {name: SCORES(outcome[name], f"result.outcome.{name}") for name in METRICS if name in outcome}
        if any(len(values) != len(folds) for values in scores.values()):
            raise DataError("result.outcome has values for different numbers of folds, expected the same number.")
        given = {"metric": outcome["metric"], "targets": outcome["targets"]}
        return cls(**found | {"outcome": Outcome("fair", "", folds, (), (), scores, **given)})


SCORES = tuple_of(optional(number()), least=1)
FIGURES = {
    "protocol": choice("fair"),
    "optimistic": choice(""),
    "metric": choice(*METRICS),
    "folds": tuple_of(number(), least=1),
    "targets": mapping_of(mapping_of(SCORES)),
}
LATER = {"task": "classification", "split": "random", "split_seed": 0}
"""Fields that the first files lacked, with the values that are assumed for those files."""
SAVED = record(
    {
        "dataset": text(),
        "fingerprint": text(),
        "control": text(),
        "outcome": record(
            FIGURES, {"metric": "accuracy", "targets": {}}, more=anything
        ),  # further values, such as the mean, are computed from these
        "seconds": number(0),
        "settings": tuple_of(mapping_of(SCALAR)),
        "version": whole(),
        "task": choice(*TASKS),
        "split": text(),
        "split_seed": whole(),
    },
    LATER,
)
FILE = record({"key": text(), "digest": text(), "result": anything})


def save_result(result: ControlResult, path: Path) -> None:
    """Write the result atomically, with a digest; raise ``DataError`` if that is not possible."""
    plain = result.to_json()
    text = json.dumps({"key": path.stem, "digest": json_digest(plain), "result": plain}, indent=2, sort_keys=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"the result of a control cannot be written: {why(error)}") from error


def load_result(path: Path) -> ControlResult | None:
    """Return the result that :func:`save_result` wrote; None if there is none or, with a warning, if it is damaged."""
    try:
        with blamed_on(path, "this file is not a valid result: "):
            saved = FILE(read_json(path), "the file")
            if (saved["key"], saved["digest"]) != (path.stem, json_digest(saved["result"])):
                raise DataError("the key or the digest differs.")
            return ControlResult.from_json(saved["result"])
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"the result of a control cannot be read: {error}.", path) from error
    except UserError as error:
        warnings.warn(f"{error} It counts as missing.", stacklevel=3)
        return None
