"""Comparison with HiGHS on the same LPs: one cold solve, then warm ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from copter import Model, Solution
from copter.highs.lp import require_highspy
from copter.highs.mirror import HighsMirror
from copter_frontends.policy_kit.lp_policy import LpPolicy


@dataclass(frozen=True, slots=True)
class ComparedRound:
    """One round's LP, solved by copter and by HiGHS.

    Attributes
    ----------
    round : int
    variables : int
        Columns of the LP.
    copter_s, highs_warm_s, highs_cold_s : float
        Wall-clock seconds of edits and solve. HiGHS solves a round either cold or warm; the other time is NaN.
    highs_start : {"cold", "warm", "given"}
        Start of HiGHS: nothing, its own last basis, or copter's vertex after a cold solve that did not end in time.
    highs_status : str
    objective_rel_diff : float
        abs(copter - HiGHS) / (1 + abs(HiGHS)) of the objectives.
    """

    round: int
    variables: int
    copter_s: float
    highs_warm_s: float
    highs_cold_s: float
    highs_start: str
    highs_status: str
    objective_rel_diff: float


class HighsComparison:
    """Observer that solves every k-th LP of a policy with HiGHS; its time does not count for the round.

    HiGHS is used in its fastest way: rows and columns are added and deleted and costs changed in place, and its basis
    is kept. A cold solve (interior point with crossover, its fastest way here) runs once, on the first compared round,
    within the time limit. If it does not finish, HiGHS gets copter's vertex as its first basis.

    Parameters
    ----------
    policy : LpPolicy
    every : int
        Rounds between two comparisons.
    time_limit_s : float
        Time limit of one HiGHS solve.
    skip : int
        Number of first linear programs that are not compared.

    Attributes
    ----------
    is_on : bool
        Whether programs are compared; False during the warm-up.
    around : callable (number of the compared round) -> context manager
        Entered around each comparison, which may take minutes: a command line reports there that HiGHS is at work.
    """

    def __init__(self, policy: LpPolicy, every: int = 10, time_limit_s: float = 120.0, skip: int = 0) -> None:
        require_highspy("a comparison with HiGHS")
        self.policy, self.every, self.time_limit_s, self.skip = policy, every, time_limit_s, skip
        self.rounds: list[ComparedRound] = []
        self.is_on = True
        self.around: Callable[[int], AbstractContextManager[None]] = lambda index: nullcontext()
        self.cold_limit_hit = False
        self._seen = 0
        self._mirror: HighsMirror | None = None
        self._model: Model | None = None
        policy.observers.append(self.observe)

    def observe(self) -> None:
        """Take note of a round and compare it if it is due."""
        if not self.is_on:
            return
        index, self._seen = self._seen, self._seen + 1
        if index >= self.skip and (index - self.skip) % self.every == 0:
            with self.around(index - self.skip):
                self.compare(index - self.skip)

    def compare(self, index: int) -> ComparedRound | None:
        """Solve the policy's last LP with HiGHS and record the result; None before the first plan."""
        policy = self.policy
        if policy.last_solution is None or policy.variables == 0:
            return None
        if self._mirror is None or self._model is not policy.model:
            self._model = policy.model
            primal = self.every == 1 and policy.lp_each_round
            self._mirror = HighsMirror(policy.model, primal=primal, whole=not policy.lp_each_round)
            result = self._cold(index, self._mirror, policy.last_solution)
        else:
            result = self._warm(index, self._mirror, policy.last_solution)
        self.rounds.append(result)
        return result

    def _cold(self, index: int, mirror: HighsMirror, solution: Solution) -> ComparedRound:
        """Solve from scratch, or from copter's vertex if a cold solve does not finish in time."""
        edit_s = mirror.update()
        run = mirror.run(self.time_limit_s, edit_s, solver="ipm")
        cold_s = edit_s + run.solve_s
        if run.optimal:
            return self._row(index, solution, run.objective, np.nan, cold_s, "cold", run.status)
        self.cold_limit_hit = True
        mirror.start_from(solution)
        given = mirror.run(self.time_limit_s, 0.0, solver="simplex")
        return self._row(index, solution, given.objective, np.nan, cold_s, "given", given.status)

    def _warm(self, index: int, mirror: HighsMirror, solution: Solution) -> ComparedRound:
        """Solve from the last basis."""
        edit_s = mirror.update()
        run = mirror.run(self.time_limit_s, edit_s, solver="simplex")
        return self._row(index, solution, run.objective, edit_s + run.solve_s, np.nan, "warm", run.status)

    def _row(
        self, index: int, solution: Solution, objective: float, warm_s: float, cold_s: float, start: str, status: str
    ) -> ComparedRound:
        return ComparedRound(
            round=index,
            variables=self.policy.variables,
            copter_s=self.policy.last_lp_s,
            highs_warm_s=warm_s,
            highs_cold_s=cold_s,
            highs_start=start,
            highs_status=status,
            objective_rel_diff=abs(solution.objective - objective) / (1.0 + abs(objective)),
        )

    def why_none(self) -> str:
        """Return why no round was compared."""
        if self._seen > self.skip:
            return "its linear programs had no columns, as no job could be given anything"
        return f"no linear program was solved in the rounds that count: {self.policy.seldom or 'no job was there'}"

    def table(self) -> list[dict[str, Any]]:
        """Return one dictionary per compared round; None if HiGHS was not run in that way.

        ``times`` is HiGHS's faster way over copter's time, as in :meth:`summary`, which has the median of this column.
        """
        rows = [{**asdict(row), "times": self._times(row)} for row in self.rounds]
        return [{key: None if value != value else value for key, value in row.items()} for row in rows]

    def _times(self, row: ComparedRound) -> float:
        """Return the warm solve's time, or a cold one's if that is less, over copter's; NaN if it was not warm."""
        cold = [each.highs_cold_s for each in self.rounds if np.isfinite(each.highs_cold_s)]
        return min(row.highs_warm_s, *cold, np.inf) / row.copter_s if np.isfinite(row.highs_warm_s) else np.nan

    def summary(self) -> dict[str, Any]:
        """Return medians and ratios over the compared rounds."""
        warm = [row for row in self.rounds if np.isfinite(row.highs_warm_s)]
        cold = [row for row in self.rounds if np.isfinite(row.highs_cold_s)]
        warm_s = np.array([row.highs_warm_s for row in warm])
        ratios = np.array([row.highs_warm_s / row.copter_s for row in warm])
        best = np.array([self._times(row) for row in warm])
        return {
            "compared_rounds": len(self.rounds),
            "every": self.every,
            "warm_s": spread(warm_s),
            "warm_over_copter": spread(ratios),
            "faster_of_warm_and_cold_over_copter": spread(best),
            "cold_s": cold[0].highs_cold_s if cold else None,
            "cold_over_copter": cold[0].highs_cold_s / cold[0].copter_s if cold else None,
            "cold_time_limit_hit": self.cold_limit_hit,
            "not_optimal": sum(row.highs_status != "Optimal" for row in self.rounds),
            "objective_rel_diff_max": max(
                (row.objective_rel_diff for row in self.rounds if row.highs_status == "Optimal"), default=None
            ),
        }


def spread(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float | None]:
    """Return p50, p99 and maximum; None without values."""
    if len(values) == 0:
        return {"p50": None, "p99": None, "max": None}
    return {
        "p50": float(np.median(values)),
        "p99": float(np.percentile(values, 99)),
        "max": float(values.max()),
    }
