"""Columns of many requests in one matrix, cut into each request's own (ledger operations `add_own` and `columns`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.model.checks import Bound, Costs, bounds_of_each
from copter.model.matrix import Template
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
    columns, entries, counts = first.tolist(), start[first], np.diff(first) + 1
    of = np.repeat(np.arange(len(requests)), counts)
    starts = start[np.arange(len(of)) - of] - entries[of]  # of each request's columns, one after the other
    entries = entries.tolist()
    own = [(None, None)] * len(requests) if private is None else list(split_rows(first, *private))
    low, high = bounds_of_each(lower, first), bounds_of_each(upper, first)
    numbers = zip(limits.tolist(), low, high, rounding.tolist(), leasts.tolist(), strict=True)
    for at, (request, number, (rows, bounds)) in enumerate(zip(requests, numbers, own, strict=True)):
        a, b, e, f = columns[at], columns[at + 1], entries[at], entries[at + 1]
        template = Template(starts[a + at : b + at + 1], row[e:f], coefficient[e:f], False, rows)
        yield request, template, cost[a:b], (*number, bounds)
