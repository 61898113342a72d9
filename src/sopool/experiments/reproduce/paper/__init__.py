"""The paper's tables and its second figure, as data."""

from sopool.experiments.reproduce.paper.tables import TABLES, Figure, PaperRow, PaperTable, Source, read_tables

__all__ = ["TABLES", "Figure", "PaperRow", "PaperTable", "Source", "read_tables"]
