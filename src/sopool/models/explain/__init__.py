"""Explanations of the scores that a model gives to a graph."""
