"""Fuzzing targets, one for each reader of files: README.md says how to run them and how to add one."""
