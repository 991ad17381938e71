"""Doors to other tools; each needs its own optional package."""
