"""Chronus's lease LP cycle after cycle: leases roll on, jobs end and others come, promises become rows.

Not a family of models like the others: copter decomposes the program (docs/chronus.md), its peers are given the compact
form written out, as it is in the round.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from memory import peak_rss_mb

from copter import LinearProgram
from copter.interop.highs_lp import highs_lp
from copter_frontends.chronus import LeaseGrid, Selector, StepReward
from copter_frontends.chronus.compact import compact_form
from copter_frontends.chronus.job_book import Mode, SloRecord
from copter_frontends.chronus.options import Ints, Options
from copter_frontends.chronus.rounding import round_up
from copter_frontends.chronus.selector import Cycle
from copter_frontends.vocabulary import Job
from families.own_run import WARM_UP, OwnRun, known_peers

JOBS_PER_GPU = 0.5  # 5,000 SLO jobs on 10,000 GPUs
LEASES, LEASE_S, NODE_GPUS = 24, 1200.0, 8
SIZES, SHARES = (1, 2, 4, 8, 16, 32), (0.3, 0.15, 0.15, 0.2, 0.12, 0.08)
MILP_S = 5.0  # the artifact's time limit


class LeaseRounds:
    """A seeded sequence of lease problems on one GPU type: one job in three strict, the others soft.

    Parameters
    ----------
    gpus : int
    seed : int
    """

    def __init__(self, gpus: int, seed: int) -> None:
        self.rng, self.made, self.lease = np.random.default_rng(seed), 0, 0
        self.gpus, self.jobs = np.array([gpus], dtype=np.int64), max(2, round(JOBS_PER_GPU * gpus))
        self.selector = Selector(LeaseGrid(LEASE_S))
        self._arrive()

    def _arrive(self) -> None:
        """Jobs come, up to the number that there always is."""
        book, now_s = self.selector.book, self.lease * LEASE_S
        while len(book.records) < self.jobs:
            job, reward = self.draw(now_s)
            gpus = job.requested_gpus
            mode = Mode(0, gpus, round_up(gpus, NODE_GPUS), float(job.work_samples or 0.0))
            book.records[job.id] = SloRecord(job, reward, (mode,))

    def draw(self, now_s: float) -> tuple[Job, StepReward]:
        """One more job, submitted now, that can end within the leases ahead."""
        rng, job_id = self.rng, f"job-{self.made:06d}"
        self.made += 1
        total_s = rng.uniform(0.3, 0.5 * LEASES * LEASE_S / 3600.0) * 3600.0
        gpus = min(int(rng.choice(SIZES, p=SHARES)), int(self.gpus[0]))
        first_s = max(min(total_s * rng.uniform(1.2, 2.0), LEASES * LEASE_S / 1.5), 1.2 * total_s)
        reward = StepReward.strict(first_s) if rng.random() < 1 / 3 else StepReward.soft(first_s)
        return Job(job_id, "training", now_s, work_samples=total_s, requested_gpus=gpus), reward

    def problem(self) -> tuple[list[SloRecord], Options, Ints]:
        """The jobs, options and capacity of the coming cycle, for peers and judge."""
        book = self.selector.book
        records, horizon = book.planned(self.lease, True), book.most_leases(self.lease)
        options = book.options(records, self.lease, horizon, True)
        return records, options, np.repeat(self.gpus[:, None], horizon, axis=1)

    def cycle(self) -> Cycle:
        """Plan (timed)."""
        running = {record.job.id for record in self.selector.book.holders(self.lease - 1)}
        nothing = np.zeros(1, dtype=np.int64)
        now_s = self.lease * LEASE_S
        return self.selector.cycle(now_s, self.lease, self.gpus, nothing, running, True, begins=True, fresh=True)

    def prepare(self) -> None:
        """The lease passes: jobs with it get on, those that are done leave, others come."""
        book, grid = self.selector.book, self.selector.grid
        for record in book.holders(self.lease):
            record.progress += (grid.lease_s - grid.restart_s) / record.modes[0].total_s
            if record.progress >= 1.0 - 1e-9:
                book.remove(record.job.id)
        self.lease += 1
        self._arrive()


def judge(records: list[SloRecord], options: Options, capacity: Ints, first: int, found: Cycle) -> None:
    """SystemExit unless the plan is whole, in time, within capacity, keeps the promises, and is worth what it says."""
    used, value = np.zeros_like(capacity), 0.0
    for number, record in enumerate(records):
        if not len(record.leases):
            if options.must[number]:
                raise SystemExit(f"{record.job.id} was promised a deadline and has no leases")
            continue
        left_s = record.modes[0].total_s * (1.0 - record.progress)
        ends_s = (record.leases.max() + 1) * LEASE_S
        limit_s, reward = record.reward.steps[record.step]
        if len(record.leases) * (LEASE_S - 30.0) < left_s - 1.0 or ends_s > record.job.submit_s + limit_s + 1.0:
            raise SystemExit(f"{record.job.id} does not end by its deadline")
        used[0, record.leases - first] += record.modes[0].taken
        value += reward - record.reward.floor
    if (used > capacity).any() or abs(value - found.reward) > 1e-6 * value or value > found.bound + 1e-6 * value:
        raise SystemExit(f"the plan takes {used.max()} GPUs, is worth {value}, says {found.reward} of {found.bound}")


class HighsLeases:
    """HiGHS on the compact form: the LP by simplex from the last basis, or the MILP with a time limit."""

    def __init__(self, integer: bool, threads: int) -> None:
        import highspy

        self.api, self.integer, self.threads, self.highs = highspy, integer, threads, self._fresh(threads)
        self.columns: dict[Hashable, Any] = {}
        self.rows: dict[Hashable, Any] = {}

    @staticmethod
    def _fresh(threads: int) -> Any:
        import highspy

        found = highspy.Highs()
        found.silent()
        found.setOptionValue("threads", threads)
        return found

    def round(
        self, program: LinearProgram, names: tuple[list[Hashable], list[Hashable]], limit_s: float
    ) -> tuple[bool, float, float]:
        """(ended, objective, seconds) of one round; seconds are of HiGHS's own calls."""
        data, basis = highs_lp(program, self.integer), self._basis(names)
        if self.integer:
            self.highs = self._fresh(self.threads)  # nothing of the last round is of use, and its clock starts anew
        started = time.perf_counter()
        self.highs.passModel(data)
        if basis is not None:
            self.highs.setBasis(basis)
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + limit_s)
        self.highs.run()
        seconds = time.perf_counter() - started
        ended = self.highs.getModelStatus() == self.api.HighsModelStatus.kOptimal
        if ended and not self.integer:
            kept = self.highs.getBasis()
            self.columns = dict(zip(names[0], kept.col_status, strict=True))
            self.rows = dict(zip(names[1], kept.row_status, strict=True))
        return ended, float(self.highs.getInfo().objective_function_value), seconds

    def _basis(self, names: tuple[list[Hashable], list[Hashable]]) -> Any:
        """The last basis by job and absolute lease; new columns are at zero, new rows basic."""
        if not self.columns:
            return None
        found, status = self.api.HighsBasis(), self.api.HighsBasisStatus
        found.col_status = [self.columns.get(name, status.kLower) for name in names[0]]
        found.row_status = [self.rows.get(name, status.kBasic) for name in names[1]]
        found.valid, found.alien = True, True
        return found


