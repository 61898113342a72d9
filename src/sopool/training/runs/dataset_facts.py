"""The facts about a data set that a store keeps, so that runs can be judged later without the graphs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sopool._files.atomic import whole_file
from sopool._files.schema import Array, blamed_on, check_arrays
from sopool.data.graphs import PackedGraphs
from sopool.data.names import whole_number
from sopool.errors import DataError
from sopool.objectives import Objective, truth_of
from sopool.training.runs.config import RunConfig
from sopool.training.runs.files import arrays_to_bytes, read_arrays
from sopool.training.runs.layout import FACT_FILES, path_of
from sopool.training.runs.schema import DATASET_FACTS


@dataclass(frozen=True, eq=False)
class DatasetFacts:
    """The name of a data set, and the true values of every graph."""

    name: str
    fingerprint: str
    labels: np.ndarray | None
    """The class number of each graph ``[G]``; None without classes."""
    classes: tuple[str, ...]
    targets: np.ndarray | None = None
    """The targets of each graph ``[G, T]``; None without targets."""
    target_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, store: PackedGraphs, fingerprint: str) -> "DatasetFacts":
        """Return the facts of a data set with labels or targets."""
        if store.labels is None and store.targets is None:
            raise DataError(f"{store.name} has no labels, which are needed to judge its runs. Give labeled graphs.")
        labels, targets = (None if one is None else one.cpu().numpy() for one in (store.labels, store.targets))
        return cls(store.name, fingerprint, labels, tuple(map(str, store.classes)), targets, store.target_names)

    def truth(self, config: RunConfig) -> tuple[np.ndarray, Objective]:
        """Return the true values for a run, and its objective."""
        none = torch.zeros(len(self) + 1, dtype=torch.long)
        store = PackedGraphs(
            node_ptr=none,
            edge_ptr=none,
            edge_index=torch.zeros(2, 0, dtype=torch.int32),
            labels=None if self.labels is None else torch.from_numpy(self.labels),
            classes=tuple(map(_number_or_text, self.classes)),
            targets=None if self.targets is None else torch.from_numpy(self.targets),
            target_names=self.target_names,
            name=self.name,
        )
        return truth_of(store, config.task).numpy(), config.objective(store)

    def __len__(self) -> int:
        return len(self.labels) if self.labels is not None else len(self.targets) if self.targets is not None else 0


def facts_file(runs: Path, fingerprint: str) -> Path:
    """Return the path of the facts in a store of runs."""
    return path_of(runs, FACT_FILES, fingerprint)


def write_facts(path: Path, facts: DatasetFacts) -> None:
    """Write the facts to one file with a digest."""
    about: dict[str, Any] = {"name": facts.name, "classes": list(facts.classes)}
    about |= {"target_names": list(facts.target_names)} if facts.target_names else {}
    arrays = {name: value for name, value in _arrays(facts).items() if value is not None}
    content = arrays_to_bytes(arrays, about, facts.fingerprint)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def read_facts_file(path: Path, fingerprint: str) -> DatasetFacts:
    """Return the facts that :func:`write_facts` wrote; raise ``DataError`` if the file is not one of these."""
    about, found = read_arrays(path, fingerprint, DATASET_FACTS)
    classes = tuple(about["classes"])
    names = tuple(about["target_names"])
    expected: dict[str, Array] = {}
    if classes:
        expected["labels"] = Array(("graphs",), (torch.int64,), low=0, high=len(classes) - 1)
    if names:
        expected["targets"] = Array(("graphs", len(names)), (torch.float64,), gaps=True)
    with blamed_on(path):
        check_arrays(found.arrays, expected)
    arrays = {name: found.arrays[name].numpy() if name in expected else None for name in ("labels", "targets")}
    return DatasetFacts(about["name"], fingerprint, arrays["labels"], classes, arrays["targets"], names)


def _arrays(facts: DatasetFacts) -> dict[str, np.ndarray | None]:
    return {"labels": facts.labels, "targets": facts.targets}


def _number_or_text(name: str) -> int | str:
    """Return a class as it was named in the data: facts keep the names as text."""
    number = whole_number(name)
    return name if number is None or str(number) != name else number
