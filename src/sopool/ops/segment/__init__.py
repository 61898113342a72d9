"""The segment primitive and the operators that are built from it."""
