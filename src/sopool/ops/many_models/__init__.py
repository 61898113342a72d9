"""Layers of several models at once, where the rows of each model are multiplied by its own weights."""
