"""A copy of a model in HiGHS for models with changing resources: each program is passed as a whole, with the last
basis.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any

import highspy
import numpy as np

from copter import Solution
from copter.highs.mirror import HighsMirror

Names = list[Hashable]


class WholeMirror(HighsMirror):
    """A HiGHS copy of a model with least sums and changing resources.

    The whole program is passed each time, which is faster in HiGHS than edits if most of it is new. For the basis,
    columns are matched by request and position (unless the request was added again), rows by resource and request.
    """

    _statuses: tuple[dict[Hashable, Any], dict[Hashable, Any]] | None = None
    _names: tuple[Names, Names] = ([], [])

    def update(self) -> float:
        """Pass the model and the surviving part of the last basis to HiGHS; returns HiGHS's seconds."""
        basis = self.highs.getBasis()
        if basis.valid and self._names[0]:
            self._statuses = (
                dict(zip(self._names[0], basis.col_status, strict=True)),
                dict(zip(self._names[1], basis.row_status, strict=True)),
            )
        lp = self.model.to_linear_program()
        ledger, status = self.model.ledger, highspy.HighsBasisStatus
        sizes = [(request, ledger.added_at[request], len(self.model.cost(request))) for request in self.model.requests]
        columns: Names = [(request, at, k) for request, at, count in sizes for k in range(count)]
        rows: Names = [("resource", resource) for resource in self.model.resources]
        if len(rows) + len(sizes) == lp.shape[0]:
            rows += [("request", request) for request, _, _ in sizes]
        else:  # requests have private rows, which are matched by position only
            rows += [("row", place) for place in range(len(rows), lp.shape[0])]
        data = highspy.HighsLp()
        data.num_row_, data.num_col_ = lp.shape
        data.col_cost_, data.offset_ = lp.c, lp.offset
        data.sense_ = highspy.ObjSense.kMaximize if lp.sense == "max" else highspy.ObjSense.kMinimize
        data.col_lower_, data.col_upper_ = lp.col_lower, np.full(lp.shape[1], np.inf)  # the sums bound the columns
        data.row_lower_, data.row_upper_ = lp.row_lower, lp.row_upper
        data.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        data.a_matrix_.start_, data.a_matrix_.index_ = lp.A.indptr, lp.A.indices
        data.a_matrix_.value_ = lp.A.data
        started = time.perf_counter()
        self.highs.passModel(data)
        seconds = time.perf_counter() - started
        self._names = (columns, rows)
        if self._statuses is not None:
            of_columns, of_rows = self._statuses
            new = highspy.HighsBasis()
            new.col_status = [of_columns.get(name, status.kLower) for name in columns]
            new.row_status = [of_rows.get(name, status.kBasic) for name in rows]
            new.valid, new.alien = True, True
            started = time.perf_counter()
            self.highs.setBasis(new)
            seconds += time.perf_counter() - started
        return seconds

    def start_from(self, solution: Solution) -> None:
        """Do nothing: HiGHS starts without a given basis."""
