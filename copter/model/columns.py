"""What a request is: its numbers, and the columns of many requests in one matrix, cut into each request's own."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from copter.model.checks import Bound, Costs, bounds_of_each
from copter.model.matrix import Template
from copter.model.matrix.template import own_templates
from copter.model.private_rows import Split, split_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Part = tuple[Hashable, Template, Costs, tuple[float, Any, Any, float, float, Floats | None]]


class RequestNumbers(NamedTuple):
    """Numbers of a request, as the operations' records hold them.

    Attributes
    ----------
    limit : float
        Largest sum.
    lower, upper : float or ndarray (n,)
    scale, offset : float
    integer : bool or ndarray (n,)
    rounding : float
        Rounding error of the costs.
    least : float
        Least sum.
    bounds : ndarray (1, 2 * rows), optional
        The lower, then the upper bounds of its private rows.
    """

    limit: float
    lower: Bound
    upper: Bound
    scale: float
    offset: float
    integer: bool | NDArray[np.bool_]
    rounding: float
    least: float = -np.inf
    bounds: Floats | None = None


class Columns(NamedTuple):
    """Columns of many requests with a pattern of their own each, as the operations' records hold them.

    Attributes
    ----------
    first : ndarray (k + 1,) int32
        Request j owns columns first[j] to first[j + 1] - 1 of the CSC matrix `start`, `row`, `coefficient`.
    cost : ndarray (n,)
    limits, leasts, rounding : ndarray (k,)
        Largest and least sums, and rounding errors of the costs.
    private : Split, optional
        The private rows of all requests.
    lower, upper : float or ndarray (n,)
    integer : ndarray (k,) of bool, optional
        Whether each request's columns are integer; no request's, if it is None.
    """

    first: Ints
    start: Ints
    row: Ints
    coefficient: Floats
    cost: Costs
    limits: Floats
    leasts: Floats
    rounding: Floats
    private: Split | None = None
    lower: Bound = 0.0
    upper: Bound = np.inf
    integer: NDArray[np.bool_] | None = None

    @property
    def whole(self) -> list[bool]:
        """Whether each request's columns are integer."""
        return [False] * (len(self.first) - 1) if self.integer is None else self.integer.tolist()


N_FIELDS = len(Columns._fields)


def own_parts(requests: list[Hashable], own: Columns) -> Iterator[Part]:
    """Yield each request's (id, new template, costs, numbers).

    The numbers are limit, lower and upper bounds, rounding error, least sum, and the table of the private rows' bounds.
    """
    first, private = own.first, own.private
    rows = [(None, None)] * len(requests) if private is None else list(split_rows(first, *private))
    own_rows = None if private is None else [each for each, _ in rows]
    templates = own_templates(first, own.start, own.row, own.coefficient, own_rows)
    low, high, columns = bounds_of_each(own.lower, first), bounds_of_each(own.upper, first), first.tolist()
    limits, rounding, leasts = own.limits.tolist(), own.rounding.tolist(), own.leasts.tolist()
    numbers = zip(limits, low, high, rounding, leasts, (each for _, each in rows), strict=True)
    for at, (request, template, number) in enumerate(zip(requests, templates, numbers, strict=True)):
        yield request, template, own.cost[columns[at] : columns[at + 1]], number
