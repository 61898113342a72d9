"""An explanation of a prediction as a page."""
