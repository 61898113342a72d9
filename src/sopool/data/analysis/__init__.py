"""What can be computed of graphs: statistics, color refinement, spectral clusters."""
