"""The SLO jobs under consideration: their rewards, promises and leases (docs/chronus.md, C2 to C4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from copter_frontends.chronus.draft import Draft
from copter_frontends.chronus.lease_grid import LeaseGrid
from copter_frontends.chronus.options import Bools, Ints, OptionRow, Options
from copter_frontends.chronus.rewards import StepReward
from copter_frontends.vocabulary import Job

NO_LEASES: Ints = np.zeros(0, dtype=np.int64)


class Standing(str, Enum):
    """What the user of an SLO job has been told."""

    WAITING = "waiting"  # not decided yet
    GUARANTEED = "guaranteed"
    UNGUARANTEED = "unguaranteed"  # no leases for any of its deadlines: treated as best effort
    DEMOTED = "demoted"  # was guaranteed, but GPUs were lost or it was slower than estimated


@dataclass(frozen=True, slots=True)
class Notice:
    """What a user is told of a job, at a time; `step` is the deadline that is promised, -1 for none."""

    time_s: float
    job_id: str
    standing: Standing
    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to run a job: GPU type by number, GPUs used, GPUs taken (rounded up), seconds for all of its work."""

    kind: int
    gpus: int
    taken: int
    total_s: float


@dataclass(slots=True)
class SloRecord:
    """An SLO job.

    Attributes
    ----------
    promised : int
        Number of the deadline that it was promised, -1 before.
    mode : int
        The mode of its leases.
    step : int
        The deadline that its leases meet.
    leases : int64 array
        Absolute numbers of the leases that it has, ascending.
    """

    job: Job
    reward: StepReward
    modes: tuple[Mode, ...]
    progress: float = 0.0
    standing: Standing = Standing.WAITING
    promised: int = -1
    mode: int = -1
    step: int = -1
    leases: Ints = field(default_factory=lambda: NO_LEASES)

    @property
    def value(self) -> float:
        """Reward, above the floor, of the deadline that its leases meet; 0 without any."""
        return self.reward.steps[self.step][1] - self.reward.floor if self.step >= 0 else 0.0

    def has_lease(self, lease: int) -> bool:
        """Whether a lease, by its absolute number, is its."""
        return bool((self.leases == lease).any())


class SloBook:
    """SLO jobs that have, or may yet get, a promise.

    Parameters
    ----------
    grid : LeaseGrid
    """

    def __init__(self, grid: LeaseGrid) -> None:
        self.grid = grid
        self.records: dict[str, SloRecord] = {}

    def holders(self, lease: int) -> list[SloRecord]:
        """Jobs that have a lease."""
        return [record for record in self.records.values() if record.has_lease(lease)]

    def most_leases(self, first: int) -> int:
        """Leases from `first` to the last deadline of all."""
        ends = (self.grid.ended_by(r.job.submit_s + r.reward.last_s) for r in self.records.values())
        return max(max(ends, default=first) - first, 1)

    def planned(self, first: int, begins: bool) -> list[SloRecord]:
        """Jobs that leases from `first` on are to be found for: all but those that end with the lease before it."""
        return [
            record
            for record in self.records.values()
            if begins or not record.has_lease(first - 1) or bool((record.leases >= first).any())
        ]

    def options(self, records: Iterable[SloRecord], first: int, horizon: int, begins: bool) -> Options:
        """All options of some jobs.

        Inside a lease (not `begins`) the jobs that have it need the others that they have; what is left of all the rest
        follows from their progress.
        """
        rows: list[OptionRow] = []
        must = []
        for number, record in enumerate(records):
            must.append(record.promised >= 0)
            rows += self._rows(number, record, first, horizon, begins)
        return Options.of(rows, must)

    def _rows(self, number: int, record: SloRecord, first: int, horizon: int, begins: bool) -> list[OptionRow]:
        holds = not begins and record.has_lease(first - 1)
        steps = len(record.reward.steps) if record.promised < 0 else record.promised + 1
        ends = [self.grid.ended_by(record.job.submit_s + time_s) - first for time_s, _ in record.reward.steps[:steps]]
        rows: list[OptionRow] = []
        for at, mode in enumerate(record.modes):
            if holds and at != record.mode:
                continue
            left_s = mode.total_s * (1.0 - record.progress)
            need = int((record.leases >= first).sum()) if holds else self.grid.needed(left_s)
            for step, end in enumerate(ends):
                last = min(end, horizon)
                if 1 <= need <= last:
                    worth = record.reward.steps[step][1] - record.reward.floor
                    rows.append((number, at, mode.kind, mode.taken, need, last, step, worth))
        return rows

    @staticmethod
    def incumbent(records: Iterable[SloRecord], options: Options, first: int) -> dict[int, tuple[int, Ints]]:
        """What promised jobs have: job -> (option, leases from `first` on), cut to what they still need."""
        found = {}
        start = options.rows_of().tolist()
        for number, record in enumerate(records):
            if record.promised < 0:
                continue
            for row in range(start[number], start[number + 1]):
                if int(options.mode[row]) == record.mode and int(options.step[row]) == record.step:
                    leases = record.leases[record.leases >= first] - first
                    found[number] = (row, leases[: int(options.need[row])])
        return found

    def as_planned(self, record: SloRecord, first: int, horizon: int) -> tuple[Options, Bools, list[SloRecord]]:
        """One option a job, what it has from `first` on, its leases, (jobs, leases), and all options of one more."""
        others = [r for r in self.records.values() if r.promised >= 0 and len(r.leases) and r.leases[-1] >= first]
        taken = np.zeros((len(others), horizon), dtype=bool)
        if others:
            lease = np.concatenate([r.leases for r in others]) - first
            owner = np.repeat(np.arange(len(others)), [len(r.leases) for r in others])
            taken[owner[lease >= 0], lease[lease >= 0]] = True
        need = taken.sum(axis=1).tolist()
        rows = []
        for number, r in enumerate(others):
            mode, last = r.modes[r.mode], self.grid.ended_by(r.job.submit_s + r.reward.steps[r.step][0]) - first
            rows.append((number, r.mode, mode.kind, mode.taken, need[number], min(last, horizon), r.step, r.value))
        rows += self._rows(len(others), record, first, horizon, False)
        return Options.of(rows, [True] * len(others) + [False]), taken, others

    @staticmethod
    def give(record: SloRecord, draft: Draft, number: int, first: int) -> None:
        """Write down what a draft gives one job; leases before `first` stay."""
        before = record.leases[record.leases < first]
        row = int(draft.row[number])
        record.leases = np.concatenate([before, np.flatnonzero(draft.taken[number]) + first])
        if row >= 0:
            record.mode, record.step = int(draft.options.mode[row]), int(draft.options.step[row])
