"""Plans of models with concave worths: whole requests make every worth a cost (docs/method/concave_worth.md, W13)."""

from __future__ import annotations

from math import inf

import numpy as np

from copter.model.model import Model
from copter.problem.worth import Worth
from copter.runtime.errors import EditNotAllowedError, InvalidDataError
from copter.session.state import model_from, model_state


def linear_of(model: Model) -> Model:
    """Return a model with the same slots whose plans are those of `model` and worth as much; it has no worths.

    A request that takes one whole column j or none is worth c_j + u(v_j) or u(0), so that column j costs c_j + u(v_j) -
    u(0), and the constant is higher by u(0).

    Raises
    ------
    EditNotAllowedError
        If a request with a worth may take more than one column, or parts of one.
    InvalidDataError
        If nothing is worth -inf to a request.
    """
    ledger, state = model.ledger, model_state(model)
    costs, changed = [], []
    for request, slot in ledger.slot_of.items():
        held = ledger.worths.get(slot)
        if held is None:
            continue
        if not (model.integrality(request).all() and 1.0 <= model.limit(request) < 2.0):
            raise EditNotAllowedError(
                f"request {request!r} has a worth, so a plan must give it one whole column or none: it needs "
                "integer=True and a limit of 1; solve() gives it parts"
            )
        worth, rates = Worth(*held[0]), held[1]
        nothing = worth(0.0)
        if nothing == -inf:
            raise InvalidDataError(
                f"request {request!r}: a plan may give it nothing, which its worth values at -inf: give it a floor"
            )
        state["offset"] += nothing
        costs.append(model.cost(request) + np.array([worth(rate) for rate in rates.tolist()]) - nothing)
        changed.append(request)
    state["worths"] = {}
    found = model_from(state)
    found.update_costs(changed, costs)
    return found
