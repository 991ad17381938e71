"""Errors: each says what is wrong, where, and how to mend it. A failed edit leaves the model as it was."""


class CopterError(Exception):
    """Base of every error that copter raises."""


class DimensionError(CopterError, ValueError):
    """Arrays whose shapes do not fit each other."""


class InvalidDataError(CopterError, ValueError):
    """Data that no linear program can have, such as NaN, a misplaced infinity or crossed bounds."""


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
    """A solution was asked about a request or resource that has changed since the solve."""


class NoPlanError(CopterError, LookupError):
    """A plan was asked what a request gets, but there is no plan: its status and `why` say so."""


class InternalError(CopterError, RuntimeError):
    """An error of copter itself: a state was reached that cannot occur. Please report it."""


class SnapshotError(CopterError, ValueError):
    """A snapshot or journal is damaged, incomplete, of another format, of a newer copter, or cannot be written."""
