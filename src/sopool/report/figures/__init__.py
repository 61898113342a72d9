"""Figures of learning curves."""
