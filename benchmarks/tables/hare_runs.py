"""What Hare's tables share: all schemes on the same jobs, and printing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import loads
import numpy as np
from numpy.typing import NDArray

from copter_frontends.policies.hare import HareInstance, HareJob, HareScheduler
from copter_frontends.policies.hare.online import OnlineHare
from copter_frontends.vocabulary import Job
from copter_papers.hare.applications import as_jobs
from copter_papers.hare.opponents import OPPONENTS
from copter_papers.hare.workload import PaperWorkload

Floats = NDArray[np.float64]

MIXED = ("v100", "t4", "k80", "m60")
NAMES = {
    "hare": "Hare",
    "hare_online": "Hare online",
    "hare_known": "online, arrivals known",
    "sched_allox": "Sched_Allox",
    "sched_homo": "Sched_Homo",
    "srtf": "SRTF",
    "gavel_fifo": "Gavel_FIFO",
}
MAX_TASKS = 1_000_000
TESTBED_MEDIAN_MIN = 2.0  # of the testbed's jobs, in figures 12 and 13 alike: the one length that is free


def mixed(gpus: int, types: Sequence[str] = MIXED) -> dict[str, int]:
    """So many GPUs, dealt evenly to the types."""
    share, extra = divmod(gpus, len(types))
    return {kind: share + (k < extra) for k, kind in enumerate(types)}


class _Rates:
    """Tasks per second of Hare's jobs whose rounds run at once, each as long as a task trains and synchronises."""

    def __init__(self, jobs: Sequence[HareJob]) -> None:
        self._of = {job.id: job for job in jobs}

    def rate(self, job: Job, gpu_type: str, gpus: int, progress: float = 0.0) -> float:
        """On so many GPUs of a type; 0 where the job cannot run."""
        of = self._of[job.id]
        return gpus / (of.train_s[gpu_type] + of.sync_s[gpu_type]) if gpu_type in of.train_s else 0.0

    def work(self, job: Job) -> float:
        """All tasks."""
        return float(self._of[job.id].rounds * self._of[job.id].tasks)


def completions(
    workload: PaperWorkload, gpus: Mapping[str, int], seed: int, online: bool = False
) -> tuple[HareInstance, dict[str, Floats]]:
    """The instance, and each scheme's completion times in seconds."""
    drawn = workload.make(seed)
    loads.note_rates(gpus, as_jobs(drawn), _Rates(drawn))
    instance = HareInstance.of(drawn, gpus)
    found = {"hare": HareScheduler(max_tasks=MAX_TASKS).schedule(instance).schedule.completion_s}
    if online:
        for name, known in (("hare_online", False), ("hare_known", True)):
            planner = OnlineHare(gpus, max_tasks=MAX_TASKS, event_s=30.0, known=known)
            found[name] = planner.run(instance.jobs).completion_s
    found |= {name: scheme(instance).completion_s for name, scheme in OPPONENTS.items()}
    return instance, found


def weighted_jct_h(
    workload: PaperWorkload, gpus: Mapping[str, int], seeds: Iterable[int], online: bool = False
) -> dict[str, list[float]]:
    """Sum of w_n (C_n - a_n) in hours of each scheme, seed by seed."""
    values: dict[str, list[float]] = {}
    for seed in seeds:
        instance, found = completions(workload, gpus, seed, online)
        for name, completion in found.items():
            values.setdefault(name, []).append(weighted_h(instance, completion))
    return values


def weighted_h(instance: HareInstance, completion: Floats) -> float:
    """Sum of w_n (C_n - a_n) in hours."""
    return float(instance.weight @ (completion - instance.arrival_s)) / 3600.0


def below_others(row: Mapping[str, Sequence[float]]) -> list[tuple[float, float]]:
    """How far Hare is below the nearest and the furthest of the others, seed by seed, as shares."""
    others = np.array([each for name, each in row.items() if not name.startswith("hare")])
    below = 1.0 - np.array(row["hare"]) / others
    return list(zip(below.min(axis=0).tolist(), below.max(axis=0).tolist(), strict=True))


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """Mean (least to largest)."""
    if len(values) == 1:
        return format(values[0], form)
    return f"{np.mean(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def print_sweep(what: str, rows: Mapping[str, Mapping[str, Sequence[float]]], paper: Sequence[str]) -> None:
    """A line a setting: hours of every scheme, and how far Hare is below the others; then what the paper says."""
    names = list(next(iter(rows.values())))
    print(f"{what:>16} " + " ".join(f"{NAMES[name]:>24}" for name in names))
    for label, row in rows.items():
        nearest, furthest = zip(*below_others(row), strict=True)
        print(f"{label:>16} " + " ".join(f"{spread(row[name]):>24}" for name in names))
        near, far = ([100 * each for each in side] for side in (nearest, furthest))
        print(f"{'':>16} Hare below the others: nearest {spread(near)}%, furthest {spread(far)}%")
    loads.say()
    print("weighted JCT in hours, sum of w (C - a): mean (least to largest seed)")
    for line in paper:
        print(f"paper: {line}")
