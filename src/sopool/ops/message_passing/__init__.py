"""Batches of graphs as lists of neighbors, and message passing over them."""
