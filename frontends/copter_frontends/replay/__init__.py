"""A tape's rounds again: by copter and by other solvers, each in its own process; and with a change (``what_if``)."""
