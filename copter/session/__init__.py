"""A model together with the iterate that survives from round to round, and how both are saved."""

from copter.session.session import Session

__all__ = ["Session"]
