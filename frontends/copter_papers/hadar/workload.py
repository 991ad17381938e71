"""The paper's evaluation workload: five models, four job sizes, arrivals at once or one by one (section IV)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from copter_frontends.simulator.table_source import TableApplication, TableSource
from copter_frontends.vocabulary import Cluster, Job, TraceError, configurations_of

Arrivals = Literal["static", "continuous"]
Sizes = Literal["gavel", "philly"]

STEPS_PER_S: Mapping[str, Mapping[str, float]] = {
    "resnet50": {"v100": 4.395, "p100": 2.619, "k80": 0.619},
    "resnet18": {"v100": 17.99, "p100": 11.68, "k80": 1.807},
    "lstm": {"v100": 28.24, "p100": 21.16, "k80": 6.054},
    "cyclegan": {"v100": 4.426, "p100": 2.403, "k80": 0.5048},
    "transformer": {"v100": 8.618, "p100": 5.092, "k80": 1.752},
}
"""Iterations per second on one GPU, from Gavel's public table (MIT licence): ResNet-50 at batch size 64, ResNet-18 128,
LM 80, CycleGAN 1, Transformer 64."""

RESTART_S: Mapping[str, float] = {
    "resnet50": 7.56,
    "resnet18": 4.64,
    "lstm": 7.24,
    "cyclegan": 2.45,
    "transformer": 2.56,
}
"""Seconds of a change of GPUs by model: Table IV's overhead with reallocation, times its round of 360 s."""

SIZES = (
    ("resnet18", (0.0, 1.0)),
    ("cyclegan", (1.0, 10.0)),
    ("lstm", (10.0, 50.0)),
    ("transformer", (10.0, 50.0)),
    ("resnet50", (60.0, 100.0)),
)
"""Models of Table II with their size, GPU-hours from and to: S, M, L, L, XL."""

GPU_COUNTS = (1, 2, 4, 8)  # numbers of GPUs that a job may request; the shares are below
GPU_SHARES: Mapping[Sizes, tuple[float, ...]] = {
    "gavel": (0.70, 0.10, 0.15, 0.05),
    "philly": (0.935, 0.022, 0.023, 0.020),
}
"""Shares of the jobs by number of GPUs: in Gavel's generated traces, and in the Microsoft trace (jobs of these
sizes: 81,958 of 82,247).
"""

REFERENCE_TYPE = "p100"  # GPU type to which a job's GPU-hours refer
LEAST_GPU_HOURS = 0.05  # least GPU-hours of a drawn job


def table_source(
    cluster: Cluster, restart_s: float | Mapping[str, float] = 10.0, spread_cost: float = 0.0
) -> TableSource:
    """Return the five models' rates on a cluster's GPU types, for the simulator.

    `restart_s`: one number for all models, or by model (:data:`RESTART_S`).
    """
    per_node = {name: kind.gpus_per_node for name, kind in cluster.types.items()}
    restarts = dict.fromkeys(STEPS_PER_S, restart_s) if isinstance(restart_s, float | int) else restart_s
    applications = {
        name: TableApplication(name, dict(rates), per_node, restart_s=restarts[name], spread_cost=spread_cost)
        for name, rates in STEPS_PER_S.items()
    }
    return TableSource(configurations_of(cluster), applications)


def hadar_jobs(
    count: int = 480,
    arrivals: Arrivals = "static",
    jobs_per_hour: float = 2.0,
    seed: int = 0,
    scale: float = 1.0,
    sizes: Sizes = "gavel",
) -> list[Job]:
    """Draw jobs as section IV does.

    The size class is uniform over the four classes, the GPU-hours uniform within the class; the two models of class L
    are equally likely.

    Parameters
    ----------
    count : int
    arrivals : {"static", "continuous"}
        Arrivals all at the beginning, or as a Poisson process.
    jobs_per_hour : float
        Rate of the Poisson process.
    seed : int
    scale : float
        Factor on all GPU-hours.
    sizes : {"gavel", "philly"}
        Key of :data:`GPU_SHARES`, the distribution of the numbers of GPUs.

    Raises
    ------
    TraceError
        If a number is not positive, or `arrivals` or `sizes` is unknown.
    """
    if count < 1 or not jobs_per_hour > 0 or not scale > 0 or arrivals not in ("static", "continuous"):
        raise TraceError(
            f"count is {count}, jobs_per_hour {jobs_per_hour}, scale {scale} and arrivals {arrivals!r}; the numbers "
            "must be positive and arrivals 'static' or 'continuous'"
        )
    if sizes not in GPU_SHARES:
        raise TraceError(f"sizes is {sizes!r}, must be one of {', '.join(GPU_SHARES)}")
    rng = np.random.default_rng(seed)
    share = np.array([0.25, 0.25, 0.125, 0.125, 0.25])
    submit_s = (
        np.cumsum(rng.exponential(3600.0 / jobs_per_hour, count)) if arrivals == "continuous" else np.zeros(count)
    )
    jobs = []
    for i in range(count):
        model, (low, high) = SIZES[int(rng.choice(len(SIZES), p=share))]
        hours = max(float(rng.uniform(low, high)), LEAST_GPU_HOURS) * scale
        gpus = int(rng.choice(GPU_COUNTS, p=GPU_SHARES[sizes]))
        work = hours * 3600.0 * STEPS_PER_S[model][REFERENCE_TYPE]
        jobs.append(Job(f"job-{i:04d}", model, float(submit_s[i]), work_samples=work, requested_gpus=gpus))
    return jobs
