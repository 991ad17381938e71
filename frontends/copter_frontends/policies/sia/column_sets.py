"""The configurations that become a job's columns: those on which its batch limits allow it to run at some time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter import Model, Template
from copter_frontends.policies.sia.shared_rows import SharedRow


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """A job's columns.

    Attributes
    ----------
    template : Template
        The model's usage pattern of these columns.
    columns : int64 array (m,)
        Number of each column's configuration, ascending.
    local : int32 array (n,)
        Column of each configuration; -1 for configurations without a column.
    """

    template: Template
    columns: NDArray[np.int64]
    local: NDArray[np.int32]


class ColumnSets:
    """Makes column sets, with one template for all jobs that share columns and rows.

    If a job's batch limits exclude nine of ten configurations, it has a tenth of the columns, which reduces memory and
    solve time accordingly.

    Parameters
    ----------
    gpus, kind : int64 array (n,)
        GPUs and number of the GPU type of each configuration.
    types : sequence of GPU type
        The model's resources.
    rows : sequence of SharedRow
        The model's further resources.
    """

    def __init__(
        self, gpus: NDArray[np.int64], kind: NDArray[np.int64], types: Sequence[str], rows: Sequence[SharedRow] = ()
    ) -> None:
        self._gpus, self._kind, self._types, self._rows = gpus, kind, tuple(types), tuple(rows)
        self._sets: dict[tuple[bytes, tuple[int, ...]], ColumnSet] = {}

    def of(self, live: NDArray[np.bool_], model: Model, rows: tuple[int, ...] = ()) -> ColumnSet:
        """Return the column set of the live configurations, (n,), for a job in these shared rows."""
        key = (live.tobytes(), rows)
        result = self._sets.get(key)
        if result is None:
            columns = np.flatnonzero(live)
            gpus, kind = self._gpus[columns], self._kind[columns]
            usage: dict[Hashable, NDArray[np.float64]] = {
                name: np.where(kind == k, gpus, 0).astype(np.float64) for k, name in enumerate(self._types)
            }
            usage |= {self._rows[at].key: self._rows[at].usage[columns] for at in rows}
            local = np.full(len(live), -1, dtype=np.int32)
            local[columns] = np.arange(len(columns), dtype=np.int32)
            result = self._sets[key] = ColumnSet(model.add_template(usage), columns, local)
        return result
