"""The layout of a folder of runs. All paths in it are defined here."""

import re
from pathlib import Path

KEY = re.compile("[0-9a-f]{16}")
"""The name of a run's folder."""
FACT_FILES = "data/*.safetensors"
REQUEST_FILES = "requests/*.json"
CONTROL_FILES = "controls/*.json"
CONFIG_FILES = "configs/*.toml"
TABLE_FILES = "reproduce-*.json"
BESIDE = (FACT_FILES, REQUEST_FILES, CONTROL_FILES, CONFIG_FILES, TABLE_FILES)
"""The files that are kept beside the runs; ``*`` stands for a file's name."""


def path_of(runs: Path, kind: str, name: str) -> Path:
    """Return the path of a file of this ``kind``, such as ``FACT_FILES``, with this name."""
    return runs / kind.replace("*", name)


def is_kept(path: Path) -> bool:
    """Return whether a file in a folder of runs belongs to the store; other files, such as a report, do not."""
    return bool(KEY.fullmatch(path.parent.name)) or any(map(path.match, BESIDE))
