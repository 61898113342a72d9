"""What a report can be written as."""

from collections.abc import Callable

from sopool.experiments.summary import Summary
from sopool.report.page.html import page
from sopool.report.papers import latex, markdown, tidy

FORMATS: dict[str, Callable[[Summary], str]] = {"html": page, "md": markdown, "tex": latex, "csv": tidy}
"""Name -> how it is written."""
