"""The tables of sopool as :class:`~sopool.report.grid.Grid` objects, with a module for each subject."""
