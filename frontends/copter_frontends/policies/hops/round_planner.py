"""One round: window, relaxation, shim, for the whole cluster or for its idle GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from copter import Solution, Status
from copter_frontends.policies.hops.draft import Draft
from copter_frontends.policies.hops.drafting import Drafting
from copter_frontends.policies.hops.formulation import RoundPrograms, Wish
from copter_frontends.policies.hops.service_window import adjust_for_sensitivity, service_window
from copter_frontends.policies.hops.shim import HopsShim, fill, place_support
from copter_frontends.policy_kit import OPTIMAL_GAP, Choice, StageClock, Wanted, relative_gap, status_of
from copter_frontends.vocabulary import Allocation

SOLVE_SHARE = 0.6  # share of a plan's deadline that the LP may use; placement needs the rest


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The servers that jobs get in a round.

    Attributes
    ----------
    draft : Draft
    bound : float
        Upper bound on the value of any draft.
    fractional : int
        Jobs that were fractional in the relaxation.
    solution : Solution or None
        None if there was nothing to solve.
    kept : bool
        Whether it is the last plan.
    """

    draft: Draft
    bound: float
    fractional: int
    solution: Solution | None
    kept: bool = False

    def allocations(self, drafting: Drafting) -> dict[str, Allocation]:
        """Return the allocation of every placed job."""
        return drafting.allocations(self.draft)

    def choice(
        self, wanted: Wanted, prices: dict[str, float], skipped: dict[str, str], timings: dict[str, float]
    ) -> Choice:
        """Return the policy's choice for the round."""
        solved = self.solution is None or self.solution.status is Status.OPTIMAL
        gap = relative_gap(self.draft.value, self.bound)
        close = solved and gap <= OPTIMAL_GAP  # a bound below the value is then a rounding error
        return Choice(
            wanted=wanted,
            objective=self.draft.value,
            bound=max(self.bound, self.draft.value) if close else self.bound,
            fractional_jobs=self.fractional,
            prices=prices,
            skipped=skipped,
            status=status_of(gap, solved, self.kept),
            timings=timings,
        )


@dataclass(frozen=True, slots=True)
class RoundPlanner:
    """Plans waiting jobs, given a draft of the jobs that keep their GPUs.

    Parameters
    ----------
    programs : RoundPrograms
    shim : HopsShim
    drafting : Drafting
        Maker of drafts, with this plan's weights.
    deadline_s : float
        Seconds for the plan.
    clock : StageClock
        Clock that has measured the edits.
    """

    programs: RoundPrograms
    shim: HopsShim
    drafting: Drafting
    deadline_s: float
    clock: StageClock

    def whole(self, draft: Draft, waiting: list[str], on_solved: Callable[[Solution, float], None]) -> RoundResult:
        """Plan all GPUs that the draft leaves free; `on_solved` is called with the solution and its seconds."""
        formulation = self.programs.whole
        pinned = draft.copy()
        window = service_window(waiting, self.drafting.book.smallest, draft.idle)
        wishes = self.drafting.wishes(window)
        draft.admit(wishes)
        formulation.set_free(np.array(draft.free, dtype=np.int64))
        formulation.set_wishes(wishes)
        self.clock.end("edit")
        solution = formulation.solve(deadline_s=SOLVE_SHARE * self.deadline_s)
        self.clock.end("solve")
        on_solved(solution, self.clock.total_s)
        self.clock.end("observe")
        bound = draft.value + solution.bound
        draft, fractional = self._shim(draft, solution, bound, whole=True)
        bound += self._fill_fragments(draft, [job for job in waiting if job not in draft.placed], solution)
        kept = self.drafting.better_kept(draft, pinned)
        self.clock.end("shim")
        return RoundResult(kept or draft, bound, fractional, solution, kept is not None)

    def idle(self, draft: Draft, waiting: list[str]) -> RoundResult:
        """Plan only the idle GPUs; the bound refers to this decision only (HP23)."""
        if not draft.idle or not waiting:
            for stage in ("edit", "solve", "shim"):
                self.clock.end(stage)
            return RoundResult(draft, draft.value, 0, None)
        formulation = self.programs.idle
        draft.admit(self.drafting.wishes(self._fragment_window(waiting, draft.idle)))
        formulation.set_free(np.array(draft.free, dtype=np.int64))
        formulation.set_wishes({job: each for job, each in draft.wishes.items() if job not in draft.placed})
        self.clock.end("edit")
        solution = formulation.solve(deadline_s=SOLVE_SHARE * self.deadline_s)
        self.clock.end("solve")
        bound = draft.value + solution.bound
        draft, fractional = self._shim(draft, solution, bound, whole=False)
        self.clock.end("shim")
        return RoundResult(draft, bound, fractional, solution)

    def _shim(self, draft: Draft, solution: Solution, bound: float, whole: bool) -> tuple[Draft, int]:
        formulation = self.programs.whole if whole else self.programs.idle
        rest_s = (1 - SOLVE_SHARE) * self.deadline_s
        return self.shim(draft, formulation, solution, bound, self.programs.idle, rest_s)

    def _fill_fragments(self, draft: Draft, waiting: list[str], solution: Solution) -> float:
        """Give fragments to jobs outside the window; returns their possible contribution to the bound (HP23)."""
        behind: dict[str, Wish] = {}
        for _ in range(self.shim.repeats):
            if draft.idle == 0 or not waiting or not self._plan_again(draft, waiting, behind):
                break
            waiting = [job for job in waiting if job not in draft.placed]
        if draft.idle and waiting:
            self._admit(draft, waiting, behind)
            if behind:
                fill(draft)
        if not behind:
            return 0.0
        formulation = self.programs.whole
        prices = formulation.prices(solution)
        return sum(formulation.most_profit(each, prices) for each in behind.values())

    def _plan_again(self, draft: Draft, waiting: list[str], behind: dict[str, Wish]) -> bool:
        """Solve the idle GPUs' program for their window; returns whether more jobs were placed."""
        before = len(draft.placed)
        window = self._admit(draft, waiting, behind)
        program = self.programs.idle
        program.set_free(np.array(draft.free, dtype=np.int64))
        program.set_wishes({job: draft.wishes[job] for job in window})
        place_support(draft, program, program.solve(deadline_s=SOLVE_SHARE * self.deadline_s))
        return len(draft.placed) > before

    def _admit(self, draft: Draft, waiting: list[str], behind: dict[str, Wish]) -> list[str]:
        """Return the idle GPUs' window after adding its jobs to the program."""
        window = self._fragment_window(waiting, draft.idle)
        fresh = self.drafting.wishes([job for job in window if job not in draft.wishes])
        draft.admit(fresh)
        behind |= fresh
        return window

    def _fragment_window(self, waiting: list[str], idle: int) -> list[str]:
        """Return the jobs that may use the idle GPUs."""
        book = self.drafting.book
        sensitivity = {job: book.offers[job].sensitivity for job in waiting}
        window = service_window(waiting, book.smallest, idle)
        return adjust_for_sensitivity(waiting, window, book.smallest, sensitivity, idle)
