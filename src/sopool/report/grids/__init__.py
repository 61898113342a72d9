"""Every table that sopool shows, as a :class:`~sopool.report.grid.Grid`: a module for each subject."""
