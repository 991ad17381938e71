"""What Hare's tables share: all schemes on the same jobs, and printing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from copter_frontends.hare import HareInstance, HareScheduler
from copter_frontends.hare.online import OnlineHare
from copter_frontends.hare.opponents import OPPONENTS
from copter_frontends.hare.workload import PaperWorkload

Floats = NDArray[np.float64]

MIXED = ("v100", "t4", "k80", "m60")
NAMES = {
    "hare": "Hare",
    "hare_online": "Hare online",
    "sched_allox": "Sched_Allox",
    "sched_homo": "Sched_Homo",
    "srtf": "SRTF",
    "gavel_fifo": "Gavel_FIFO",
}
MAX_TASKS = 1_000_000


def mixed(gpus: int, types: Sequence[str] = MIXED) -> dict[str, int]:
    """So many GPUs, dealt evenly to the types."""
    share, extra = divmod(gpus, len(types))
    return {kind: share + (k < extra) for k, kind in enumerate(types)}


def completions(
    workload: PaperWorkload, gpus: Mapping[str, int], seed: int, online: bool = False
) -> tuple[HareInstance, dict[str, Floats]]:
    """The instance, and each scheme's completion times in seconds."""
    instance = HareInstance.of(workload.make(seed), gpus)
    found = {"hare": HareScheduler(max_tasks=MAX_TASKS).schedule(instance).schedule.completion_s}
    if online:
        found["hare_online"] = OnlineHare(gpus, max_tasks=MAX_TASKS, event_s=30.0).run(instance.jobs).completion_s
    found |= {name: scheme(instance).completion_s for name, scheme in OPPONENTS.items()}
    return instance, found


def weighted_jct_h(
    workload: PaperWorkload, gpus: Mapping[str, int], seeds: Iterable[int], online: bool = False
) -> dict[str, float]:
    """Sum of w_n (C_n - a_n) in hours of each scheme, mean over seeds."""
    values: dict[str, list[float]] = {}
    for seed in seeds:
        instance, found = completions(workload, gpus, seed, online)
        for name, completion in found.items():
            jct = float(instance.weight @ (completion - instance.arrival_s)) / 3600.0
            values.setdefault(name, []).append(jct)
    return {name: float(np.mean(each)) for name, each in values.items()}


def print_sweep(what: str, rows: Mapping[str, Mapping[str, float]], paper: Sequence[str]) -> None:
    """A line a setting: hours of every scheme, and how far Hare is below the others; then what the paper says."""
    names = list(next(iter(rows.values())))
    print(f"{what:>16} " + " ".join(f"{NAMES[name]:>12}" for name in names) + "   Hare below others")
    for label, row in rows.items():
        others = [1.0 - row["hare"] / value for name, value in row.items() if not name.startswith("hare")]
        print(
            f"{label:>16} "
            + " ".join(f"{row[name]:12.1f}" for name in names)
            + f"   {100 * min(others):.1f}% to {100 * max(others):.1f}%"
        )
    print("weighted JCT in hours, sum of w (C - a)")
    for line in paper:
        print(f"paper: {line}")
