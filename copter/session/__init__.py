"""Sessions: a model with the solver state that carries over from round to round, and how both are saved."""

from copter.session.session import Session

__all__ = ["Session"]
