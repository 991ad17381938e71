"""The paper's evaluation workload: its models, job sizes and requirement sets (section 4, Table 2; HP28)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from copter_frontends.policies.hops.data_loading import DataLoading, Floats, LoadingState
from copter_frontends.policies.hops.iteration_time import IterationTimes, Links
from copter_frontends.policies.hops.requirements import RequirementSet
from copter_frontends.simulator.table_source import TableSource
from copter_frontends.vocabulary import Cluster, Configuration, Job, TraceError, configurations_of

GPU_SPEEDS: Mapping[str, float] = {"gtx1080ti": 0.40, "titanxp": 0.45, "rtx3090": 1.0}
SERVER_SPEEDS: Mapping[str, tuple[float, float]] = {
    "w780": (0.85, 1.0),
    "yk8100": (1.0, 0.8),
    "yk8100-8g": (1.0, 0.8),
    "yk8100-10g": (1.05, 0.7),
}
"""RTX 3090s by kind of server: GPU speed relative to the best server, and time of a data load relative to the slowest.

These numbers are our choice: Figure 1a of the paper shows that older servers may be much slower, without figures."""

LINK_PARAMETERS_PER_S, NETWORK_PARAMETERS_PER_S = 1.5e9, 0.6e9
"""About 12 GB/s within a server and 100 Gb/s InfiniBand between servers, each parameter sent twice in 4 bytes."""

SIZES_GPU_HOURS: Mapping[str, tuple[float, float]] = {
    "S": (0.2, 1.0),
    "M": (1.0, 10.0),
    "L": (10.0, 50.0),
    "XL": (50.0, 80.0),
}
GPUS_BY_SIZE: Mapping[str, tuple[int, int]] = {"S": (1, 4), "M": (1, 8), "L": (4, 16), "XL": (8, 16)}
"""Range of a job's sizes by size class; the paper has 1 to 16 for all classes, but no job longer than some hours."""

RESTART_S = 30.0  # seconds of a restart
MOST_SIZES = 8  # most sizes of a drawn requirement set
REFERENCE_TYPE = "titanxp"  # GPU type to which a job's GPU-hours refer


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """One row of Table 2: size class, samples of each GPU's batch, parameters, and iteration times on the best GPU.

    Numbers of parameters are published; the times are our choice, in line with common benchmarks.
    """

    size: str
    batch: float
    parameters: float
    compute_s: float
    load_s: float
    unsteady: bool = False
    pattern: int = 1


MODELS: Mapping[str, TrainedModel] = {
    "resnet18-imagenet": TrainedModel("XL", 128, 11.7e6, 0.11, 0.07, unsteady=True),
    "resnet50-cifar10": TrainedModel("S", 256, 25.6e6, 0.10, 0.02),
    "vgg11-imagenet": TrainedModel("L", 32, 133e6, 0.09, 0.04),
    "vgg13-cifar10": TrainedModel("S", 128, 133e6, 0.10, 0.02),
    "convnext-imagenet": TrainedModel("L", 32, 88.6e6, 0.25, 0.05),
    "convnext-cifar10": TrainedModel("S", 64, 88.6e6, 0.20, 0.01),
    "densenet161-imagenet": TrainedModel("L", 32, 28.7e6, 0.20, 0.05),
    "densenet161-cifar10": TrainedModel("S", 64, 28.7e6, 0.15, 0.01),
    "mobilenet-imagenet": TrainedModel("M", 64, 3.5e6, 0.05, 0.04, unsteady=True),
    "mobilenet-cifar10": TrainedModel("S", 64, 3.5e6, 0.03, 0.01),
    "regnet-imagenet": TrainedModel("L", 32, 83.6e6, 0.20, 0.05),
    "regnet-cifar10": TrainedModel("M", 32, 83.6e6, 0.12, 0.01),
    "distilbert-imdb": TrainedModel("L", 128, 66e6, 0.60, 0.02, pattern=2),
    "vit-food101": TrainedModel("M", 48, 86e6, 0.35, 0.06),
    "macbert-c3": TrainedModel("M", 8, 102e6, 0.25, 0.01, pattern=2),
    "wav2vec-language": TrainedModel("M", 16, 95e6, 0.40, 0.05, pattern=2),
    "gpt2-medium-wikitext": TrainedModel("L", 8, 355e6, 0.90, 0.01, pattern=2),
}
"""Table 2, task by task."""


