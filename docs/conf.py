"""The documentation: Markdown pages, and the reference from the docstrings."""

import sopool

project = "sopool"
author = "The sopool developers"
release = version = sopool.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "sopool"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "show-inheritance": True, "exclude-members": "forward, pool"}
myst_heading_anchors = 2
