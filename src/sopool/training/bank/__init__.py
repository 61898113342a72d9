"""The bank: many models of one shape, trained side by side."""
