"""Detection of dual iterates that diverge along a Farkas ray: the program is then infeasible (equation I10)."""

from __future__ import annotations

import numpy as np

from copter.methods.interior.point import Point
from copter.methods.interior.standard_form import StandardForm
from copter.problem.sums import inner

CLEAR = 1e-9  # a reduced cost below this share of the prices counts as zero
VALUE = 1e-6  # a ray's value must exceed this share of the sum of its terms' absolute values


def is_farkas(form: StandardForm, point: Point) -> bool:
    """Whether y proves that the equations have no solution within the bounds."""
    reach = form.transpose @ point.y
    boxed = np.isfinite(form.width)
    against = np.where(form.free, np.abs(reach), np.where(boxed, 0.0, reach)).max(initial=0.0)
    if not against <= CLEAR * np.abs(point.y).max(initial=0.0):
        return False
    gain = inner(form.right, point.y)
    loss = inner(np.where(boxed, form.width, 0.0), np.maximum(reach, 0.0))
    terms = inner(np.abs(form.right), np.abs(point.y)) + loss
    return gain - loss > VALUE * terms > 0.0
