"""Pooling layers, which turn each graph into a smaller graph. Each file defines one layer."""
