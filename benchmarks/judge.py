"""The second judge: what a point and its row duals prove, recomputed from the data of the program alone.

Written from method/formulation.md (F1 to F11) with NumPy and SciPy. It imports nothing of copter, so that neither tests
nor benchmarks have to believe the engine; the engine decides OPTIMAL with a checker of its own. The file is in
`benchmarks/` because benchmarks are run as scripts, which import the files next to them without any path; tests import
it through pytest's configured path.

A program is any object with the arrays of F1 as attributes. Private rows and limits of requests are rows like others.
Programs too large for one matrix are judged in parts (:class:`Judge`).

Rounding: every figure is a double. The bound comes with `rounding`; the exact value of F7 at these duals is within it.
It counts the terms of every reduced cost and sums their magnitudes (Higham, Accuracy and Stability of Numerical
Algorithms, 3.1); the sum over each part's columns is correctly rounded, as is that of the parts.
`bound_is_certified` is said only where the signs that infinite bounds ask for hold whatever the rounding; where a
reduced cost is too small to tell, it is worked out exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

UNIT = 2.0**-53  # relative error of one operation
TINY = 2.0**-1073  # absolute error of one that underflows, twice over
PART = 1 << 14  # columns judged at once: as many as a processor keeps near it
EXACT_ENTRIES = 200_000  # of columns whose reduced costs are worked out exactly


class Arrays(Protocol):
    """A linear program (F1): sense c'x + offset, row_lower <= A x <= row_upper, col_lower <= x <= col_upper."""

    @property
    def c(self) -> Floats: ...
    @property
    def A(self) -> sp.csc_array: ...
    @property
    def row_lower(self) -> Floats: ...
    @property
    def row_upper(self) -> Floats: ...
    @property
    def col_lower(self) -> Floats: ...
    @property
    def col_upper(self) -> Floats: ...
    @property
    def integrality(self) -> Any: ...
    @property
    def sense(self) -> Literal["min", "max"]: ...
    @property
    def offset(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Judged:
    """What the judge finds (docs/method/formulation.md).

    Attributes
    ----------
    objective, bound : float
        P and D of F10. Parts of the bound that no finite bound supports are left out (F7).
    rounding : float
        The exact D at these duals is within this of `bound`.
    bound_is_certified : bool
        Whether nothing was left out (w = 0 in F7), rounding included: no feasible point is then better than
        :attr:`safe_bound`.
    primal, dual, gap : float
        F8, F9, F10. A price whose sign no bound of its row supports is taken as zero, and held against the dual.
    primal_absolute, dual_absolute, gap_absolute : float
        F11.
    complementarity : float
        Largest product of a dual or reduced cost and the distance of its row or column from the bound that it stands
        for, over 1 + |P| + |D|.
    sense : {"min", "max"}
    """

    objective: float
    bound: float
    rounding: float
    bound_is_certified: bool
    primal: float
    dual: float
    gap: float
    primal_absolute: float
    dual_absolute: float
    gap_absolute: float
    complementarity: float
    sense: Literal["min", "max"]

    @property
    def safe_bound(self) -> float:
        """The bound moved outwards by its rounding."""
        return self.bound - self.rounding if self.sense == "min" else self.bound + self.rounding

    @property
    def residual(self) -> float:
        """The largest of the relative triple."""
        return max(self.primal, self.dual, self.gap)


def judge(program: Arrays, x: Floats, y: Floats) -> Judged:
    """Judge a primal point x (n,) and row duals y (m,), in HiGHS's signs."""
    whole, A = Judge(program.row_lower, program.row_upper, y, program.sense, program.offset), sp.csc_array(program.A)
    for first in range(0, A.shape[1], PART):
        at = slice(first, first + PART)
        whole.add(program.c[at], A[:, at], (program.col_lower[at], program.col_upper[at]), x[at])
    return whole.verdict()


class Judge:
    """Judges a program in parts: rows that all parts share, then blocks of columns, each with private rows of its own.

    Parameters
    ----------
    row_lower, row_upper, y : ndarray (m,)
        The shared rows and their duals.
    sense : {"min", "max"}
    offset : float
    """

    def __init__(
        self, row_lower: Floats, row_upper: Floats, y: Floats, sense: Literal["min", "max"], offset: float = 0.0
    ) -> None:
        self.sign, self.sense, self.offset = (1.0 if sense == "min" else -1.0), sense, float(offset)
        self.shared = row_lower, row_upper
        self.price = _clipped(self.sign * np.asarray(y, dtype=np.float64), row_lower, row_upper)
        self.activity = np.zeros(len(row_lower))
        self.primal_value: list[float] = []
        self.dual_value: list[float] = []
        self.rounding: list[float] = []
        self.certified = True
        self.violation, self.wrong, self.cost, self.side = _Norm(), _Norm(), _Norm(), _Norm()
        self.product = 0.0
        self.wrong.add(self.price.wrong)

    def add(
        self,
        c: Floats,
        A: sp.csc_array,
        bounds: tuple[Floats, Floats],
        x: Floats,
        own: tuple[Floats, Floats, Floats] | None = None,
    ) -> None:
        """A block of columns.

        Parameters
        ----------
        c, x : ndarray (n,)
        A : csc_array (m + p, n)
            Shared rows first, then the p private rows.
        bounds : (col_lower, col_upper)
        own : (lower, upper, y) of the private rows, each (p,)
        """
        with np.errstate(over="ignore", invalid="ignore"):  # figures that are not finite are not within any tolerance
            self._add(self.sign * np.asarray(c, dtype=np.float64), sp.csc_array(A), bounds, x, own)

    def _add(
        self,
        c: Floats,
        A: sp.csc_array,
        bounds: tuple[Floats, Floats],
        x: Floats,
        own: tuple[Floats, Floats, Floats] | None,
    ) -> None:
        m = len(self.activity)
        activity = A @ x
        self.activity += activity[:m]
        price = self.price.value
        if own is not None:
            private = _clipped(self.sign * np.asarray(own[2], dtype=np.float64), own[0], own[1])
            self.wrong.add(private.wrong)
            self._rows(own[0], own[1], private.value, activity[m:])
            price = np.concatenate((price, private.value))
        self.cost.add(c)
        self.violation.add(_outside(x, *bounds))
        self.primal_value.append(_exact(c * x))
        found = _Columns.of(c, A, bounds, price)
        self.wrong.add(found.wrong)
        self.certified &= found.certified
        self.dual_value.append(_exact(found.term))
        self.rounding.append(float(found.error.sum()) * (1.0 + 1e-9))
        self.product = max(self.product, _product(found.reduced - found.wrong, bounds, x))

    def _rows(self, lower: Floats, upper: Floats, price: Floats, activity: Floats) -> None:
        """Rows whose activity is known."""
        self.violation.add(_outside(activity, lower, upper))
        self.side.add(lower[np.isfinite(lower)])
        self.side.add(upper[np.isfinite(upper)])
        term = _at_best(price, lower, upper)
        self.dual_value.append(_exact(term))
        self.rounding.append(2.0 * UNIT * float(np.abs(term).sum()) + TINY * len(term))
        self.product = max(self.product, _product(price, (lower, upper), activity))

    def verdict(self) -> Judged:
        """All figures, once all parts are in."""
        with np.errstate(over="ignore", invalid="ignore"):
            self._rows(*self.shared, self.price.value, self.activity)
        primal, dual = _sum(self.primal_value), _sum(self.dual_value)
        objective, bound = self.sign * primal + self.offset, self.sign * dual + self.offset
        size = 1.0 + abs(objective) + abs(bound)
        rounding = _sum(self.rounding) + 2.0 * UNIT * (sum(map(abs, self.dual_value)) + abs(self.offset) + abs(bound))
        return Judged(
            objective=objective,
            bound=bound,
            rounding=rounding,
            bound_is_certified=bool(self.certified and np.isfinite(bound) and np.isfinite(rounding)),
            primal=self.violation.norm / (1.0 + self.side.norm),
            dual=self.wrong.norm / (1.0 + self.cost.norm),
            gap=abs(objective - bound) / size,
            primal_absolute=self.violation.largest,
            dual_absolute=self.wrong.largest,
            gap_absolute=abs(objective - bound),
            complementarity=self.product / size,
            sense=self.sense,
        )


class _Norm:
    """Largest entry and Euclidean norm of a vector that comes in parts."""

    def __init__(self) -> None:
        self.largest, self.norm = 0.0, 0.0

    def add(self, part: Floats) -> None:
        """One more part; NaN stays NaN."""
        if len(part):
            self.largest = float(np.maximum(self.largest, np.abs(part).max()))
            self.norm = float(np.hypot(self.norm, np.linalg.norm(part)))


def _exact(terms: Floats) -> float:
    """A correctly rounded sum; most of the terms are zero, and add nothing."""
    return fsum(terms[terms != 0.0].tolist())


def _sum(values: list[float]) -> float:
    """A correctly rounded sum; infinite or NaN where a part is."""
    return fsum(values) if np.isfinite(values).all() else float(np.sum(values))


def _outside(value: Floats, lower: Floats, upper: Floats) -> Floats:
    """How far values are outside their bounds."""
    return np.maximum(np.maximum(lower - value, value - upper), 0.0)


@dataclass(frozen=True, slots=True)
class _Clipped:
    value: Floats  # with unsupported ones at zero
    wrong: Floats  # what was taken off


def _unsupported(value: Floats, lower: Floats, upper: Floats) -> Bools:
    """Where the sign of a multiplier asks for a bound that is infinite."""
    return np.asarray(((value > 0) & np.isneginf(lower)) | ((value < 0) & np.isposinf(upper)))


def _clipped(value: Floats, lower: Floats, upper: Floats) -> _Clipped:
    """Prices with those that no side of their row supports brought to zero (F6)."""
    wrong = np.where(_unsupported(value, lower, upper), value, 0.0)
    return _Clipped(value - wrong, wrong)


def _side(value: Floats, lower: Floats, upper: Floats) -> Floats:
    """The bound that a supported multiplier stands for; zero for multiplier zero."""
    return np.where(value == 0.0, 0.0, np.where(value > 0, lower, upper))


def _at_best(value: Floats, lower: Floats, upper: Floats) -> Floats:
    """min of value * t over lower <= t <= upper, elementwise, of supported multipliers."""
    return value * _side(value, lower, upper)


def _product(value: Floats, bounds: tuple[Floats, Floats], place: Floats) -> float:
    """Largest |multiplier * distance from the bound it stands for|."""
    distance = np.where(value == 0.0, 0.0, place - _side(value, *bounds))
    return float(np.abs(value * distance).max(initial=0.0))


@dataclass(frozen=True, slots=True)
class _Columns:
    """Reduced costs of columns and what they add to the bound, with what rounding can make of it."""

    reduced: Floats
    wrong: Floats  # w of F7
    term: Floats  # min over the column's bounds of (d - w) x
    error: Floats  # the exact term is within this
    certified: bool

    @classmethod
    def of(cls, c: Floats, A: sp.csc_array, bounds: tuple[Floats, Floats], price: Floats) -> _Columns:
        lower, upper = bounds
        reduced = c - A.T @ price
        size = np.abs(c) + abs(A).T @ np.abs(price)
        count = np.diff(A.indptr) + 2.0
        error = 1.0001 * UNIT * (count + 2.0) * size + TINY * count  # of a reduced cost
        wrong = np.where(_unsupported(reduced, lower, upper), reduced, 0.0)
        kept = reduced - wrong
        term = _at_best(kept, lower, upper)
        finite_low, finite_high = np.isfinite(lower), np.isfinite(upper)
        reach = np.maximum(np.where(finite_low, np.abs(lower), 0.0), np.where(finite_high, np.abs(upper), 0.0))
        # With one infinite bound the sign must hold whatever the rounding: d >= error, or exactly so.
        doubtful = (~finite_low & (reduced > -error)) | (~finite_high & (reduced < error))
        certified = bool(np.isfinite(reduced).all()) and _signs_hold(c, A, bounds, price, np.flatnonzero(doubtful))
        return cls(reduced, wrong, term, error * reach + 2.0 * UNIT * np.abs(term) + TINY, certified)


def _signs_hold(
    c: Floats, A: sp.csc_array, bounds: tuple[Floats, Floats], price: Floats, columns: NDArray[np.int64]
) -> bool:
    """Whether the exact reduced costs of these columns have signs that their bounds support."""
    if int(np.diff(A.indptr)[columns].sum()) > EXACT_ENTRIES:
        return False
    for j in columns.tolist():
        at = slice(A.indptr[j], A.indptr[j + 1])
        if not np.isfinite([c[j], *price[A.indices[at]]]).all():
            return False
        d = Fraction(c[j]) - sum(
            Fraction(a) * Fraction(p) for a, p in zip(A.data[at].tolist(), price[A.indices[at]].tolist(), strict=True)
        )
        if (d > 0 and np.isneginf(bounds[0][j])) or (d < 0 and np.isposinf(bounds[1][j])):
            return False
    return True


# Whole points ---------------------------------------------------------------------------------------------------------


def integer_violation(program: Arrays, x: Floats) -> float:
    """Largest distance of an integer column from a whole number, or of a semi-continuous one from what it may be."""
    values = np.asarray(x)[np.asarray(program.integrality, dtype=bool)]
    worst = float(np.abs(values - np.rint(values)).max(initial=0.0))
    for value, least in zip(np.asarray(x), getattr(program, "semicontinuous", ()), strict=False):
        if least > 0.0 and value < least:
            worst = max(worst, min(abs(float(value)), float(least - value)))
    return worst


# Rays -----------------------------------------------------------------------------------------------------------------


def is_infeasibility_ray(program: Arrays, ray: Floats, tolerance: float = 1e-7) -> bool:
    """Whether row multipliers prove a program primal infeasible: with c = 0 their bound (F6) is positive.

    The ray is taken with its largest entry 1. The value must be above its rounding. A multiplier that no bound supports
    must be below `tolerance`, and below `tolerance` times the value: then no point with a sum of absolute values below
    1 / tolerance is feasible.
    """
    size = np.abs(ray).max(initial=0.0)
    if not 0.0 < size < np.inf:
        return False
    price, lower, upper = np.asarray(ray) / size, program.row_lower, program.row_upper
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = _unsupported(price, lower, upper)
        kept = np.where(wrong, 0.0, price)
        # The columns see the multipliers as given: what the rows leave out is answered for by the tolerance.
        columns = _Columns.of(
            np.zeros(program.A.shape[1]), sp.csc_array(program.A), (program.col_lower, program.col_upper), price
        )
        terms = np.concatenate((_at_best(kept, lower, upper), columns.term))
    if not np.isfinite(terms).all():
        return False
    value = fsum(terms)
    rounding = float(columns.error.sum()) + 4.0 * UNIT * float(np.abs(terms).sum())
    unsupported = max(np.abs(price[wrong]).max(initial=0.0), np.abs(columns.wrong).max(initial=0.0))
    return bool(value > rounding and unsupported <= tolerance * min(1.0, value))


def is_improving_ray(program: Arrays, ray: Floats, tolerance: float = 1e-7) -> bool:
    """Whether the objective improves for ever along a direction in x that no row or bound stops.

    The ray is taken with its largest entry 1. A row or bound may move the wrong way by `tolerance`, and by no more than
    `tolerance` times the slope, in units of the largest cost that takes part.
    """
    size = np.abs(ray).max(initial=0.0)
    if not 0.0 < size < np.inf:
        return False
    direction = np.asarray(ray) / size
    terms = program.c * direction * (1.0 if program.sense == "min" else -1.0)
    slope = fsum(terms)
    if not slope < -4.0 * UNIT * float(np.abs(terms).sum()):
        return False
    dearest = float(np.abs(program.c[np.abs(direction) > tolerance]).max(initial=0.0))
    allowed = tolerance * (min(1.0, -slope / dearest) if dearest > 0 else 1.0)
    moved = ((program.A @ direction, program.row_lower, program.row_upper),)
    moved += ((direction, program.col_lower, program.col_upper),)
    return not any(
        bool((np.isfinite(upper) & (change > allowed)).any() or (np.isfinite(lower) & (change < -allowed)).any())
        for change, lower, upper in moved
    )


# Claims ---------------------------------------------------------------------------------------------------------------

DUAL = ("bound", "gap", "dual", "dual_absolute")
RESIDUALS = ("primal", "dual", "gap", "primal_absolute", "dual_absolute")


def faults(program: Arrays, solution: Any, tolerance: float = 1e-6) -> list[str]:
    """What of a solution's claims does not hold, each in a few words; empty if all do.

    Parameters
    ----------
    program : Arrays
    solution
        With `status`, `objective`, `bound`, `bound_is_certified`, `residuals`, `x`, `y`, `reduced_costs` and `ray`.
        OPTIMAL claims residuals, gap and violations within the tolerance, PRIMAL_INFEASIBLE and DUAL_INFEASIBLE a ray
        that proves it. Every other status claims only that its point's figures are true. Where a bound is
        not certified, dual figures are no claims: with prices of the wrong sign they depend on whether reduced costs
        are taken before or after these are brought to zero. OPTIMAL has to have them right to the tolerance.
    tolerance : float
        On the relative triple and on absolute violations.
    """
    status = solution.status.value
    if status in ("primal_infeasible", "dual_infeasible"):
        proves = is_infeasibility_ray if status == "primal_infeasible" else is_improving_ray
        if solution.ray is None:
            return [f"{status} without a ray"]
        return [] if proves(program, solution.ray, 1e-7) else [f"the ray does not prove {status}"]
    return list(_false_claims(program, solution, tolerance if status == "optimal" else np.inf))


def _false_claims(program: Arrays, solution: Any, tolerance: float) -> Iterator[str]:
    judged = judge(program, solution.x, solution.y)
    reduced = program.c - program.A.T @ solution.y
    largest = 1.0 + float(np.abs(program.c).max(initial=0.0))
    if float(np.abs(reduced - solution.reduced_costs).max(initial=0.0)) > 1e-9 * largest:
        yield "reduced costs are not c - A'y"
    claimed = {"objective": solution.objective, "bound": solution.bound}
    claimed |= {name: getattr(solution.residuals, name) for name in RESIDUALS}
    for name, value in claimed.items():
        true, slack = getattr(judged, name), 1e-9
        if name in DUAL and not solution.bound_is_certified:
            slack = max(tolerance, slack)
        if name == "bound" and solution.bound_is_certified and (value < true) == (judged.sense == "min"):
            slack = 2e-9  # on the safe side: a proof may give away 1e-9 of 1 + |P| + |D|
        unsure = judged.rounding if name in ("bound", "gap", "gap_absolute") else 0.0  # the bound may be exacter
        if not abs(value - true) <= slack * (1.0 + abs(true)) + unsure:
            yield f"{name} is {true:.10g}, not {value:.10g}"
    if tolerance < np.inf:
        for name in (*RESIDUALS, "complementarity"):
            if not getattr(judged, name) <= tolerance:
                yield f"{name} {getattr(judged, name):.1e} is above {tolerance:.1e}"


def assert_optimal(program: Arrays, x: Floats, y: Floats, tolerance: float = 1e-6) -> Judged:
    """Raise AssertionError unless (x, y) is optimal to the relative tolerance and to 10x it absolutely."""
    judged = judge(program, x, y)
    limits = dict.fromkeys(RESIDUALS[:3], tolerance) | dict.fromkeys(RESIDUALS[3:], 10 * tolerance)
    for name, limit in limits.items():
        if not getattr(judged, name) <= limit:
            raise AssertionError(f"{name} {getattr(judged, name):.3e} is above {limit:.1e}: {judged}")
    return judged
