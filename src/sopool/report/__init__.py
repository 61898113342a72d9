"""Output for people: terminal tables, HTML pages, tables for papers (Markdown, LaTeX, CSV) and figures."""

from sopool._runtime.packages import EXTRAS, require

require("sopool.report", *EXTRAS["cli"])
