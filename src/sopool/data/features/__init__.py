"""Encode nodes and edges as features."""
