"""What was measured, on which machine; to JSON and back."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, get_type_hints

import torch

from sopool._files.schema import (
    BOOLEAN,
    SCALAR,
    Check,
    choice,
    list_of,
    mapping_of,
    number,
    optional,
    record,
    text,
    whole,
)
from sopool._runtime.environment import environment, package_version
from sopool._runtime.threads import cores
from sopool.errors import DataError
from sopool.experiments.bench.jobs import SCALES

FORMAT = "sopool bench 1"
UNITS = {
    "milliseconds": "median of one call",
    "floor_milliseconds": "floor_bytes / bandwidth",
    "floor_bytes": "that must move: forward H read, S written; with backward H read twice, dH, S and dS once each",
    "memory": "peak of all tensors / (inputs + outputs)",
    "train_seconds": "per model-epoch, median over epochs: `steps` batches for each model",
    "score_seconds": "per model-epoch, median over epochs: scores of all graphs",
    "floor_seconds": "per model-epoch: the operations of the model's matrix products / product_speed",
    "memory_bytes": "peak of all tensors on the device: data, weights, workspace",
    "nodes": "of all graphs (readouts); per graph (bank)",
    "bandwidth": "bytes per second, read + written, of a large copy",
    "product_speed": "operations per second of a large product, as exact as float32",
}


@dataclass(frozen=True)
class ReadoutRow:
    """One readout, one way, on graphs of one kind of sizes."""

    like: str
    graphs: int
    nodes: int
    readout: str
    backward: bool
    """Whether gradients of the nodes and the weights are computed as well."""
    way: str
    milliseconds: float
    floor_milliseconds: float
    floor_bytes: int
    memory: float


@dataclass(frozen=True)
class BankRow:
    """Training one way, at one place of one scale."""

    scale: str
    data: str
    way: str
    models: int
    graphs: int
    """In a batch."""
    width: int
    nodes: float
    steps: int
    threads: int
    train_seconds: float
    score_seconds: float
    floor_seconds: float
    memory_bytes: int

    @property
    def seconds(self) -> float:
        """Per model-epoch."""
        return self.train_seconds + self.score_seconds

    @property
    def at(self) -> float:
        """Where on its scale."""
        return float(getattr(self, self.scale))


@dataclass
class Results:
    """All figures of one run of the benchmark."""

    machine: dict[str, Any]
    readouts: list[ReadoutRow] = field(default_factory=list)
    bandwidth: float | None = None
    bank: list[BankRow] = field(default_factory=list)
    product_speed: float | None = None
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""
    profiles: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Every figure, with units and machine."""
        return {"format": FORMAT, "units": UNITS, **asdict(self)}

    @classmethod
    def from_json(cls, saved: Any) -> "Results":
        """From what :meth:`to_json` gave; a ``DataError`` for anything else."""
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise DataError(f'this is not what sopool bench --output writes: "format" is not {FORMAT!r}.')
        found = SAVED(saved, "the file")
        return cls(**{item.name: found[item.name] for item in fields(cls)})


KINDS: dict[type, Check] = {str: text(), bool: BOOLEAN, int: whole(), float: number(0)}


def _rows(make: type[ReadoutRow] | type[BankRow]) -> Check:
    """Return a check of a list of rows, which makes them."""
    kinds = {name: KINDS[kind] for name, kind in get_type_hints(make).items()}
    row = record(kinds | ({"scale": choice(*SCALES)} if "scale" in kinds else {}))
    return list_of(lambda value, where: make(**row(value, where)))


SAVED = record(
    {
        "format": text(),
        "units": mapping_of(text()),
        "machine": mapping_of(SCALAR),
        "readouts": _rows(ReadoutRow),
        "bandwidth": optional(number(0)),
        "bank": _rows(BankRow),
        "product_speed": optional(number(0)),
        "notes": list_of(text()),
        "profiles": list_of(text(most=2**20)),
    }
)


def machine(device: str) -> dict[str, Any]:
    """What the figures hold for."""
    return environment(device) | {
        "cores": cores(),
        "cuda": torch.version.cuda,
        "triton": package_version("triton"),
    }
