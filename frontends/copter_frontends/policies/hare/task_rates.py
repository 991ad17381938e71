"""Speed of a job's rounds of tasks on any GPUs, including mixed types and fewer GPUs than tasks (hare.md, HR24)."""

from __future__ import annotations

import numpy as np

from copter_frontends.goodput import GoodputModel
from copter_frontends.policies.hare.instance import Floats, Ints, least_round_s
from copter_frontends.policies.hare.switching import model_of
from copter_frontends.policy_kit import requested_gpus
from copter_frontends.simulator.errors import SimulationError
from copter_frontends.vocabulary import Allocation, Job

Key = tuple[str, int, tuple[tuple[str, int], ...]]


def round_s(model: str, tasks: int, gpus: dict[str, int]) -> float:
    """Return the seconds of a round of `tasks` tasks on these GPUs: HR2 with the job's GPUs instead of all.

    Tasks of a round need not run at once: a fast GPU may run several of them while a slow one runs one. Infinite if no
    type can run the model.
    """
    known = model_of(model)
    kinds = [kind for kind, count in gpus.items() if count > 0 and kind in known.speed]
    if not kinds:
        return float("inf")
    train = np.array([[known.train_s(kind) for kind in kinds]])
    sync = np.full_like(train, known.sync_s())
    count = np.array([gpus[kind] for kind in kinds], dtype=np.int64)
    return float(least_round_s(train, sync, np.array([tasks]), count)[0])


class TaskRates:
    """Rates of Hare's jobs on their GPUs, in place of the simulator's table of rates.

    Attributes
    ----------
    phase_ends, phases : ndarray
        A single phase per job, because all rounds are equal.
    """

    def __init__(self, applications: list[str]) -> None:
        self.phases: Ints = np.ones(len(applications), dtype=np.int64)
        self.phase_ends: Floats = np.ones((len(applications), 1))
        self._curves: dict[Key, int] = {}
        self._rates: list[float] = []

    @property
    def known(self) -> Floats:
        """Return the rates by curve and phase, (curves, 1)."""
        return np.array(self._rates, dtype=np.float64).reshape(-1, 1)

    def curve(self, job: Job, allocation: Allocation) -> int:
        """Return the curve number of this job's model and tasks on these GPUs; raises SimulationError if they cannot
        run it.
        """
        tasks = requested_gpus(job)
        key = (job.application, tasks, tuple(sorted(allocation.by_type.items())))
        if key not in self._curves:
            seconds = round_s(job.application, tasks, allocation.by_type)
            if not seconds < float("inf"):
                raise SimulationError(
                    f"model {job.application!r} cannot run on {allocation.by_type}, but the plan puts job {job.id!r} "
                    "there"
                )
            self._curves[key] = len(self._rates)
            self._rates.append(tasks / seconds)
        return self._curves[key]

    def rates(self, curves: Ints, phases: Ints) -> Floats:
        """Return the tasks per second of jobs with these curves (numbers from :meth:`curve`) in any phase."""
        return np.asarray(self._rates)[curves]


class TaskGoodput(GoodputModel):
    """The goodput model of Hare's applications, with which the simulator trains jobs by tasks."""

    def rate_table(self, applications: list[str]) -> TaskRates:
        """Return the table from which the simulator reads rates."""
        return TaskRates(applications)
