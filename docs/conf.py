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
REQUESTS = [f"set_{method}_request" for method in ("fit", "predict", "predict_proba", "transform", "score")]
"""Methods that scikit-learn adds, with references to its own pages."""
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    "exclude-members": ", ".join(["forward", "pool", *REQUESTS]),
}
myst_heading_anchors = 2
