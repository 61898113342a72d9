"""The bank: many models of one shape that are trained together."""
