"""Errors about networks, demands and paths; each says what is wrong, where, and how to fix it."""

from copter_frontends.vocabulary.errors import FrontendError


class NetworkError(FrontendError, ValueError):
    """A network is invalid: no link, a link from a node to itself, an invalid capacity."""


class NetworkFileError(NetworkError):
    """A file of a network or of demands cannot be read; the message names file and place."""


class DemandError(FrontendError, ValueError):
    """A demand that is NaN, infinite, negative, or from a node to itself."""


class UnknownPairError(FrontendError, KeyError):
    """A pair of nodes, a link or a node is not in the network."""

    __str__ = Exception.__str__


class PathError(FrontendError, ValueError):
    """A path that does not lead from its source to its target over arcs of the network."""
