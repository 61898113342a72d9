"""The explanation of a prediction as an HTML page."""
