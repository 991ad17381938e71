"""Replay of a tape's rounds by copter and by other solvers, each in its own process."""
