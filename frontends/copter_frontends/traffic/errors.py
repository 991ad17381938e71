"""What can be wrong with a network, its demands or its paths; every message says what, where and how to fix it."""

from copter_frontends.vocabulary.errors import FrontendError


class NetworkError(FrontendError, ValueError):
    """A network that cannot be: no link, a link from a node to itself, a capacity that is no number."""


class NetworkFileError(NetworkError):
    """A file of a network or of demands that cannot be read; the message names the file and the place."""


class DemandError(FrontendError, ValueError):
    """A demand that is NaN, infinite, negative, or from a node to itself."""


class UnknownPairError(FrontendError, KeyError):
    """A pair of nodes, a link or a node that the network does not have."""

    __str__ = Exception.__str__


class PathError(FrontendError, ValueError):
    """A path that does not lead from its source to its target over arcs of the network."""
