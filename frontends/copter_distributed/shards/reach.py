"""Upper bounds on requests' usage of each resource, at any prices."""

from __future__ import annotations

import numpy as np

from copter.model.matrix import Template
from copter.model.model import Model
from copter_distributed.messages.messages import Floats


def reach_of(model: Model) -> tuple[Floats, Floats]:
    """Return the (largest, smallest) usage of each resource, (m,) each, by a model's plain requests (equation R4).

    A request's columns sum to at most its limit, so it uses at most the limit times its largest coefficient.
    """
    ledger = model.ledger
    matrix = ledger.matrix
    resident = matrix.resident_mask()
    limit, _ = matrix.limits()
    sums: dict[Template, float] = {}
    for slot in ledger.slot_of.values():
        if not resident[slot]:
            template = matrix.slabs[slot].template
            sums[template] = sums.get(template, 0.0) + float(limit[slot])
    most, least = np.zeros(matrix.n_rows), np.zeros(matrix.n_rows)
    for template, total in sums.items():
        largest, smallest = np.zeros(matrix.n_rows), np.zeros(matrix.n_rows)
        np.maximum.at(largest, template.row, template.coefficient)
        np.minimum.at(smallest, template.row, template.coefficient)
        most += total * largest
        least += total * smallest
    rows = list(ledger.row_of.values())
    return most[rows], least[rows]
