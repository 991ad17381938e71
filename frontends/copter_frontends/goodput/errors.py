"""Errors of the goodput model."""

from copter_frontends.vocabulary.errors import InvalidJobError


class UnknownApplicationError(InvalidJobError):
    """A job's application is missing from the table of models."""
