"""The paper's tables, run again: what they hold, what is selected of them, what came out."""
