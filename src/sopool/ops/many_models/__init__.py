"""Layers of several models at once: the rows of model m meet its own weights."""