def names_of(
    records: list[SloRecord], options: Options, capacity: Ints, first: int
) -> tuple[list[Hashable], list[Hashable]]:
    """Names of the compact form's columns and rows (without variable upper bounds) that survive from round to round."""
    ids = [record.job.id for record in records]
    option = [(ids[j], m, p) for j, m, p in zip(options.job, options.mode, options.step, strict=True)]
    blocks = list(dict.fromkeys((job, mode) for job, mode, _ in option))
    leases = [first + k for k in range(capacity.shape[1])]
    columns: list[Hashable] = [*(("s", *each) for each in option), *((*b, k) for b in blocks for k in leases)]
    rows: list[Hashable] = [*ids, *(("all", *b) for b in blocks), *(("by", *each) for each in option)]
    return columns, rows + [("free", q, k) for q in range(capacity.shape[0]) for k in leases]


@dataclass
class _Figures:
    cold_s: float = 0.0
    cold_ended: bool = True
    round_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    shim_s: list[float] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    late: int = 0


class ChronusRun(OwnRun):
    """One sequence through copter and its peers; :meth:`run` gives the object that --json prints."""

    def __init__(self, options: Any) -> None:
        known = known_peers("chronus", options.peers, {"highs": False, "highs-milp": True})
        self.options, self.own = options, _Figures()
        self.family = LeaseRounds(options.scale, options.seed)
        self.peers = {name: (HighsLeases(whole, options.threads), _Figures()) for name, whole in known.items()}
        self.size = (0, 0, 0)

    def round(self, index: int) -> None:
        """One cycle of copter, then of every peer."""
        family, own = self.family, self.own
        records, options, capacity = family.problem()
        program = compact_form(options, capacity, whole=True, vub=False) if self.peers else None
        names = names_of(records, options, capacity, family.lease) if self.peers else ([], [])
        processor, started = time.process_time(), time.perf_counter()
        found = family.cycle()
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
        judge(records, options, capacity, family.lease, found)
        self.size = (len(records), 0, 0) if program is None else (len(records), *program.shape)
        if index == -WARM_UP - 1:
            own.cold_s = seconds
        if index >= 0:
            own.round_s.append(seconds)
            own.processor_s.append(processor)
            own.solve_s.append(found.solve_s)
            own.shim_s.append(found.shim_s)
            own.passes.append(found.solution.passes if found.solution else 0)
            own.gap.append(1.0 - found.reward / found.bound if found.bound > 0 else 0.0)
        line = f"round {index}: {seconds:.3f} s ({processor:.3f} s of processor)"
        line += f", {found.reward:.0f} of {found.bound:.0f}"
        if program is not None:
            line += "".join(self._peer_round(name, index, program, names, found) for name in self.peers)
        if self.options.verbose:
            print(line, file=sys.stderr, flush=True)

    def _peer_round(
        self, name: str, index: int, program: LinearProgram, names: tuple[list[Hashable], list[Hashable]], found: Cycle
    ) -> str:
        """The same cycle by a peer; what to say of it."""
        peer, figures = self.peers[name]
        ended, value, taken_s = peer.round(program, names, MILP_S if peer.integer else self.options.peer_time_limit_s)
        if index == -WARM_UP - 1:
            figures.cold_s, figures.cold_ended = taken_s, ended
        else:
            figures.late += not ended
        if index >= 0:
            figures.round_s.append(taken_s)
            figures.value += [value / found.reward] if np.isfinite(value) else []  # the MILP may find no plan
            figures.gap += [value / found.bound - 1.0] if np.isfinite(value) else []
        return f"; {name} {taken_s:.2f} s, {value:.0f}"

    def summary(self) -> dict[str, Any]:
        """As the other families' object, as far as it goes."""
        from harness import median, spread

        options, own = self.options, self.own
        peers = {
            name: {
                **spread(f.round_s),
                "cold_s": f.cold_s,
                "cold_ended": f.cold_ended,
                "time_limit_hit": f.late,
                "value_over_copters_reward_p50": median(f.value),
                "value_over_copters_bound_less_1_p50": median(f.gap),
            }
            for name, (_, f) in self.peers.items()
        }
        best = min((p["p50_s"] for p in peers.values()), default=None)
        return {
            **{key: getattr(options, key) for key in ("family", "scale", "seed", "rounds")},
            "jobs": self.size[0],
            "rows": self.size[1],
            "variables": self.size[2],
            "copter": {
                **spread(own.round_s),
                "processor_p50_s": median(own.processor_s),
                "cold_s": own.cold_s,
                "solve_p50_s": median(own.solve_s),
                "shim_p50_s": median(own.shim_s),
                "passes_p50": median(own.passes),
                "integer_gap_max": max(own.gap),
                "peak_rss_mb": peak_rss_mb(),
            },
            "peers": peers,
            "ratio_to_best_peer": None if best is None else best / float(np.median(own.round_s)),
        }
