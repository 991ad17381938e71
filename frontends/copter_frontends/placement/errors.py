"""Errors of the placement of jobs on nodes."""

from copter_frontends.vocabulary.errors import FrontendError


class PlacementError(FrontendError, ValueError):
    """Wanted GPUs that cannot be given concrete nodes, or a pin that cannot be kept."""
