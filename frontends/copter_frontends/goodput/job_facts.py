"""Checks of the facts that a policy receives about a job, made before any of them is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.runtime.errors import InvalidDataError
from copter_frontends.goodput.hints import TrainingHints
from copter_frontends.vocabulary import FACTS


def check_facts(job_id: str, told: Mapping[str, Any], own: frozenset[str] = frozenset()) -> None:
    """Raise an error for facts that no policy can use.

    Parameters
    ----------
    job_id : str
    told : mapping of fact to value
        Arguments of :meth:`.SchedulingPolicy.update_job`; None means not given.
    own : frozenset of str
        Facts that this policy accepts in addition to the common ones.

    Raises
    ------
    TypeError
        For an unknown fact.
    InvalidDataError
        For a progress outside 0 to 1, restarts below 0, or hints that are not TrainingHints.
    """
    if not told.keys() <= FACTS and (unknown := sorted(told.keys() - FACTS - own)):
        known = ", ".join(sorted(FACTS | own))
        raise TypeError(f"unknown fact {', '.join(unknown)} of job {job_id!r}; there are {known}")
    progress, restarts, hints = told.get("progress"), told.get("restarts"), told.get("hints")
    if progress is not None and not 0 <= progress <= 1:
        raise InvalidDataError(f"job {job_id!r}: progress is {progress}, must be a fraction from 0 to 1")
    if restarts is not None and not restarts >= 0:
        raise InvalidDataError(f"job {job_id!r}: restarts is {restarts}, must be 0 or more")
    if hints is not None and not isinstance(hints, TrainingHints):
        raise InvalidDataError(f"job {job_id!r}: hints is a {type(hints).__name__}, must be TrainingHints")


def checked_progress(progress: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the progress of many jobs, (k,), in their order; raises InvalidDataError as :func:`check_facts` does."""
    if set(map(type, progress.values())) <= {float}:
        done = np.fromiter(progress.values(), dtype=np.float64, count=len(progress))
        if not len(done) or (done.min() >= 0.0 and done.max() <= 1.0):
            return done
    for job_id, share in progress.items():
        if share is None:
            raise InvalidDataError(f"job {job_id!r}: progress is None, must be a fraction from 0 to 1")
        check_facts(job_id, {"progress": share})
    return np.array(list(progress.values()), dtype=np.float64)
