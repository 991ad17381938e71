"""The shim from the LP's shares to integer bundles: round, fill, re-choose close jobs, never get worse (H11 to H14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from copter import LinearProgram
from copter.highs.milp import branch_and_bound
from copter_frontends.policies.hadar.formulation import HadarFormulation, Shares, bundle_values
from copter_frontends.policies.hadar.job_book import Floats, Ints
from copter_frontends.policies.hadar.round_values import RoundValues, eligible_gpus
from copter_frontends.policies.hadar.threshold_form import Choices, ThresholdForm

Bools = NDArray[np.bool_]

WHOLE = 1 - 1e-6  # a share of at least this counts as whole
SUPPORT = 1e-9  # smaller shares count as zero


@dataclass(frozen=True, slots=True)
class HadarShim:
    """Parameters of the rounding; calling it makes a draft.

    Parameters
    ----------
    core_gap : float
        If the relative gap exceeds this, a small MILP decides again on close jobs.
    core_jobs : int
        Most jobs in that MILP: those whose best option is the closest to the next, at the LP's prices.
    mixing_jobs : int
        If the MILP has at most this many jobs, all of them may get mixtures; otherwise only jobs that the LP splits.
    core_nodes : int
        Most nodes of the MILP's branch and bound; a count, so that plans are the same on every machine.
    core_gap_goal : float
        Relative gap at which the MILP stops.
    """

    core_gap: float = 4e-3
    core_jobs: int = 96
    mixing_jobs: int = 24
    core_nodes: int = 64
    core_gap_goal: float = 1e-4

    def __call__(
        self, formulation: HadarFormulation, shares: Shares, prices: Floats, bound: float, time_limit_s: float
    ) -> tuple[Draft, int]:
        """Round the LP's solution to whole bundles.

        Returns
        -------
        Draft
            The best of the rounded solution, the rounded solution with close jobs decided again, and the present plan,
            each filled up.
        int
            Number of jobs that the LP's solution splits.
        """
        draft = Draft(formulation, prices)
        fractional = draft.round(shares)
        draft.fill()
        best = draft
        kept = Draft(formulation, prices)
        kept.keep()
        value, stay = best.value(), kept.value()
        if stay > value:
            kept.fill()
            best, value = kept, kept.value()
        if bound - value > self.core_gap * abs(bound):
            settled = self._settled(formulation, shares, prices, bound, value, time_limit_s)
            if settled.value() > value:
                best = settled
        best.stay = stay
        return best, fractional

    def _settled(
        self,
        formulation: HadarFormulation,
        shares: Shares,
        prices: Floats,
        bound: float,
        value: float,
        time_limit_s: float,
    ) -> Draft:
        """Return the rounded solution with close jobs decided again by a MILP (H13)."""
        draft = Draft(formulation, prices)
        regret = draft.regret(shares, prices)
        movable = np.flatnonzero(~formulation.book.pinned)
        order = movable[np.argsort(regret[movable], kind="stable")]
        core = order[: self.core_jobs]
        core = core[regret[core] <= bound - value + 1e-9 * abs(bound)]
        draft.round(shares, np.setdiff1d(np.arange(len(regret)), core))
        may_mix = (regret[core] == 0) | (len(core) <= self.mixing_jobs)
        posted = None if formulation.posted is None else (formulation.posted, formulation.capacity)
        form = ThresholdForm(draft.choices(core), draft.left, may_mix, posted)
        if form.whole and len(core):
            program = form.linear_program()
            scaled = LinearProgram(
                -program.c / max(float(program.c.max()), 1e-300),
                program.A,
                program.row_lower,
                program.row_upper,
                program.col_lower,
                program.col_upper,
                program.integrality,
            )
            result = branch_and_bound(scaled, max(time_limit_s, 1e-3), self.core_gap_goal, self.core_nodes)
            if result.x is not None:
                for row, bundle in zip(core.tolist(), form.bundles(result.x), strict=True):
                    draft.take(row, bundle)
        draft.fill()
        return draft


class Draft:
    """A plan under construction: GPUs of each type for every job, and the remaining GPUs.

    Attributes
    ----------
    stay : float or None
        Value of the plan that keeps all GPUs as they are, if it has been found beside this one.
    """

    def __init__(self, formulation: HadarFormulation, prices: Floats) -> None:
        if formulation.values is None:
            raise RuntimeError("no plan has been valued yet: call HadarFormulation.refresh first")
        self.formulation = formulation
        self.book = formulation.book
        self.values: RoundValues = formulation.values
        self.prices = prices
        self.left: Ints = formulation.capacity.copy()
        self.bundles: Ints = np.zeros((len(self.book), len(formulation.types)), dtype=np.int64)
        self.idle: Bools = np.ones(len(self.book), dtype=bool)
        self.refused: set[tuple[int, bytes]] = set()
        self.stay: float | None = None
        self._worth_of: float | None = None  # of the bundles, until one changes

    @classmethod
    def of(cls, formulation: HadarFormulation, prices: Floats, bundles: Mapping[int, Ints]) -> Draft:
        """Return a draft of given bundles by row."""
        draft = cls(formulation, prices)
        for row, bundle in bundles.items():
            draft.take(row, bundle)
        return draft

    # Building blocks ----------------------------------------------------------------------------------------------

    def take(self, row: int, bundle: Ints) -> bool:
        """Give a job GPUs if they are available."""
        if not bundle.any() or bool((bundle > self.left).any()):
            return False
        self.left -= bundle
        self._worth_of = None
        self.bundles[row] = bundle
        self.idle[row] = False
        return True

    def give_back(self, row: int) -> None:
        """Release a job's GPUs and do not offer it the same again."""
        self.refused.add((row, self.bundles[row].tobytes()))
        self.left += self.bundles[row]
        self._worth_of = None
        self.bundles[row] = 0
        self.idle[row] = True

    def value(self) -> float:
        """Return the objective value of the plan."""
        return self.worth() - self.formulation.posted_cost(self.bundles.sum(axis=0))

    def worth(self) -> float:
        """Return the worth of all bundles."""
        if self._worth_of is None:
            self._worth_of = float(bundle_values(self.book, self.values, self.bundles).sum())
        return self._worth_of

    def replace(self, row: int, bundle: Ints) -> None:
        """Give a job another bundle, of GPUs that remain."""
        self.left += self.bundles[row] - bundle
        self._worth_of = None
        self.bundles[row] = bundle

    def choices(self, rows: NDArray[np.intp]) -> Choices:
        """Return the options of the jobs in these rows: held GPUs, rates and worths by type."""
        v = self.values
        return Choices(
            self.book.gpus[rows], v.rate[rows], v.pure[rows], v.mixed[rows], v.own[rows], self.book.held[rows]
        )

    # Stages -------------------------------------------------------------------------------------------------------

    def round(self, shares: Shares, rows: NDArray[np.intp] | None = None) -> int:
        """Assign pinned jobs, integral shares, then split jobs by their best remaining bundle; returns how many
        were split.
        """
        book = self.book
        for row in np.flatnonzero(book.pinned).tolist():
            self.take(row, book.held[row])
        among = np.zeros(len(book), dtype=bool)
        among[slice(None) if rows is None else rows] = True
        among &= ~book.pinned
        best = shares.x.argmax(axis=1) if shares.x.size else np.zeros(len(book), dtype=np.int64)
        top = shares.x.max(axis=1, initial=0.0)
        for row in np.flatnonzero(among & (shares.own >= WHOLE)).tolist():
            self.take(row, book.held[row])
        whole = np.flatnonzero(among & (top >= WHOLE) & self.idle)
        self._take_pure(whole, best[whole])
        total = shares.x.sum(axis=1) + shares.own
        split = np.flatnonzero(among & self.idle & (total > SUPPORT))
        worth = np.where(shares.x > SUPPORT, self.values.column, 0.0).max(axis=1, initial=0.0)
        for row in sorted(split.tolist(), key=lambda row: (-total[row], -worth[row])):
            self._take_best(row)
        return len(split)

    def keep(self) -> None:
        """Let every job keep its GPUs if they exist and have positive worth; pinned jobs first."""
        book = self.book
        for row in np.flatnonzero(book.pinned).tolist():
            self.take(row, book.held[row])
        rows = np.flatnonzero(~book.pinned & (self.values.own > 0))
        wanted = book.held[rows].sum(axis=0)
        if bool((wanted <= self.left).all()):
            self.left -= wanted
            self._worth_of = None
            self.bundles[rows] = book.held[rows]
            self.idle[rows] = False
            return
        for row in rows.tolist():
            self.take(row, book.held[row])

    def fill(self) -> None:
        """Give idle jobs bundles of remaining GPUs, most worth per GPU first (H12)."""
        book, values = self.book, self.values
        rows = np.flatnonzero(self.idle & ~book.pinned & (values.worth.max(axis=1, initial=-1.0) > 0))
        while len(rows) and self.left.any():
            offer, kind = self._offers(rows)
            rows, offer, kind = rows[offer > 0], offer[offer > 0], kind[offer > 0]
            progress = False
            for at in np.argsort(-offer / book.gpus[rows], kind="stable").tolist():
                row, q = int(rows[at]), int(kind[at])
                if book.gpus[row] > (self.left.sum() if q < 0 else self.left[q]):
                    continue
                result = self._best_bundle(row)
                # Jobs served since the offer was made may have taken its GPUs; the job then waits for the next pass.
                if result is not None and not (progress and result[1] < offer[at] * (1 - 1e-12)):
                    progress |= self.take(row, result[0])
            rows = rows[self.idle[rows]]
            if not progress:
                return

    def regret(self, shares: Shares, prices: Floats) -> Floats:
        """Return each job's loss, at the LP's prices, if it gets its next best option; zero for split jobs (H13)."""
        book = self.book
        cost = book.gpus[:, None] * prices[None, :]
        options = np.concatenate(
            [
                self.values.column - cost,
                np.where(self.values.own > 0, self.values.own - book.held @ prices, -np.inf)[:, None],
                np.zeros((len(book), 1)),
            ],
            axis=1,
        )
        own_is_pure = (book.held == book.gpus[:, None]).any(axis=1)
        options[own_is_pure, -2] = -np.inf  # the current GPUs are already one of the columns
        top = -np.sort(-options, axis=1)[:, :2]
        gap = np.asarray(top[:, 0] - top[:, 1])
        largest = np.maximum(shares.x.max(axis=1, initial=0.0), shares.own)
        gap[(largest > SUPPORT) & (largest < WHOLE)] = 0.0
        return gap

    # Inside -------------------------------------------------------------------------------------------------------

    def _take_pure(self, rows: NDArray[np.intp], kinds: NDArray[np.intp]) -> None:
        gpus = self.book.gpus[rows]
        wanted = np.bincount(kinds, weights=gpus, minlength=len(self.left)).astype(np.int64)
        allowed = (wanted <= self.left).all()
        if allowed:
            self.left -= wanted
            self._worth_of = None
            self.bundles[rows, kinds] = gpus
            self.idle[rows] = False
            return
        for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True):
            bundle = np.zeros(len(self.left), dtype=np.int64)
            bundle[kind] = self.book.gpus[row]
            self.take(row, bundle)

    def _offers(self, rows: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
        """Return the worth of each job's best bundle of remaining GPUs (not positive: none) and its type, -1 for a
        mixture.
        """
        values, gpus = self.values, self.book.gpus[rows][:, None]
        pure = np.where(self.left >= gpus, values.pure[rows], -1.0)
        mixed = np.where(eligible_gpus(values.rate[rows], self.left) >= gpus, values.mixed[rows], -1.0)
        own = np.where((self.book.held[rows] <= self.left).all(axis=1), values.own[rows], -1.0)
        several = np.maximum(mixed.max(axis=1, initial=-1.0), own)
        best = pure.max(axis=1, initial=-1.0)
        return np.asarray(np.maximum(best, several)), np.where(best >= several, pure.argmax(axis=1), -1)

    def _take_best(self, row: int) -> bool:
        result = self._best_bundle(row)
        return result is not None and self.take(row, result[0])

    def _best_bundle(self, row: int) -> tuple[Ints, float] | None:
        """Return a job's best bundle of remaining GPUs and its worth; cheapest types first among equals (H11)."""
        gpus = int(self.book.gpus[row])
        best: tuple[Ints, float, float] | None = None
        for bundle in self._bundles(row, gpus):
            if (row, bundle.tobytes()) in self.refused or not bundle.any() or bool((bundle > self.left).any()):
                continue
            worth = self._worth(row, bundle)
            key = worth - 1e-9 * float(bundle @ self.prices)
            if worth > 0 and (best is None or key > best[2]) and self._pays(bundle, worth):
                best = (bundle, worth, key)
        return None if best is None else best[:2]

    def _pays(self, bundle: Ints, worth: float) -> bool:
        """Whether a bundle is worth more than its GPUs cost at the posted prices."""
        formulation = self.formulation
        if formulation.posted is None:
            return True
        used = formulation.capacity - self.left
        return worth > formulation.posted_cost(used + bundle) - formulation.posted_cost(used)

    def _bundles(self, row: int, gpus: int) -> list[Ints]:
        """Yield bundles for a job: its present GPUs, W_j GPUs of each type, and for each threshold the cheapest
        mixture.
        """
        rate, kinds = self.values.rate[row], len(self.left)
        result: list[Ints] = [self.book.held[row]]
        for q in np.flatnonzero((rate > 0) & (self.left >= gpus)).tolist():
            bundle = np.zeros(kinds, dtype=np.int64)
            bundle[q] = gpus
            result.append(bundle)
        cheapest = np.argsort(self.prices, kind="stable")
        for r in np.flatnonzero((rate > 0) & (self.left > 0)).tolist():
            bundle, missing = np.zeros(kinds, dtype=np.int64), gpus
            for q in cheapest.tolist():
                if rate[q] >= rate[r] and missing:
                    bundle[q] = min(int(self.left[q]), missing)
                    missing -= int(bundle[q])
            if missing == 0:
                result.append(bundle)
        return result

    def _worth(self, row: int, bundle: Ints) -> float:
        values = self.values
        if np.array_equal(bundle, self.book.held[row]):
            return float(values.own[row])
        used = np.flatnonzero(bundle)
        slowest = int(used[np.argmin(values.rate[row, used])])
        if values.rate[row, slowest] <= 0:
            return -1.0
        return float((values.pure if len(used) == 1 else values.mixed)[row, slowest])
