"""Whether the parts of a model fit each other."""

from __future__ import annotations

import numpy as np

from copter.model.ledger import Ledger
from copter.runtime.errors import InternalError


def require_consistent(ledger: Ledger) -> None:
    """Raise InternalError unless ids, slots, rows and the matrix's counts fit each other."""
    matrix, slots, rows = ledger.matrix, list(ledger.slot_of.values()), list(ledger.row_of.values())
    ages = list(ledger.added_at.values())
    holds = {
        "every slot is in use or free": sorted([*slots, *matrix.free_slots]) == list(range(matrix.n_slots)),
        "every row is in use or free": sorted([*rows, *matrix.free_rows]) == list(range(matrix.n_rows)),
        "ages are of the requests, ascending": list(ledger.added_at) == list(ledger.slot_of) and ages == sorted(ages),
        "slabs know their slots": all(matrix.slabs[slot].slot == slot for slot in slots),
        "columns are counted": matrix.n_columns == sum(matrix.slabs[s].template.n_columns for s in slots),
        "bounds are ordered": bool(np.all(matrix.row_lower[rows] <= matrix.row_upper[rows])),
        "requests with rows of their own are counted": matrix.n_with_rows
        == sum(matrix.slabs[s].template.n_private > 0 or matrix.least_of(s) > -np.inf for s in slots),
    }
    broken = [what for what, true in holds.items() if not true]
    if broken:
        raise InternalError(f"inconsistent model: it does not hold that {'; '.join(broken)}")
