"""Hare offline: relaxation, order, list schedule, and its certified ratio to the optimum."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.hare.chunks import Chunks
from copter_frontends.policies.hare.formulation import sufficient_horizon_s
from copter_frontends.policies.hare.grid import TimeGrid
from copter_frontends.policies.hare.instance import HareInstance
from copter_frontends.policies.hare.schedule import HareSchedule
from copter_frontends.policies.hare.shim import Rule, middle_order, schedule_in_order
from copter_frontends.policies.hare.solver import RelaxationSolution, RelaxationSolver


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """A schedule and its relaxation.

    Attributes
    ----------
    schedule : HareSchedule
    relaxation : RelaxationSolution
    ratio : float
        Objective divided by the certified bound; the objective is at most this many times the optimum.
    timings_s : dict of str to float
        Seconds of ``solve`` and ``schedule``.
    """

    schedule: HareSchedule
    relaxation: RelaxationSolution
    timings_s: dict[str, float]

    @property
    def ratio(self) -> float:
        """Objective divided by bound; one if there are no jobs."""
        bound = self.relaxation.bound
        return self.schedule.objective / bound if bound > 0 else 1.0


class HareScheduler:
    """Minimises sum w_n C_n by list scheduling in the relaxation's order (Algorithm 1 with HR3 in place of (9)).

    Parameters
    ----------
    growth : float
        1 + epsilon of the grid: 1.5 gives 23 intervals, 1.25 gives 40. The closer to 1, the tighter the bound.
    rule : {"earliest_finish", "paper"}
        See :func:`.schedule_in_order`.
    max_tasks : int
        Largest number of tasks; rounds are combined into chunks to stay below it.
    tolerance : float
        Relative tolerance of the relaxation.
    threads : int
    """

    def __init__(
        self,
        growth: float = 1.5,
        rule: Rule = "earliest_finish",
        max_tasks: int = 1_000_000,
        tolerance: float = 1e-4,
        threads: int = 0,
    ) -> None:
        self.growth, self.rule, self.max_tasks = growth, rule, max_tasks
        self.solver = RelaxationSolver(tolerance, threads)
        self.grid: TimeGrid | None = None

    def schedule(self, instance: HareInstance, now_s: float = 0.0, deadline_s: float = float("inf")) -> Scheduled:
        """Schedule all jobs from `now_s` on.

        The grid of the last call is kept if it covers the horizon and no time has passed, so that the relaxation starts
        warm.

        Raises
        ------
        InvalidJobError
            If one round of every job has more than `max_tasks` tasks.
        """
        chunks = Chunks.of(instance, self.max_tasks)
        started = time.perf_counter()
        grid = self._grid(instance, now_s)
        solution = self.solver.solve(instance, grid, deadline_s)
        solved = time.perf_counter()
        order = middle_order(instance, chunks, solution.mean_busy_s)
        free = np.full(int(instance.gpus.sum()), now_s)
        result = schedule_in_order(instance, chunks, order, self.rule, free_s=free)
        timings = {"solve": solved - started, "schedule": time.perf_counter() - solved}
        return Scheduled(result, solution, timings)

    def _grid(self, instance: HareInstance, now_s: float) -> TimeGrid:
        horizon = sufficient_horizon_s(instance, now_s)
        grid = self.grid
        if grid is None or grid.edges[0] > now_s or now_s >= grid.edges[-1]:
            grid = TimeGrid.geometric(now_s, horizon * 1.1 - now_s * 0.1, self.growth)
        elif now_s > grid.edges[0]:
            grid = grid.rolled(now_s)
        self.grid = grid.until(horizon)
        return self.grid
