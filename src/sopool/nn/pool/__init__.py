"""Pooling layers: from a graph to a smaller one. One layer a file."""