def iteration_times(model: TrainedModel, gpu_type: str) -> IterationTimes:
    """Return the parts of an iteration on a GPU type; types outside the paper's clusters count as an RTX 3090."""
    gpu, _, server = gpu_type.partition("-")
    speed, load = SERVER_SPEEDS.get(server, (1.0, 1.0))
    compute_s = model.compute_s / (GPU_SPEEDS.get(gpu, 1.0) * speed)
    cached = LoadingState(0.5 * model.load_s * load, 0.05 * model.load_s)
    slow = LoadingState(4.0 * model.load_s * load, 0.4 * model.load_s, 0.2 * model.load_s)
    steady = LoadingState(model.load_s * load, 0.05 * model.load_s)
    return IterationTimes(
        forward_s=0.3 * compute_s,
        backward_s=0.6 * compute_s,
        update_s=0.1 * compute_s,
        loading=DataLoading(cached, slow, 0.7) if model.unsteady else DataLoading(steady, steady, 1.0),
        parameters=model.parameters,
        batch_per_gpu=model.batch,
        links=Links(LINK_PARAMETERS_PER_S, NETWORK_PARAMETERS_PER_S),
        pattern=1 if model.pattern == 1 else 2,
    )


@dataclass(frozen=True, slots=True)
class ProfiledModel:
    """Facts of an application, for the simulator: its iteration times by GPU type."""

    parts: Mapping[str, IterationTimes]
    work_samples: float = 1.0
    restart_s: float = RESTART_S
    slowdown: float = 1.0

    def rate(self, configuration: Configuration) -> float:
        """Return samples per second of a whole job."""
        parts = self.parts.get(configuration.gpu_type)
        if parts is None:
            return 0.0
        return configuration.gpus * parts.throughput(configuration.gpus, configuration.nodes)

    def draw_loads(self, gpu_type: str, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw seconds of `count` data loads on a GPU type, and of the corresponding waits."""
        return self.parts[gpu_type].loading.draw_with_waits(count, rng)


def iteration_source(cluster: Cluster) -> TableSource:
    """Return Table 2's models on a cluster's GPU types for the simulator: one phase, constant rates."""
    applications = {
        name: ProfiledModel({kind: iteration_times(model, kind) for kind in cluster.types})
        for name, model in MODELS.items()
    }
    return TableSource(configurations_of(cluster), applications)


def hops_jobs(
    count: int = 500, jobs_per_hour: float = 100.0, seed: int = 0, scale: float = 1.0
) -> tuple[list[Job], dict[str, RequirementSet]]:
    """Draw jobs as section 4 does, with the requirement set of each.

    Tasks of Table 2 are equally likely, arrivals are Poisson. Requirement sets have one to eight sizes (up to 4 GPUs
    for small jobs, 16 for large ones); their median is the job's `requested_gpus`, which Gavel uses.

    Parameters
    ----------
    count : int
    jobs_per_hour : float
    seed : int
    scale : float
        Factor on all GPU-hours.

    Raises
    ------
    TraceError
        If a number is not positive.
    """
    if count < 1 or not jobs_per_hour > 0 or not scale > 0:
        raise TraceError(f"count is {count}, jobs_per_hour {jobs_per_hour} and scale {scale}; all must be positive")
    rng = np.random.default_rng(seed)
    submit_s = np.cumsum(rng.exponential(3600.0 / jobs_per_hour, count))
    names, jobs, sets = list(MODELS), [], {}
    for i in range(count):
        name = names[int(rng.integers(len(names)))]
        model = MODELS[name]
        hours = float(rng.uniform(*SIZES_GPU_HOURS[model.size])) * scale
        work = hours * 3600.0 * iteration_times(model, REFERENCE_TYPE).throughput(1, 1)
        least, most = GPUS_BY_SIZE[model.size]
        count = int(rng.integers(1, min(MOST_SIZES, most - least + 1) + 1))
        sizes = np.sort(rng.choice(np.arange(least, most + 1), count, replace=False))
        job_id = f"job-{i:04d}"
        sets[job_id] = RequirementSet.of(sizes.tolist())
        median = int(sizes[(len(sizes) - 1) // 2])
        jobs.append(Job(job_id, name, float(submit_s[i]), work_samples=work, requested_gpus=median))
    return jobs, sets
