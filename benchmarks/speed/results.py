"""Measured results with a description of the machine, and their JSON format."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch

from sopool._runtime.environment import environment, package_version
from sopool._runtime.threads import cores
from sopool.errors import DataError

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
    """The result of one implementation of a readout for one distribution of sizes."""

    like: str
    graphs: int
    nodes: int
    readout: str
    backward: bool
    """Whether gradients of nodes and weights are computed as well."""
    way: str
    milliseconds: float
    floor_milliseconds: float
    floor_bytes: int
    memory: float


@dataclass(frozen=True)
class BankRow:
    """The result of one training implementation at one point of a scale."""

    scale: str
    data: str
    way: str
    models: int
    graphs: int
    """The batch size."""
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
        """Seconds of training and scoring per model-epoch."""
        return self.train_seconds + self.score_seconds

    @property
    def at(self) -> float:
        """Return the position on the scale."""
        return float(getattr(self, self.scale))


@dataclass
class Results:
    """All results of one run of the benchmark."""

    machine: dict[str, Any]
    readouts: list[ReadoutRow] = field(default_factory=list)
    bandwidth: float | None = None
    bank: list[BankRow] = field(default_factory=list)
    product_speed: float | None = None
    notes: list[str] = field(default_factory=list)
    """Skipped measurements, with reasons."""
    profiles: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return all results, with units and machine."""
        return {"format": FORMAT, "units": UNITS, **asdict(self)}

    @classmethod
    def from_json(cls, saved: Any) -> "Results":
        """Read results from the output of :meth:`to_json`; raise a ``DataError`` for other input."""
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            raise DataError(f'this file was not written by --output: "format" is not {FORMAT!r}.')
        found = {item.name: saved[item.name] for item in fields(cls)}
        found["readouts"] = [ReadoutRow(**row) for row in found["readouts"]]
        found["bank"] = [BankRow(**row) for row in found["bank"]]
        return cls(**found)


def machine(device: str) -> dict[str, Any]:
    """Return the device, the number of cores and the versions."""
    return environment(device) | {
        "cores": cores(),
        "cuda": torch.version.cuda,
        "triton": package_version("triton"),
    }
