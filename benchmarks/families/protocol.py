"""What a family of round sequences offers to copter, to its peers and to the judge."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from copter import Model

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
At = slice | Ints


class Family(Protocol):
    """A seeded sequence of LPs: max c'x, every request has as many columns k with 0 <= x <= limit and sum x <= limit.

    The model is what copter sees. The arrays say the same in NumPy for the peers and the judge, which never look into
    the model; they describe the round of the last :meth:`edit`, requests in the order they were added.

    Attributes
    ----------
    model : Model
    integer : bool
        Whether a round ends with a whole plan (limit 1 everywhere).
    columns : int
        Columns of a request, k.
    shared_pattern : bool
        Whether all requests use the resources alike.
    requests, departed, arrived : ndarray of int
        Ids in the model; those that the last edit took out and put in.
    limits : ndarray (n,)
    capacity : ndarray (rows,)
        Right-hand sides; resource ids are 0 to rows - 1.
    nonzeros : int
        Of the resources' rows; the limits' rows add one a column.
    """

    model: Model
    integer: bool
    columns: int
    shared_pattern: bool
    requests: Ints
    departed: Ints
    arrived: Ints
    limits: Floats
    capacity: Floats

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the resources' rows."""

    def prepare(self) -> None:
        """Draw the next round's changes (not timed: it is the cluster's doing, not the solver's)."""

    def edit(self) -> None:
        """Apply the round's changes to the model (timed)."""

    def adopt(self, outcome: Any) -> None:
        """Take in the plan (or, where there is none, the solution) of the round."""

    def costs(self, at: At) -> Floats:
        """Objective coefficients of the requests at these places, (m, k)."""

    def pattern(self, at: At) -> tuple[Ints, Floats]:
        """(rows, coefficients), each (m, k, h): entries of the columns, padded with zeros; m is 1 when shared."""
