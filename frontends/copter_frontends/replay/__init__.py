"""Rounds of a tape played again, by copter and by other solvers, each in a process of its own."""
