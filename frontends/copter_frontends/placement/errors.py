"""Errors of the placement of jobs on nodes."""

from copter_frontends.vocabulary.errors import FrontendError


class PlacementError(FrontendError, ValueError):
    """Wanted GPUs that cannot be given concrete nodes, or a pin that cannot be kept.

    Attributes
    ----------
    job_id : str or None
        The job that found no room, where there is one: without it, or on fewer GPUs, the others may fit.
    """

    def __init__(self, message: str, job_id: str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id
