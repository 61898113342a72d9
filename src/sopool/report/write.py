"""What a report can be written as."""

from collections.abc import Callable

from sopool.report.html import page
from sopool.report.papers import latex, markdown, tidy
from sopool.report.summary import Summary

FORMATS: dict[str, Callable[[Summary], str]] = {"html": page, "md": markdown, "tex": latex, "csv": tidy}
"""Name -> how it is written."""
