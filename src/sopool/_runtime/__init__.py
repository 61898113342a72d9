"""What every part of the package may need of the running process; imports the standard library only."""
