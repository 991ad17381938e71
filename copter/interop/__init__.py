"""Interfaces to other tools; each one needs its own optional package."""
