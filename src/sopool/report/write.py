"""The file formats in which a report can be written."""

from collections.abc import Callable, Sequence

from sopool.experiments.summary import Summary
from sopool.report.page.html import page
from sopool.report.papers import latex, markdown, tidy

FORMATS: dict[str, Callable[[Summary, Sequence[str]], str]] = {"html": page, "md": markdown, "tex": latex, "csv": tidy}
"""Maps the name of each format to the function that writes a summary in it.

Metrics may be given that are shown beside the ones that choose.
"""
