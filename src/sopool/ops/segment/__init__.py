"""The primitive and what is made of it: statistics of the rows of each segment."""
