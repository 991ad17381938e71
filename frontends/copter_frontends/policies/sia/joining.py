"""Batching of arrivals, departures and pins: jobs join, leave and are fixed in Sia's model together between rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from copter import Model, Template
from copter.runtime.errors import InvalidDataError

Floats = NDArray[np.float64]


class Joining:
    """Jobs to add to and remove from a model at its next use.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._coming: dict[str, tuple[Template, Floats]] = {}
        self._leaving: list[str] = []
        self._fixing: dict[str, int] = {}

    def add(self, job_id: str, template: Template, values: Floats) -> None:
        """Add a job's columns with their values, (n,); raises InvalidDataError for values that are not finite."""
        self.add_all([job_id], [template], [values])

    def add_all(self, job_ids: Sequence[str], templates: Sequence[Template], values: Sequence[Floats]) -> None:
        """Do :meth:`add` for each job; on an error none is added."""
        finite = set[int]()  # arrays, which jobs alike share
        for job_id, each in zip(job_ids, values, strict=True):
            if id(each) not in finite and not np.isfinite(each).all():
                raise InvalidDataError(
                    f"job {job_id!r}: its values are not finite; give it a smaller weight or priority"
                )
            finite.add(id(each))
        self._coming.update(zip(job_ids, zip(templates, values, strict=True), strict=True))

    def remove(self, job_id: str) -> None:
        """Take a job's columns out."""
        self._fixing.pop(job_id, None)
        if self._coming.pop(job_id, None) is None:
            self._leaving.append(job_id)

    def fix(self, job_id: str, column: int) -> None:
        """Fix a job to one of its own columns; a negative one frees it."""
        self._fixing[job_id] = column

    @property
    def fixing(self) -> dict[str, int]:
        """Columns to which jobs are to be fixed, or a negative number for those to be freed; may be set."""
        return dict(self._fixing)

    @fixing.setter
    def fixing(self, columns: Mapping[str, int]) -> None:
        self._fixing = dict(columns)

    def carry_out(self) -> None:
        """Update the model: removals first, so that ids can return, then one call per template, then pins."""
        if self._leaving:
            self._model.remove_requests(self._leaving)
            self._leaving = []
        if self._coming:
            jobs: dict[Template, list[str]] = {}
            for job_id, (template, _) in self._coming.items():
                jobs.setdefault(template, []).append(job_id)
            for template, ids in jobs.items():
                values = [self._coming[job_id][1] for job_id in ids]
                self._model.add_requests(ids, values, template=template, integer=True)
            self._coming = {}
        if self._fixing:
            fixing, self._fixing = self._fixing, {}
            with self._model.batch():
                for job_id, column in fixing.items():
                    if column < 0:
                        self._model.unfix(job_id)
                    else:
                        self._model.fix(job_id, column)
