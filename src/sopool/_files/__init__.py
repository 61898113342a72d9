"""Reading and writing files safely: whole or not at all, with checksums, checked against a schema."""
