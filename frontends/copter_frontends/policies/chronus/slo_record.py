"""An SLO job: its reward, its promise and its leases (docs/papers/chronus.md, C2 and C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

import numpy as np

from copter_frontends.policies.chronus.mode import Mode
from copter_frontends.policies.chronus.mode_times import ModeTimes
from copter_frontends.policies.chronus.options import Floats, Ints
from copter_frontends.policy_kit.deadlines import StepReward
from copter_frontends.vocabulary import Job

NO_LEASES: Ints = np.zeros(0, dtype=np.int64)


class Standing(str, Enum):
    """Last answer to the user of an SLO job."""

    WAITING = "waiting"  # not decided yet
    GUARANTEED = "guaranteed"
    UNGUARANTEED = "unguaranteed"  # no leases for any of its deadlines: treated as best effort
    DEMOTED = "demoted"  # lost its guarantee, because GPUs were lost or it was slower than estimated


@dataclass(slots=True)
class SloRecord:
    """An SLO job.

    Attributes
    ----------
    times : ModeTimes
    done : float64 array (modes,)
        Share of the job's time that has passed, in each mode.
    promised : int
        Number of the promised deadline, -1 before a promise.
    mode : int
        Mode in which it uses its leases.
    step : int
        Number of the deadline that it meets with its leases.
    leases : int64 array
        Absolute numbers of its leases, ascending.
    reach : int
        With any choice of as many leases before this absolute number, it meets the deadline.
    joined_s : float
        Time at which it joined the lease that was running at its arrival; minus infinity if it did not join.
    table : float64 array (modes x deadlines, 8)
        Mode, GPU type, GPUs taken, seconds for the whole work, number, time and reward (above the floor) of the
        deadline, and the mode's restart time. Options are built from these rows.
    last_s : float
        Its last deadline.
    """

    job: Job
    reward: StepReward
    modes: tuple[Mode, ...]
    times: ModeTimes
    done: Floats
    standing: Standing = Standing.WAITING
    promised: int = -1
    mode: int = -1
    step: int = -1
    leases: Ints = field(default_factory=lambda: NO_LEASES)
    reach: int = 0
    joined_s: float = -np.inf
    table: Floats = field(init=False, repr=False)
    last_s: float = field(init=False, repr=False)

    @classmethod
    def of(
        cls,
        job: Job,
        reward: StepReward,
        modes: tuple[Mode, ...],
        times: ModeTimes | None = None,
        progress: float = 0.0,
    ) -> SloRecord:
        """Build the record of a job of which this share of the work is done."""
        times = ModeTimes.even(len(modes)) if times is None else times
        return cls.of_many([(job, reward, modes, times, progress)])[0]

    @classmethod
    def of_many(cls, records: Sequence[tuple[Job, StepReward, tuple[Mode, ...], ModeTimes, float]]) -> list[SloRecord]:
        """Build records from what :meth:`of` is given."""
        fresh = dict[int, Floats]()  # what is over of jobs alike of which nothing is done: one array for all
        made = []
        for job, reward, modes, times, progress in records:
            if progress > 0.0:
                done = times.done(progress)
            else:
                own = fresh.get(id(times))
                done = fresh[id(times)] = times.done(progress) if own is None else own
            made.append(cls(job, reward, modes, times, done))
        many = np.array([len(record.modes) for record in made], dtype=np.int64)
        each = np.array([len(record.reward.steps) for record in made], dtype=np.int64)
        flat = chain.from_iterable(chain.from_iterable([record.modes for record in made]))
        mode_table = np.fromiter(flat, np.float64).reshape(-1, len(Mode._fields))
        flat = chain.from_iterable(chain.from_iterable([record.reward.steps for record in made]))
        time_s, value = np.fromiter(flat, np.float64).reshape(-1, 2).T
        job_of = np.repeat(np.arange(len(made)), each)
        time_s = np.array([record.job.submit_s for record in made])[job_of] + time_s
        value = value - np.array([record.reward.floor for record in made])[job_of]
        steps = np.column_stack((np.arange(len(job_of)) - (np.cumsum(each) - each)[job_of], time_s, value))
        ends = np.cumsum(many * each)
        owner = np.repeat(np.arange(len(made)), many * each)
        within = np.arange(len(owner)) - np.repeat(ends - many * each, many * each)
        number = within // each[owner]
        mode = mode_table[(np.cumsum(many) - many)[owner] + number]
        step = steps[(np.cumsum(each) - each)[owner] + within % each[owner]]
        kind, _, taken, total_s, restart_s = mode.T
        table = np.column_stack((number, kind, taken, total_s, step, restart_s))
        begin = 0
        for record, end in zip(made, ends.tolist(), strict=True):
            record.table, begin = table[begin:end], end
        return made

    def __post_init__(self) -> None:
        self.last_s = self.job.submit_s + self.reward.last_s

    @property
    def time_done(self) -> float:
        """Return the share of the job's time that has passed in the mode of its leases, or in its first mode."""
        return float(self.done[max(self.mode, 0)]) if len(self.done) else 0.0

    @property
    def best(self) -> float:
        """Return the reward, above the floor, of the job's first deadline."""
        return self.reward.steps[0][1] - self.reward.floor

    @property
    def value(self) -> float:
        """Return the reward, above the floor, of the deadline that the job's leases meet; 0 without leases."""
        return self.reward.steps[self.step][1] - self.reward.floor if self.step >= 0 else 0.0

    def has_lease(self, lease: int) -> bool:
        """Return whether the job has a lease, given by its absolute number."""
        leases = self.leases
        if not len(leases) or leases[0] >= lease:
            return bool(len(leases) and leases[0] == lease)
        at = leases.searchsorted(lease)
        return bool(at < len(leases) and leases[at] == lease)
