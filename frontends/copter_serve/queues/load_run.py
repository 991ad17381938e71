"""Runs a load test: the admission model decides at each moment, and the result is measured."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from copter import Settings
from copter.storage.tape import recorded
from copter_serve.queues.admission_model import AdmissionModel, AdmissionPlan
from copter_serve.queues.ask import Ask
from copter_serve.queues.inversions import Inversions, Kind
from copter_serve.queues.load_test import SHARE, LoadTest, WorkloadClass
from copter_serve.queues.quota_tree import QuotaTree

NONE = [0]  # starts of a kind of workload that the plan does not start


@dataclass(slots=True)
class Line:
    """The workloads of one class in one queue, in order of arrival."""

    queue: str
    kind: WorkloadClass
    waiting: deque[int] = field(default_factory=deque)


@dataclass(slots=True)
class LoadResult:
    """Figures of one run.

    Attributes
    ----------
    end_ms : float
    usage : float
        Mean usage of nominal quota until the end.
    waits_ms : dict of str to ndarray
        Times to admission by class.
    decided, moments, most_waiting : int
        Number of admitted workloads, of moments with a decision, and of workloads waiting at once at most.
    inversions, idle : int
        Counts of :class:`~copter_serve.queues.inversions.Inversions`.
    largest_gap : float
        Largest relative gap between a moment's admissions and their certified bound.
    decide_s, solve_s, edit_s : float
        Seconds of all decisions; seconds of these in the solver; seconds of these in edits of the model.
    decide_cpu_s : float
        Processor seconds of all decisions.
    slowest_s : float
        Seconds of the longest decision of one moment.
    """

    end_ms: float = 0.0
    usage: float = 0.0
    waits_ms: dict[str, np.ndarray] = field(default_factory=dict)
    decided: int = 0
    moments: int = 0
    most_waiting: int = 0
    inversions: int = 0
    idle: int = 0
    largest_gap: float = 0.0
    decide_s: float = 0.0
    solve_s: float = 0.0
    edit_s: float = 0.0
    decide_cpu_s: float = 0.0
    slowest_s: float = 0.0

    def waiting_ms(self, weights: dict[str, float] | None = None) -> float:
        """Return the mean time to admission, weighted by class."""
        weight = {name: 1.0 if weights is None else weights[name] for name in self.waits_ms}
        total = sum(weight[name] * len(waits) for name, waits in self.waits_ms.items())
        return sum(weight[name] * float(waits.sum()) for name, waits in self.waits_ms.items()) / max(total, 1e-300)


def run_load_test(test: LoadTest, settings: Settings | None = None, tape: str | None = None) -> LoadResult:
    """Admit all workloads of a test.

    Parameters
    ----------
    test : LoadTest
    settings : Settings, optional
        Settings of the solver.
    tape : str, optional
        File to record the decisions in.
    """
    taping: AbstractContextManager[object] = nullcontext() if tape is None else recorded(tape)
    with taping:
        return _Run(test, settings or Settings()).run()


class _Run:
    """The state of one run: waiting and running workloads."""

    def __init__(self, test: LoadTest, settings: Settings) -> None:
        self.test = test
        self.tree: QuotaTree = test.tree()
        self.model = AdmissionModel(self.tree, settings)
        self.judge = Inversions(self.tree, SHARE)
        self.lines = [Line(queue, kind) for _, queue, queues in test.each_queue() for kind in queues.classes]
        self.ends: dict[int, dict[int, int]] = {}
        self.result = LoadResult()
        self.waits: dict[str, list[int]] = {line.kind.name: [] for line in self.lines}

    def run(self) -> LoadResult:
        """Simulate from the first arrival to the last end."""
        result, work = self.result, 0.0
        for now, arrivals in self._moments():
            for line, count in self.ends.pop(now, {}).items():
                self.tree.use(self.lines[line].queue, {SHARE: self.lines[line].kind.request}, -count)
            for line in arrivals:
                self.lines[line].waiting.append(now)
            result.end_ms = float(now)
            waiting = sum(len(line.waiting) for line in self.lines)
            result.most_waiting = max(result.most_waiting, waiting)
            if not waiting:
                continue
            plan = self._decide(now)
            for key, counts in plan.starts.items():
                work += self._start(now, int(str(key)), counts[0])
            self.judge.look(
                Kind(line.queue, line.kind.request, line.kind.priority, len(line.waiting), plan.starts.get(at, NONE)[0])
                for at, line in enumerate(self.lines)
            )
        result.usage = work / (self.test.quota * result.end_ms)
        result.waits_ms = {name: np.array(waits, dtype=np.float64) for name, waits in self.waits.items()}
        result.inversions, result.idle = self.judge.inversions, self.judge.idle
        return result

    def _moments(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each moment at which workloads arrive or end, with the lines of those that arrive."""
        coming: dict[int, list[int]] = {}
        for at, line in enumerate(self.lines):
            for number in range(line.kind.count):
                coming.setdefault((number + 1) * line.kind.interval_ms, []).append(at)
        self.queue = list(coming)
        heapq.heapify(self.queue)
        seen = -1
        while self.queue:
            now = heapq.heappop(self.queue)
            if now != seen:
                seen = now
                yield now, coming.get(now, [])

    def _decide(self, now: int) -> AdmissionPlan:
        started, cpu = time.perf_counter(), time.process_time()
        self.model.update(
            [
                Ask(
                    at, line.queue, ({SHARE: line.kind.request},), line.kind.request * max(line.kind.priority, 1),
                    line.kind.priority, float(line.waiting[0]) if line.waiting else float(now), len(line.waiting),
                )
                for at, line in enumerate(self.lines)
            ]
        )  # fmt: skip
        edited = time.perf_counter()
        plan = self.model.plan()
        took, result = time.perf_counter() - started, self.result
        result.decide_cpu_s += time.process_time() - cpu
        result.edit_s += edited - started
        result.decide_s += took
        result.slowest_s = max(result.slowest_s, took)
        result.solve_s += plan.solve_s
        result.moments += 1
        result.largest_gap = max(result.largest_gap, plan.gap)
        return plan

    def _start(self, now: int, at: int, count: int) -> float:
        """Start workloads of a line; return their work, units times milliseconds."""
        line = self.lines[at]
        for _ in range(count):
            self.waits[line.kind.name].append(now - line.waiting.popleft())
        self.tree.use(line.queue, {SHARE: line.kind.request}, count)
        end = now + line.kind.runtime_ms
        if end not in self.ends:
            self.ends[end] = {}
            heapq.heappush(self.queue, end)
        self.ends[end][at] = self.ends[end].get(at, 0) + count
        self.result.decided += count
        return count * line.kind.work
