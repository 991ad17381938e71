"""Newton's method on the smoothed dual of a model with concave worths (docs/method/concave_worth.md, W6 to W11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from copter.methods.worth.program import WorthProgram
from copter.methods.worth.requests import KINDS
from copter.methods.worth.steps import Steps
from copter.problem.worth import POWER
from copter.runtime.watch import Watch

Floats = NDArray[np.float64]

FIRST_MU = 0.3  # smoothing of a first solve, as a share of a request's worth: wider than any difference of options
FALL = 0.3  # of the smoothing, from one level to the next
LITTLE = 0.01  # share of the smoothing by which it changes to tell how prices move with it
LEAST_MU = 1e-13  # below, exponents lose all digits
RISE = (
    2.0  # the next solve's smoothing over this one's, at most: its gap, which is as its square, shall be EASY of what
)
EASY = 0.4  # ... is wanted
CLOSE = 0.1  # a level ends when Newton's decrement is below this share of the gap that is wanted
NEAR = 0.3  # ... and the prices of unused or overused units are below this share of it
LEAST_STRICT = 0.1  # both shares fall with the smoothing, down to this share of themselves
EARLY = 0.25, 300.0  # the same shares at which a point is tried once, where the level may be the last: it can be mended
LEAST_SPARE = 1e-3  # share of the gap that is wanted, spread over the rows, that spare units must be worth
FAR_STEPS = 20  # Newton steps of a warm solve above which its smoothing was too narrow for how far prices went
MOST_STEPS = 300  # Newton steps of a solve
ENOUGH = 0.6  # a step is taken when the slope along it has fallen to this share, if only beyond the least
SURELY = 0.01  # ... and to this one in a second run, in which the dual surely falls
FAILURES = 12  # smoothings at which no step helps, after which a solve is given up
SHORTER = 30  # times a step is shortened
HIGHEST = 1e150  # slope of a worth at a total of zero
DIVERGED = 1e9  # prices above the largest worth of a unit times this: the rows contradict each other


@dataclass(slots=True)
class Answer:
    """Where Newton's method has come, in the signs of a maximisation.

    Attributes
    ----------
    y : ndarray (rows,)
        Prices; the program's passes hold the point and the slopes.
    objective, bound, margin : float
        With the model's constant; the bound lacks its margin.
    over : ndarray (rows,)
        How far each row is violated.
    ended : {"optimal", "diverged", "stalled", "stopped"}
    steps, passes : int
    mu : float
        The last smoothing.
    starts : ndarray (rows,), optional
        Prices from which the next solve starts, if not y.
    """

    y: Floats
    objective: float
    bound: float
    margin: float
    over: Floats
    ended: str
    steps: int
    passes: int
    mu: float
    starts: Floats | None = None

    @property
    def gap(self) -> float:
        """Relative gap, F10; a point that breaks rows within tolerance may be worth more than the bound."""
        return abs(self.bound + self.margin - self.objective) / (1.0 + abs(self.objective) + abs(self.bound))


class Newton:
    """A solve from prices y and a smoothing mu, until the gap and the rows are within tolerance."""

    def __init__(
        self,
        program: WorthProgram,
        bounds: tuple[Floats, Floats],
        tolerances: tuple[float, float],
        offset: float,
        watch: Watch,
    ) -> None:
        self.program, self.offset = program, offset
        self.lower, self.upper = bounds
        self.tolerance, self.most_over = tolerances
        self.watch, self.steps, self.passes = watch, 0, 0
        self.damping, self.enough, self.begins = 1.0, ENOUGH, FIRST_MU
        self._proof: Answer | None = None
        self._point: tuple[Answer, float] | None = None
        self._slopes: Floats | None = (
            None  # of the best bound, and the best point: copied before others take their place
        )
        self._x: Floats | None = None
        self._moveable = np.isfinite(self.lower), np.isfinite(self.upper)
        self.hessian = np.zeros((len(self.lower), len(self.lower)))
        self.newton = Steps(self.lower, self.upper)
        self.size = program.size  # a first idea of the objective's

    def first_prices(self) -> Floats:
        """Return prices at which every row's units together cost as much as an equal part of the worths."""
        upper = self.upper
        good = np.isfinite(upper) & (upper > 0.0)
        share = self.size / max(int(good.sum()), 1)
        return np.where(good, share / np.where(good, upper, 1.0), 0.0)

    def run(self, y: Floats, mu: float) -> Answer:
        """Return the answer; its prices keep to the signs that the rows' bounds allow."""
        y, failures, stale, strict = self.clipped(y), 0, True, 1.0
        self.begins = mu
        spare, hopeful = inf, mu < FIRST_MU
        ended = "stalled"
        level: Floats | None = None  # prices of the level before
        start = float(np.abs(y).max(initial=0.0)) + self.size
        while self.steps < MOST_STEPS:
            if self.watch():
                ended = "stopped"
                break
            if stale:
                self.respond(y, mu)
                stale = False
            self.newton.direct(y, self.program.passes.used, self.hessian, self.size, self.damping)
            if hopeful and self.reached(EARLY):
                answer = self.judged(y, mu)
                if self.good(answer):
                    return self.closed(answer, "optimal")
                hopeful = False
            if self.reached((CLOSE * strict, NEAR * strict)) and self.newton.steepest <= spare:
                answer = self.judged(y, mu)
                if self.good(answer):
                    return self.closed(answer, "optimal")
                if not self.holds(answer):  # shrinking the point does not mend it: the prices must
                    spare = 0.1 * min(self.most_over, self.tolerance)
                answer = self.proven(y, level, mu)
                if self.good(answer):
                    return self.closed(answer, "optimal")
                if mu <= LEAST_MU:
                    break
                y, level = self.foreseen(y, level), y
                mu, strict, stale = mu * FALL, max(strict * FALL, LEAST_STRICT), True
                hopeful = answer.gap * FALL <= self.tolerance
                continue
            if float(np.abs(y).max(initial=0.0)) > DIVERGED * start:
                ended = "diverged"
                break
            moved = self.searched(y, mu)
            if moved is None:  # rounding hides what is left: less smoothing, or the end
                self.respond(y, mu)
                answer = self.judged(y, mu)
                if self.good(answer):
                    return self.closed(answer, "optimal")
                failures += 1
                if failures > FAILURES or mu <= LEAST_MU:
                    return self.closed(answer, "stalled")
                mu, stale, self.damping = mu * FALL, True, 1.0
                continue
            y = moved
            self.steps += 1
        self.respond(y, mu)
        answer = self.judged(y, mu)
        good = ended == "stalled" and self.good(answer)
        return self.closed(answer, "optimal" if good else ended)

    def reached(self, shares: tuple[float, float]) -> bool:
        """Whether Newton's decrement and loose units are below these shares of the gap that is wanted."""
        wanted = self.tolerance * (1.0 + 2.0 * abs(self.size))
        return self.newton.decrement <= shares[0] * wanted and self.newton.loose <= shares[1] * wanted

    def good(self, answer: Answer) -> bool:
        """Whether gap and rows are within tolerance."""
        return answer.gap <= self.tolerance and self.holds(answer)

    def foreseen(self, y: Floats, before: Floats | None) -> Floats:
        """Return prices for the next level, on the line through those of two levels; signs stay."""
        if before is None:
            return y
        found: Floats = y + FALL * (y - before)
        return np.where(found * y > 0.0, found, y)

    def proven(self, y: Floats, before: Floats | None, mu: float) -> Answer:
        """Return the answer with the bound at the prices that a smoothing of zero would have, if it is better (W17).

        Prices are nearly linear in the smoothing: on the line through those of two levels, or, after a first one, of
        Newton's steps to a little less and a little more smoothing.
        """
        if before is None:
            step = np.zeros(len(y))
            for change in (-LITTLE, LITTLE):
                self.respond(y, mu * (1.0 + change))
                self.newton.direct(y, self.program.passes.used, self.hessian, self.size, 1.0)
                step += self.newton.step / change
            at_zero = y - 0.5 * step
        else:
            at_zero = y + (y - before) * FALL / (1.0 - FALL)
        at_zero = self.clipped(np.where(at_zero * y > 0.0, at_zero, 0.0))
        answer = self.best_of(Answer(at_zero, -inf, *self.bounded(at_zero), np.full(len(y), inf), "", 0, 0, mu))
        answer.starts = y
        return answer

    def run_surely(self) -> Answer:
        """Return the answer of short steps from the first prices, where :meth:`run` has stalled."""
        self.enough, self.damping, self.steps = SURELY, 1.0, 0
        return self.run(self.first_prices(), FIRST_MU)

    def run_without(self, dead: NDArray[np.bool_]) -> Answer:
        """Return the answer of :meth:`run_surely` with columns of rows without units priced out.

        A worth that is finite at a total of zero, but steep beyond every slope there, asks for a price that no step
        comes to: it is set at which a total of zero is within a hundredth of the gap of the best one (W16).
        """
        parts = self.program.parts
        eps = 0.01 * self.tolerance * (1.0 + abs(self.size)) / max(len(parts["limit"]), 1)
        weight, floor, alpha = parts["curve"].T
        steep = (parts["kind"] == KINDS[POWER]) & (alpha < 1.0) & (floor <= 0.0)
        with np.errstate(all="ignore"):
            cap = weight * (weight * alpha / ((1.0 - alpha) * eps)) ** (alpha / (1.0 - alpha))
        cap = np.minimum(np.where(steep, np.maximum(cap, weight), 0.0), HIGHEST)
        entries = np.diff(parts["entry"])
        column = np.repeat(np.arange(len(entries)), entries)
        owner = np.zeros(len(entries), dtype=np.int64)
        for at, (first, count) in enumerate(zip(parts["start"].tolist(), parts["count"].tolist(), strict=True)):
            owner[first : first + count] = at
        asked = 4.0 * (np.abs(parts["cost"]) + cap[owner] * parts["rate"] + self.size)
        of_dead = dead[parts["row"]] & (parts["value"] > 0.0)
        price = np.zeros(len(dead))
        np.maximum.at(price, parts["row"][of_dead], asked[column[of_dead]] / parts["value"][of_dead])
        self.enough, self.damping, self.steps = SURELY, 1.0, 0
        y = self.first_prices()
        y[dead] = price[dead]
        self.newton.still[:] = dead
        answer = self.run(y, FIRST_MU)
        answer.starts = np.where(dead, 0.0, answer.y)
        return answer

    def next_mu(self, answer: Answer) -> float:
        """Return the smoothing of the next solve: wider where this one's gap leaves room, or where prices went far."""
        if self.steps > FAR_STEPS and self.begins < FIRST_MU:
            return min(answer.mu / FALL**2, FIRST_MU)
        ease = EASY * self.tolerance / max(answer.gap, 1e-3 * self.tolerance)
        return min(answer.mu * min(sqrt(max(ease, 1.0)), RISE), FIRST_MU)

    def closed(self, answer: Answer, ended: str) -> Answer:
        """Return an answer with how it ended and what it took; the passes hold its point and slopes."""
        answer.ended, answer.steps, answer.passes = ended, self.steps, self.passes
        passes = self.program.passes
        if self._x is not None or self._slopes is not None:
            passes.put(
                passes.point if self._x is None else self._x, passes.slope if self._slopes is None else self._slopes
            )
        return answer

    def keep(self, point: bool) -> None:
        """Copy the slopes of the best bound, and the best point, before a pass overwrites them."""
        if self._proof is not None and self._slopes is None:
            self._slopes = self.program.passes.slope.copy()
        if point and self._point is not None and self._x is None:
            self._x = self.program.passes.point.copy()

    def clipped(self, y: Floats) -> Floats:
        """Return prices with zeros where no bound of a row allows their sign."""
        low, up = self._moveable
        found: Floats = np.where((y > 0.0) & ~up | (y < 0.0) & ~low, 0.0, y)
        return found

    def respond(self, y: Floats, mu: float) -> None:
        """Set point, usage and second derivatives of the smoothed dual at prices y."""
        self.keep(point=True)
        self.hessian[:] = 0.0
        self.program.passes.respond(y, mu, self.hessian)
        self.passes += 1

    def searched(self, y: Floats, mu: float) -> Floats | None:
        """Return prices along Newton's step, shortened until the slope along it has fallen; None if it never does.

        The dual is convex, so that where its slope along the step is still negative it has fallen all the way (W10).
        """
        share, low = 1.0, 0.0
        for _ in range(SHORTER):
            falls = self.newton.go(y, share)
            if not falls < 0.0:  # what was cut off at zero has turned it
                share *= 0.3
                continue
            self.respond(self.newton.new, mu)
            after = self.newton.rise(y, self.program.passes.used)
            if after <= self.enough * -falls:
                self.damping = max(self.damping * 0.1, 1.0) if share > 0.5 else min(self.damping * 10.0, 1e6)
                return self.newton.new.copy()
            ratio = -falls / (-falls + after)
            share = low + (share - low) * min(max(ratio, 0.05), 0.7)
        return None

    def judged(self, y: Floats, mu: float) -> Answer:
        """Return objective and bound of the last response at prices y, its point mended.

        Columns of overused packing rows shrink, as far as that needs; those whose rows all have a price and units to
        spare grow, where these are worth anything: growth beyond a request's limit takes from its other columns.
        """
        passes = self.program.passes
        used = passes.used
        worth = LEAST_SPARE * self.tolerance * (1.0 + abs(self.size)) / max(len(y), 1)
        spare = (y > 0.0) & (used > 0.0) & (y * np.where(y > 0.0, self.upper - used, 0.0) > worth)
        mends = self.program.packing & (self.upper >= 0.0) & ((used > self.upper) | spare)
        factor = None
        if mends.any():
            factor = np.ones(len(y))
            factor[mends] = self.upper[mends] / used[mends] * (1.0 - 1e-15)
        self.keep(point=True)
        objective = passes.settle(factor)[0] + self.program.constant + self.offset
        self.passes += 1
        violated = np.maximum(np.maximum(passes.filled - self.upper, self.lower - passes.filled), 0.0)
        self.size = abs(objective) if isfinite(objective) else self.size
        return self.best_of(Answer(y, objective, *self.bounded(y), violated, "", 0, 0, mu))

    def bounded(self, y: Floats) -> tuple[float, float]:
        """Return (the bound at prices y, its margin)."""
        self.keep(point=False)
        highest, margin = self.program.passes.bound(y)
        self.passes += 1
        constant = self.program.constant + self.offset
        paid = np.where(y > 0.0, self.upper, np.where(y < 0.0, self.lower, 0.0)) * y
        margin += 1e-15 * (len(y) + 4.0) * (float(np.abs(paid).sum()) + abs(highest) + abs(constant) + abs(self.offset))
        return highest + float(paid.sum()) + constant, margin

    def best_of(self, answer: Answer) -> Answer:
        """Return the best point and the best bound so far: less smoothing gives better bounds, not always points.

        What a point breaks of a row counts at twice the row's price, so that no such point is the best for that alone.
        """
        proof = self._proof
        if proof is None or answer.bound + answer.margin < proof.bound + proof.margin:
            self._proof = proof = answer
            self._slopes = None
        if isfinite(answer.objective) and self.holds(answer):
            worth = answer.objective - 2.0 * float(np.abs(answer.y) @ answer.over)
            if self._point is None or worth > self._point[1]:
                self._point, self._x = (answer, worth), None
        point = answer if self._point is None else self._point[0]
        return replace(
            answer, y=proof.y, bound=proof.bound, margin=proof.margin, objective=point.objective, over=point.over
        )

    def holds(self, answer: Answer) -> bool:
        """Whether the rows hold within tolerance, together and each (F8)."""
        sides = np.concatenate((self.lower, self.upper))
        norm = float(np.linalg.norm(sides[np.isfinite(sides)]))
        whole = float(np.linalg.norm(answer.over)) / (1.0 + norm)
        return whole <= self.tolerance and float(answer.over.max(initial=0.0)) <= self.most_over
