"""What a control reached, and the file it is kept in."""

import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sopool.data.errors import DataError
from sopool.data.sealed import json_digest
from sopool.data.whole_file import whole_file, why
from sopool.experiments.controls.views import Setting
from sopool.training.outcome import Outcome


@dataclass(frozen=True)
class ControlResult:
    """One control on one data set under ``fair``."""

    dataset: str
    fingerprint: str
    """Of the graphs, labels and classes, see :func:`sopool.data.file.content_key`."""
    control: str
    outcome: Outcome
    """Without epochs, and with an empty ``setting``: those of networks do not apply."""
    seconds: float
    settings: tuple[Setting, ...]
    """What was chosen on the held-out graphs of each fold; empty where there is nothing to choose."""
    version: int = 1
    """Of the control. Results of earlier ones stay where they were kept, but do not count."""

    def to_json(self) -> dict[str, Any]:
        """All of it, plain; accuracies as fractions."""
        return asdict(self) | {"outcome": self.outcome.to_json(), "settings": list(self.settings)}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "ControlResult":
        """From what :meth:`to_json` gave."""
        outcome = saved["outcome"]
        folds, balanced, areas = (tuple(outcome[name]) for name in ("folds", "balanced_accuracy", "roc_auc"))
        kept = Outcome(outcome["protocol"], outcome["optimistic"], folds, (), (), balanced, areas)
        return cls(**(saved | {"outcome": kept, "settings": tuple(saved["settings"])}))


def save(result: ControlResult, path: Path) -> None:
    """Write it whole, with a digest; ``DataError`` where that is not possible."""
    plain = result.to_json()
    text = json.dumps({"key": path.stem, "digest": json_digest(plain), "result": plain}, indent=2, sort_keys=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"the result of a control cannot be written: {why(error)}") from error


def load(path: Path) -> ControlResult | None:
    """What :func:`save` wrote; None if nothing is there or, with a warning, if it is not what was written."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if (saved["key"], saved["digest"]) == (path.stem, json_digest(saved["result"])):
            return ControlResult.from_json(saved["result"])
        reason = "the key or the digest differs"
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"the result of a control cannot be read: {error}.", path) from error
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
    warnings.warn(f"{path}: not what was written ({reason}). It counts as not there.", stacklevel=3)
    return None
