"""Readouts, which turn the node features of each graph into one vector. Each file defines one readout."""
