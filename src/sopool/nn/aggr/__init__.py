"""Readouts: from the node vectors of a graph to one vector. One readout a file."""
