"""The part of a relaxation's solution that Sia's shim and plan use."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter import Status


class RelaxedSolution(Protocol):
    """A :class:`copter.Solution`, or what another solver found (:class:`~.cold_highs.ColdSolution`)."""

    @property
    def status(self) -> Status:
        """How the solve ended."""

    @property
    def objective(self) -> float:
        """Value of the point."""

    @property
    def bound(self) -> float:
        """Upper bound on the optimum."""

    def by_request(self) -> Iterator[tuple[Hashable, NDArray[np.int64], NDArray[np.float64]]]:
        """Every request with its columns that may be above zero, and their values."""

    def by_column(self) -> tuple[list[Hashable], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The same in arrays: all requests, then (place in these, column, value) of the columns."""

    def price(self, resource: Hashable) -> float:
        """Dual of a resource's row."""
