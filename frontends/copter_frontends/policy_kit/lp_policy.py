"""Interface of policies that solve a linear program in every round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from copter import Model, Solution
from copter_frontends.policy_kit.edit_log import EditLog
from copter_frontends.vocabulary import SchedulingPolicy


class LpPolicy(SchedulingPolicy):
    """Base of policies with an LP: its last solution and its observers.

    Attributes
    ----------
    observers : list of callable
        Functions called in every round after the LP is solved and before anything changes; their time is not counted.
    last_solution : Solution or None
        Solution of the last round's LP.
    last_lp_s : float
        Seconds of that LP's edits and solve.
    lp_each_round : bool
        Whether every fully planned round has an LP; if not, only rounds whose plan needs it.
    programs_solved : int
        Linear programs solved so far.
    programs_needless : int
        Plans so far that were proven good enough without a linear program: none could have told more than is known.
    """

    lp_each_round = True
    programs_solved: int = 0
    programs_needless: int = 0
    edit_log: EditLog | None = None

    def __init__(self) -> None:
        self.observers: list[Callable[[], object]] = []
        self.last_solution: Solution | None = None
        self.last_lp_s = 0.0
        self.programs_solved = self.programs_needless = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return all fields but the observers and the last solution, which are not saved."""
        return {**self.__dict__, "observers": [], "last_solution": None}

    @property
    @abstractmethod
    def model(self) -> Model:
        """The LP of the last round."""

    @property
    def variables(self) -> int:
        """Number of columns of the present LP."""
        return self.model.n_columns

    @property
    def seldom(self) -> str:
        """Why some rounds have no program over all GPUs; empty if every round has one."""
        return ""

    def show(self, solution: Solution | None, lp_s: float) -> None:
        """Count and keep the round's solution, and call the observers."""
        self.last_solution, self.last_lp_s = solution, lp_s
        self.programs_solved += solution is not None and self.variables > 0
        for observe in self.observers:
            observe()
