"""Analyze graphs: statistics, color refinement, spectral clusters, distances."""
