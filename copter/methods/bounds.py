"""A proven bound and the residuals with it, in the signs and with the constant of a model's objective."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from sys import float_info

from copter.model.model import Model
from copter.problem.residuals import Residuals, relative_gap


def proven_bound(model: Model, lowest: float, margin: float, certified: bool) -> tuple[float, bool]:
    """(bound, whether it is certified).

    Parameters
    ----------
    model : Model
    lowest : float
        As minimised and without the objective's constant.
    margin : float
        What rounding may have added; taken off a certified bound, as is what the rounding of stored costs may hide.
    certified : bool
        Whether the margin says all.
    """
    rounding = model.ledger.matrix.rounding_bound()
    certified = certified and isfinite(rounding) and isfinite(margin)
    size = abs(lowest) + abs(rounding) + abs(model.offset)
    if isfinite(rounding):
        lowest -= rounding * (1.0 + 1e-12)
    if certified:
        lowest -= margin + 8.0 * float_info.epsilon * size
    return model.ledger.sign * lowest + model.offset, certified


def with_bound(raw: Residuals, objective: float, bound: float) -> Residuals:
    """The residuals with the gap between these two."""
    return replace(raw, gap=relative_gap(objective, bound), gap_absolute=abs(objective - bound))
