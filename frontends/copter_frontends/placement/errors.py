"""Errors of the placement of jobs on nodes."""

from copter_frontends.vocabulary.errors import FrontendError


class PlacementError(FrontendError, ValueError):
    """The wanted GPUs cannot be assigned to nodes, or a pin cannot be kept.

    Attributes
    ----------
    job_id : str or None
        The job without room, if it is a single one: without it, or with fewer GPUs for it, the others may fit.
    """

    def __init__(self, message: str, job_id: str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id
