"""Graphs as operators see them: lists of neighbors, and sums, means and maxima over them."""
