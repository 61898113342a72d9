"""Describe a run without reading its arrays."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sopool.errors import DataError, UserError
from sopool.training.runs.config import RunConfig
from sopool.training.runs.files import CHECKPOINT, CURVES, read_config, read_facts
from sopool.training.runs.schema import CHECKPOINT_FACTS, CURVE_FACTS

UNSET = "not set"

Kind = Literal["finished", "stopped", "interrupted", "running", "unreadable"]
Difference = dict[str, tuple[Any, Any]]


class RunInfo(NamedTuple):
    """One row of a list of runs."""

    key: str
    config: RunConfig | None
    """The configuration; None if it is missing, damaged or of another version."""
    kind: Kind
    epoch: int | None
    """The finished epochs at the last checkpoint, for a run that is running or was interrupted."""
    size: int
    """The size on disk in bytes."""
    when: datetime
    """The time of the last change."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to train."""
        return self.kind in ("finished", "stopped")

    @property
    def state(self) -> str:
        """The state as text, such as ``interrupted, epoch 20 of 350``."""
        if self.kind != "interrupted" or self.config is None:
            return self.kind
        return f"interrupted, epoch {self.epoch} of {self.config.epochs}"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, which includes the state as text."""
        return self._asdict() | {
            "config": self.config.to_json() if self.config else None,
            "state": self.state,
            "when": self.when.isoformat(),
        }


def run_info(folder: Path) -> RunInfo | None:
    """Return what the files of a run say, None if they are gone; they do not say whether a process trains the run."""
    # The configuration is written first and therefore read last: a run with curves but without it is damaged.
    kind, epoch = _standing(folder)
    config = None
    try:
        config = read_config(folder)
    except FileNotFoundError:
        kind = "interrupted" if kind == "interrupted" else "unreadable"
    except UserError:
        kind = "unreadable"
    if config is not None and epoch is not None and epoch >= config.epochs:
        epoch = 0  # such a checkpoint cannot be used
    size, when = _on_disk(folder)
    return RunInfo(folder.name, config, kind, epoch, size, when) if when else None


def _on_disk(folder: Path) -> tuple[int, datetime | None]:
    """Return the size in bytes and the time of the last change; None if the folder is gone."""
    size = 0
    times = []
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in folder.iterdir():
            with suppress(FileNotFoundError):  # a temporary file may be removed meanwhile
                size += path.stat().st_size
                if path.suffix in (".json", ".safetensors"):  # readers also touch lock files
                    times.append(path.stat().st_mtime)
        newest = max(times, default=folder.stat().st_mtime)
        return size, datetime.fromtimestamp(newest, timezone.utc)
    return 0, None


def _standing(folder: Path) -> tuple[Kind, int | None]:
    try:
        stopped = read_facts(folder / CURVES, folder.name, CURVE_FACTS)["stopped"]
        return ("finished" if stopped is None else "stopped"), None
    except (FileNotFoundError, NotADirectoryError):
        pass
    except UserError:
        return "unreadable", None
    try:
        return "interrupted", read_facts(folder / CHECKPOINT, folder.name, CHECKPOINT_FACTS)["epoch"]
    except (FileNotFoundError, NotADirectoryError, DataError):
        return "interrupted", 0


def differences(a: RunConfig, b: RunConfig) -> Difference:
    """Return the fields in which two configurations differ, such as ``model.hidden``, with both values."""
    left = _flat(a.canonical())
    right = _flat(b.canonical())
    pairs = {name: (left.get(name, UNSET), right.get(name, UNSET)) for name in left | right}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def tell_apart(configs: Mapping[str, RunConfig], columns: Callable[[RunConfig], Any]) -> dict[str, str]:
    """Return text that distinguishes configurations with equal columns, such as ``seed 1``, only where it is needed."""
    alike: dict[Any, dict[str, RunConfig]] = {}
    for key, config in configs.items():
        alike.setdefault(columns(config), {})[key] = config
    told = {}
    for same in alike.values():
        first, *others = same.values()
        fields = dict.fromkeys(name for other in others for name in differences(first, other))
        for key, config in same.items():
            if fields:
                told[key] = ", ".join(f"{name.split('.')[-1]} {_value(config, name)}" for name in fields)
    return told


def _value(config: RunConfig, name: str) -> str:
    value: Any = config
    for part in name.split("."):
        value = value.get(part, UNSET) if isinstance(value, dict) else getattr(value, part)
    return str(value)[:12] if name == "fingerprint" else str(value) or UNSET


def _flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat
