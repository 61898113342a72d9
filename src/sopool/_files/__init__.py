"""Read and write files safely: atomic writes, checksums and schema checks."""
