"""The records of SDF files as texts, and the properties that follow the molecule in each."""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from sopool.data.formats import limits
from sopool.data.formats.lines import SHOWN, Line, read_lines, too_long

PROPERTY = re.compile(r">.*<([^<>]+)>")


class SdfRecord(NamedTuple):
    """The text of a record, or its beginning and why it cannot be used."""

    number: int
    """From 1."""
    text: str
    problem: str = ""

    @property
    def title(self) -> str:
        """The first line, which names the molecule."""
        return self.text.partition("\n")[0].strip()


def sdf_records(path: str | Path) -> Iterator[SdfRecord]:
    """Read the records of a file. Of one that is too long only the beginning is kept."""
    record = _Lines()
    number = 1
    for line in read_lines(path, errors="replace"):
        if line.text.startswith("$$$$") and not line.problem:
            yield record.finish(number)
            number += 1
            record = _Lines()
        else:
            record.add(line)
    if not record.blank:
        yield record.finish(number)


class _Lines:
    """The lines of one record, as they come."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.size = 0
        self.blank = True
        self.too_long = False

    def add(self, line: Line) -> None:
        self.blank = self.blank and line.blank
        self.size += len(line.text)
        if not self.too_long and (line.problem or self.size > limits.MAX_LINE):
            self.too_long = True
            self.texts = ["\n".join(self.texts)[:SHOWN] or line.text[:SHOWN]]
        if not self.too_long:
            self.texts.append(line.text.rstrip("\r\n"))

    def finish(self, number: int) -> SdfRecord:
        problem = too_long("record", "Look for missing line ends and missing lines $$$$.") if self.too_long else ""
        return SdfRecord(number, "\n".join(self.texts), problem)


def sdf_properties(record: str) -> dict[str, str]:
    """What follows the molecule: lines such as ``> <NAME>``, each with a value that ends at a blank line."""
    lines = iter(record.partition("\nM  END")[2].split("\n"))
    headers = (PROPERTY.match(line) for line in lines)
    return {header[1]: "\n".join(takewhile(str.strip, lines)).strip() for header in headers if header}
