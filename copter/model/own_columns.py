"""Columns of many requests in one matrix, cut into each request's own (ledger operations `add_own` and `columns`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.model.checks import Bound, Costs, bounds_of_each
from copter.model.matrix import Template
from copter.model.matrix.template import own_templates
from copter.model.private_rows import Split, split_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Part = tuple[Hashable, Template, Costs, tuple[float, Any, Any, float, float, Floats | None]]


def own_parts(
    requests: list[Hashable],
    first: Ints,
    start: Ints,
    row: Ints,
    coefficient: Floats,
    cost: Costs,
    limits: Floats,
    leasts: Floats,
    rounding: Floats,
    private: Split | None,
    lower: Bound,
    upper: Bound,
) -> Iterator[Part]:
    """Yield each request's (id, new template, costs, numbers); request k owns columns first[k] to first[k + 1] - 1.

    The numbers are limit, lower and upper bounds, rounding error, least sum, and the table of the private rows' bounds.
    """
    own = [(None, None)] * len(requests) if private is None else list(split_rows(first, *private))
    templates = own_templates(first, start, row, coefficient, None if private is None else [rows for rows, _ in own])
    low, high, columns = bounds_of_each(lower, first), bounds_of_each(upper, first), first.tolist()
    numbers = zip(
        limits.tolist(), low, high, rounding.tolist(), leasts.tolist(), (each for _, each in own), strict=True
    )
    for at, (request, template, number) in enumerate(zip(requests, templates, numbers, strict=True)):
        yield request, template, cost[columns[at] : columns[at + 1]], number
