"""Where things lie in a folder of runs. Whoever keeps something there has its name from here."""

import re
from pathlib import Path

KEY = re.compile("[0-9a-f]{16}")
"""The folder of a run."""
FACT_FILES = "data/*.safetensors"
REQUEST_FILES = "requests/*.json"
CONTROL_FILES = "controls/*.json"
TABLE_FILES = "reproduce-*.json"
BESIDE = (FACT_FILES, REQUEST_FILES, CONTROL_FILES, TABLE_FILES)
"""What is kept beside the runs; * is the name of each."""


def path_of(runs: Path, kind: str, name: str) -> Path:
    """Return the file of this ``kind``, such as ``FACT_FILES``, that is called so."""
    return runs / kind.replace("*", name)


def is_kept(path: Path) -> bool:
    """Whether a file in a folder of runs belongs to them. Others may lie there as well, such as a report."""
    return bool(KEY.fullmatch(path.parent.name)) or any(map(path.match, BESIDE))
