"""The facts about a data set that a store keeps, so that runs can be judged later without the graphs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from sopool._files.atomic import whole_file
from sopool._files.schema import Array, blamed_on, check_arrays
from sopool.data.graphs import PackedGraphs
from sopool.errors import DataError
from sopool.training.runs.files import arrays_to_bytes, read_arrays
from sopool.training.runs.layout import FACT_FILES, path_of
from sopool.training.runs.schema import DATASET_FACTS


@dataclass(frozen=True, eq=False)
class DatasetFacts:
    """The name and classes of a data set, and the class of every graph."""

    name: str
    fingerprint: str
    labels: np.ndarray
    """The class number of each graph ``[G]``."""
    classes: tuple[str, ...]

    @classmethod
    def of(cls, store: PackedGraphs, fingerprint: str) -> "DatasetFacts":
        """Return the facts of a labeled data set."""
        if store.labels is None:
            raise DataError(f"{store.name} has no labels, which are needed to judge its runs. Give labeled graphs.")
        return cls(store.name, fingerprint, store.labels.cpu().numpy(), tuple(map(str, store.classes)))


def facts_file(runs: Path, fingerprint: str) -> Path:
    """Return the path of the facts in a store of runs."""
    return path_of(runs, FACT_FILES, fingerprint)


def write_facts(path: Path, facts: DatasetFacts) -> None:
    """Write the facts to one file with a digest."""
    about = {"name": facts.name, "classes": list(facts.classes)}
    content = arrays_to_bytes({"labels": facts.labels}, about, facts.fingerprint)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def read_facts_file(path: Path, fingerprint: str) -> DatasetFacts:
    """Return the facts that :func:`write_facts` wrote; raise ``DataError`` if the file is not one of these."""
    about, found = read_arrays(path, fingerprint, DATASET_FACTS)
    classes = tuple(about["classes"])
    with blamed_on(path):
        check_arrays(found.arrays, {"labels": Array(("graphs",), (torch.int64,), low=0, high=len(classes) - 1)})
    return DatasetFacts(about["name"], fingerprint, found.arrays["labels"].numpy(), classes)
