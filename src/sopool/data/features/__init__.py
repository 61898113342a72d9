"""Features of nodes and edges: encoders and what they give."""
