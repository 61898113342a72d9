"""What a store of runs has to say, as tables."""
