"""Errors about servers, tasks or traces; each says what is wrong, where, and how to fix it."""

from copter_frontends.vocabulary.errors import FrontendError


class ServerError(FrontendError, ValueError):
    """Invalid servers, tasks or traces: a server with no memory, a negative need, a broken line."""
