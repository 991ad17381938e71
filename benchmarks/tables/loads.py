"""The load of a table's workloads, as `copter simulate` has it (docs/reference/simulator.md).

The window is that in which the jobs arrive, from the first to the last: work that could run in it if each job had its
GPUs from its submission on, over what the cluster's GPUs do in it. Of jobs that all come at once the table says instead
for how many hours they keep the whole cluster busy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from spreads import mean_and_range

from copter_frontends.policy_kit import Throughputs
from copter_frontends.policy_kit.offered_load import offered_load
from copter_frontends.policy_kit.training_throughputs import TrainingThroughputs
from copter_frontends.simulator.goodput_source import GoodputSource
from copter_frontends.vocabulary import Cluster, Job

BEGINS = "load: "  # a line of a table that tells of its inputs
LONG_S = 3.6e9  # a window in which jobs that come at once end

_noted: dict[tuple[str, tuple[tuple[str, int], ...]], dict[int, tuple[float, dict[str, float]]]] = {}
_label: list[str] = []


@contextmanager
def labelled(text: str) -> Iterator[None]:
    """What the workloads noted meanwhile have in common, on their line; without it, their jobs and GPUs."""
    _label.append(text)
    try:
        yield
    finally:
        _label.pop()


def note(cluster: Cluster, jobs: Sequence[Job], source: GoodputSource) -> None:
    """Note a workload's load; the same jobs under another policy count once."""
    note_rates({kind: cluster.capacity(kind) for kind in cluster.types}, jobs, TrainingThroughputs(cluster, source))


def note_rates(capacity: Mapping[str, int], jobs: Sequence[Job], rates: Throughputs) -> None:
    """Note a workload's load from its jobs' speeds on their requested GPUs."""
    gpus = sum(capacity.values())
    what = f"{', '.join(_label) or f'{len(jobs):,} jobs'} on {gpus:,} GPUs"
    found = _noted.setdefault((what, tuple(capacity.items())), {})
    facts = hash(tuple((job.id, job.submit_s, job.requested_gpus, job.work_samples) for job in jobs))
    if not jobs or facts in found:
        return
    begin_s, end_s = min(job.submit_s for job in jobs), max(job.submit_s for job in jobs)
    hours = (end_s - begin_s) / 3600.0
    load = offered_load(jobs, rates, capacity, begin_s, end_s if hours > 0.0 else begin_s + LONG_S)
    times = 1.0 if hours > 0.0 else LONG_S / 3600.0
    found[facts] = hours, {kind: times * share for kind, share in {"all": load.all, **load.by_type}.items()}


def say() -> None:
    """Print a line a kind of workload: mean (least to most) over those noted since the last time."""
    for (what, _), found in _noted.items():
        if not found:
            continue  # no jobs
        hours, loads = zip(*found.values(), strict=True)
        each = [f"{kind} {np.mean([load[kind] for load in loads]):.3g}" for kind in loads[0] if kind != "all"]
        types = f" ({', '.join(each)})" if len(each) > 1 else ""
        whole = mean_and_range([load["all"] for load in loads])
        if max(hours) <= 0.0:
            print(f"{BEGINS}{what}, all at once: work of {whole} h of the whole cluster{types}")
        else:
            print(f"{BEGINS}{what}, while jobs arrive ({mean_and_range(hours)} h): {whole}{types}")
    _noted.clear()
