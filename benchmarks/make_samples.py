"""Makes the files of `copter_frontends.vocabulary.samples` anew: `python benchmarks/make_samples.py [FOLDER]`."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram, write_mps
from copter_frontends.goodput import ALL_APPLICATIONS
from copter_frontends.simulator.traces import generate_day
from copter_frontends.traffic.generated import random_network
from copter_frontends.vocabulary import samples

JOBS, HOURS, SEED = 160, 5.0, 0  # a load that sia-het's 64 GPUs queue for
TUNED_GPUS = {"cifar10": 1, "deepspeech2": 2, "bert": 4, "yolov3": 8, "imagenet": 16}  # long training asks for more
NODES = 24
LP_JOBS, LP_COUNTS = 40, (1, 2, 4, 8)  # jobs and the GPUs that each may get of a type
LP_GPUS = (48.0, 32.0, 16.0)  # of three types, the fastest last


def write_workload(path: Path) -> None:
    """A workload file of the embedded generator's jobs."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("name", "time", "application", "num_replicas", "batch_size"))
        for job in generate_day(JOBS, HOURS, SEED):
            application = ALL_APPLICATIONS[job.application]
            gpus = max(job.requested_gpus, TUNED_GPUS[job.application])
            batch = min(application.init_batch_size * gpus, application.max_batch_size)
            rows.writerow((job.id, f"{job.submit_s:.0f}", job.application, gpus, batch))


def write_network(path: Path) -> None:
    """A table of arcs of a random network."""
    network = random_network(NODES, SEED)
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("source", "target", "capacity"))
        for source, target, capacity in zip(network.source, network.target, network.capacity, strict=True):
            rows.writerow((network.nodes[source], network.nodes[target], f"{capacity:g}"))


def sample_program() -> LinearProgram:
    """Most goodput: each job takes at most one way, each type has so many GPUs."""
    rng = np.random.default_rng(SEED)
    types, ways = len(LP_GPUS), len(LP_COUNTS)
    n = LP_JOBS * types * ways
    job, kind, count = (part.ravel() for part in np.indices((LP_JOBS, types, ways)))
    gpus = np.array(LP_COUNTS, dtype=np.float64)[count]
    speed = rng.uniform(1.0, 2.0, (LP_JOBS, types)) * (1.0 + np.arange(types))
    scaling = rng.uniform(0.6, 0.95, LP_JOBS)
    value = np.round(speed[job, kind] * gpus ** scaling[job], 4)
    A = sp.csc_array(
        (np.concatenate([gpus, np.ones(n)]), (np.concatenate([kind, types + job]), np.tile(np.arange(n), 2))),
        shape=(types + LP_JOBS, n),
    )
    upper = np.concatenate([LP_GPUS, np.ones(LP_JOBS)])
    return LinearProgram(value, A, np.full(len(upper), -np.inf), upper, np.zeros(n), np.ones(n), sense="max")


def main() -> None:
    """Write all three."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else samples.WORKLOAD.parent
    write_workload(folder / samples.WORKLOAD.name)
    write_network(folder / samples.NETWORK.name)
    write_mps(sample_program(), folder / samples.PROGRAM.name)


if __name__ == "__main__":
    main()
