"""Read and write graphs in files: JSON lines, molecules, TU and GIN texts, ``.graphs``, PyG and NetworkX."""
