"""The part of an LP solution that Sia's shim and plan use."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from copter import Status


class RelaxedSolution(Protocol):
    """Interface: a :class:`copter.Solution` or another solver's result (:class:`~.cold_highs.ColdSolution`)."""

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
        """Yield every request with its columns that may be above zero and their values."""

    def by_column(self) -> tuple[list[Hashable], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return :meth:`by_request` as arrays: all requests, then (index of the request, column, value)."""

    def price(self, resource: Hashable) -> float:
        """Return the dual of a resource's row."""
