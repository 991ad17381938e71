"""Scaling, and sums in a fixed order."""
