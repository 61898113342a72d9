"""The one error that bad data raises."""

from pathlib import Path


class DataError(ValueError):
    """Something is wrong with the user's data: where, what was found, what was expected, what to do."""

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + message)
        self.path = path
        self.line = line
