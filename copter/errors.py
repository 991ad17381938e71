"""Errors: each says what is wrong, where, and how to mend it. A failed edit leaves the model as it was."""


class CopterError(Exception):
    """Base of every error that copter raises."""


class DimensionError(CopterError, ValueError):
    """Arrays whose shapes do not fit each other."""


class InvalidDataError(CopterError, ValueError):
    """NaN or infinite data, crossed bounds, or another value that no linear program can have."""


class UnknownHandleError(CopterError, KeyError):
    """An id that the model does not hold (never added, or already removed)."""

    __str__ = Exception.__str__


class DuplicateHandleError(CopterError, ValueError):
    """An id that the model holds already."""


class SettingsError(CopterError, ValueError):
    """A setting outside its range."""


class EditNotAllowedError(CopterError, RuntimeError):
    """An edit that the model's present state forbids."""


class StaleSolutionError(CopterError, RuntimeError):
    """A question to a solution about a request or resource that has changed since it was computed."""


class InternalError(CopterError, RuntimeError):
    """A state that cannot occur: an error of copter, not of its caller. Please report it."""


class SnapshotError(CopterError, ValueError):
    """A snapshot or journal that is cut short, damaged, foreign, newer than this copter, or cannot be written."""
