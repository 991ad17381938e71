"""Errors of a simulation that are not input errors."""

from copter_frontends.vocabulary.errors import FrontendError


class SimulationError(FrontendError, RuntimeError):
    """A policy returned a plan that cannot be carried out; the message names the round, the job and the fault."""
