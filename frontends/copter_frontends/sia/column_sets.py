"""The configurations that a job has columns for: those that its batch limits can ever let it run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter import Model
from copter.matrix import Template


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """A job's columns.

    Attributes
    ----------
    template : Template
        The model's pattern of usage that they share.
    columns : int64 array (m,)
        Their configurations, by number, ascending.
    local : int32 array (n,)
        Column of each configuration; -1 for those without one.
    """

    template: Template
    columns: NDArray[np.int64]
    local: NDArray[np.int32]


class ColumnSets:
    """Makes column sets, one template for all jobs with the same.

    A job whose batch limits rule nine configurations in ten out has a tenth of the columns, and the model, its memory
    and its solves shrink with it.

    Parameters
    ----------
    gpus, kind : int64 array (n,)
        GPUs and number of the GPU type of each configuration.
    types : sequence of GPU type
        The model's resources.
    """

    def __init__(self, gpus: NDArray[np.int64], kind: NDArray[np.int64], types: Sequence[str]) -> None:
        self._gpus, self._kind, self._types = gpus, kind, tuple(types)
        self._sets: dict[bytes, ColumnSet] = {}

    def of(self, live: NDArray[np.bool_], model: Model) -> ColumnSet:
        """The column set of the configurations that are live, (n,)."""
        key = live.tobytes()
        result = self._sets.get(key)
        if result is None:
            columns = np.flatnonzero(live)
            gpus, kind = self._gpus[columns], self._kind[columns]
            usage = {name: np.where(kind == k, gpus, 0).astype(np.float64) for k, name in enumerate(self._types)}
            local = np.full(len(live), -1, dtype=np.int32)
            local[columns] = np.arange(len(columns), dtype=np.int32)
            result = self._sets[key] = ColumnSet(model.add_template(usage), columns, local)
        return result
