"""The records of SDF files as texts, and the properties that follow the molecule in each."""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from sopool.data.lines import read_lines

PROPERTY = re.compile(r">.*<([^<>]+)>")


def sdf_records(path: str | Path) -> Iterator[tuple[int, str]]:
    """The text of each record, numbered from 1."""
    row, lines = 1, list[str]()
    for _, line in read_lines(path, errors="replace"):
        if line.startswith("$$$$"):
            yield row, "\n".join(lines)
            row, lines = row + 1, []
        else:
            lines.append(line.rstrip("\r\n"))
    if any(line.strip() for line in lines):
        yield row, "\n".join(lines)


def sdf_properties(record: str) -> dict[str, str]:
    """What follows the molecule: lines such as ``> <NAME>``, each with a value that ends at a blank line."""
    lines = iter(record.partition("\nM  END")[2].split("\n"))
    headers = (PROPERTY.match(line) for line in lines)
    return {header[1]: "\n".join(takewhile(str.strip, lines)).strip() for header in headers if header}
