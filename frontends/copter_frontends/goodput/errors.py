"""Errors of the goodput model."""

from copter_frontends.vocabulary.errors import InvalidJobError


class UnknownApplicationError(InvalidJobError):
    """A job of an application that the table of models does not have."""
