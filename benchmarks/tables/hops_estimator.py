"""Error of the Hops throughput estimator on measured step times, model by model (Figure 6 of the paper).

    COPTER_DATA=path/to/data python benchmarks/tables/hops_estimator.py [--seeds 3] [--seed 0]

Each (model, GPU type, local batch) is a job. It is profiled on one GPU, on two of one server and on one of each of two
servers, as the paper's profiler and its offline link measurements do; equations (1), (2) then predict every other
measured placement. The profiles do not split the compute time: the backward pass is taken as two thirds of it. The
second figure is the error once half of the other placements, chosen at random for each seed, have run and are in the
database. Then, as in Figure 6, predicted and measured throughput configuration by configuration, of each model's
largest batch on one GPU type.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from figure_command import spread, whole

from copter_frontends.goodput.profile_files import read_columns
from copter_frontends.policies.hops import DataLoading, IterationTimes, Links, ThroughputEstimator
from copter_frontends.vocabulary import Job

MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
BACKWARD_SHARE = 2 / 3
LEAST_S = 1e-9
PAPER = (
    "ViT and VGG with stable loading, Figure 6: less than 5% off in every configuration, on 100 Gb/s InfiniBand; "
    "their step times are not public"
)
MOST_SHOWN = 8  # configurations of a model
Measured = dict[str, float]  # step time by placement


def measured_jobs(folder: Path) -> dict[tuple[str, int], tuple[Measured, float]]:
    """{(GPU type, local batch): (mean step times by placement, seconds without communication)} of a model."""
    found: dict[tuple[str, int], tuple[Measured, float]] = {}
    for path in sorted(folder.glob("placements-*.csv")):
        kind = path.stem.removeprefix("placements-")
        columns = read_columns(path, ("placement", "local_bsz", "step_time", "sync_time"))
        batches = columns["local_bsz"].astype(int)
        for batch in np.unique(batches).tolist():
            rows = np.flatnonzero(batches == batch)
            steps: dict[str, list[float]] = {}
            compute = []
            for row in rows.tolist():
                placement = "".join(sorted(str(columns["placement"][row])))
                steps.setdefault(placement, []).append(float(columns["step_time"][row]))
                if placement == "1":
                    compute.append(float(columns["step_time"][row]))
            if compute:
                found[kind, batch] = ({p: float(np.mean(v)) for p, v in steps.items()}, float(np.mean(compute)))
    return found


def communication_s(step_s: float, compute_s: float) -> float:
    """T_c for which (1) gives a measured step: the inverse of max(T_b + 0.2 T_c, T_c)."""
    shown, backward = max(step_s - compute_s, 0.0), BACKWARD_SHARE * compute_s
    return min(shown / 0.2, backward + shown)


def parts_of(measured: Measured, compute_s: float, batch: int) -> IterationTimes | None:
    """What profiling gives; None where a run that it needs is absent."""
    if "2" not in measured or "11" not in measured:
        return None
    ring = 2.0 * communication_s(measured["2"], compute_s)  # (N - 1) / N is a half
    network = communication_s(measured["11"], compute_s)
    return IterationTimes(
        forward_s=(1 - BACKWARD_SHARE) * compute_s,
        backward_s=BACKWARD_SHARE * compute_s,
        update_s=0.0,
        loading=DataLoading.steady(0.0),
        parameters=1.0,
        batch_per_gpu=float(batch),
        links=Links(1.0 / max(ring, LEAST_S), 1.0 / max(network, LEAST_S)),
    )


def placed(placement: str) -> dict[str, int]:
    """{server: GPUs} of a placement's digits."""
    return {f"server-{i}": int(digit) for i, digit in enumerate(placement)}


def profiled_jobs(model: str, folder: Path) -> list[tuple[Job, str, Measured, IterationTimes]]:
    """(job, GPU type, mean step times by placement, parts) of a model, for those with placements to predict."""
    found = []
    for (kind, batch), (measured, compute_s) in measured_jobs(folder).items():
        parts = parts_of(measured, compute_s, batch)
        if parts is not None and len(unseen(measured)) >= 2:
            found.append((Job(f"{model}-{kind}-{batch}", model, work_samples=1.0), kind, measured, parts))
    return found


def unseen(measured: Measured) -> list[str]:
    """Placements that profiling does not run."""
    return [placement for placement in measured if placement not in ("1", "2", "11")]


def throughput_of(measured: Measured, placement: str, parts: IterationTimes) -> float:
    """Samples per second as measured."""
    return parts.batch_per_gpu * sum(map(int, placement)) / measured[placement]


def errors_of(model: str, folder: Path, rng: np.random.Generator) -> dict[str, float]:
    """Relative errors of a model's throughputs, before and after running."""
    before, after, layered = [], [], []
    for job, kind, measured, parts in profiled_jobs(model, folder):
        others = unseen(measured)
        estimator = ThroughputEstimator(by_application=False)
        estimator.profile(job, {kind: parts})
        truth = {p: throughput_of(measured, p, parts) for p in others}
        before += [abs(estimator.throughput(job, kind, placed(p)) / truth[p] - 1.0) for p in others]
        ran = set(rng.choice(others, len(others) // 2, replace=False).tolist())
        for p in sorted(ran):
            estimator.observe(job, kind, placed(p), truth[p])
        error = {p: abs(estimator.throughput(job, kind, placed(p)) / truth[p] - 1.0) for p in others}
        after += [error[p] for p in others]
        layered += [error[p] for p in others if p not in ran]
    return {
        "placements": len(before),
        "theory": float(np.mean(before)),
        "theory_median": float(np.median(before)),
        "within_5": float(np.mean(np.array(before) < 0.05)),
        "half_run": float(np.mean(after)),
        "half_run_unseen": float(np.mean(layered)),
    }


def configurations(model: str, folder: Path, gpu_type: str) -> dict[str, Any]:
    """Predicted and measured samples per second of one job of a model, placement by placement."""
    known = [each for each in profiled_jobs(model, folder) if each[1] == gpu_type]
    if not known:
        raise SystemExit(f"{model} has no profile on {gpu_type!r}")
    job, kind, measured, parts = max(known, key=lambda each: (len(each[2]), each[3].batch_per_gpu))
    estimator = ThroughputEstimator(by_application=False)
    estimator.profile(job, {kind: parts})
    rows = {
        placement: (
            estimator.throughput(job, kind, placed(placement)),
            throughput_of(measured, placement, parts),
        )
        for placement in sorted(unseen(measured), key=lambda p: (sum(map(int, p)), len(p), p))
    }
    return {"gpu_type": kind, "batch_per_gpu": parts.batch_per_gpu, "samples_per_s": rows}


def by_gpu_type(root: Path) -> dict[str, dict[str, float]]:
    """Print and return the median error of what the theory says of several servers, by GPU type and model."""
    found: dict[str, dict[str, float]] = {}
    for model in MODELS:
        errors: dict[str, list[float]] = {}
        for job, kind, measured, parts in profiled_jobs(model, root / model):
            estimator = ThroughputEstimator(by_application=False)
            estimator.profile(job, {kind: parts})
            for p in unseen(measured):
                if len(p) > 1:
                    off = estimator.throughput(job, kind, placed(p)) / throughput_of(measured, p, parts) - 1.0
                    errors.setdefault(kind, []).append(abs(off))
        for kind, each in errors.items():
            found.setdefault(kind, {})[model] = float(np.median(each))
    print("\nMedian error of the theory on several servers, by GPU type")
    print(f"  {'':<10}" + "".join(f"{model:>13}" for model in MODELS))
    for kind in sorted(found):
        print(f"  {kind:<10}" + "".join(f"{found[kind].get(model, float('nan')):>13.1%}" for model in MODELS))
    return found


def main() -> None:
    """Print one line a model, and its configurations."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--profiles", help="folder of the profiles (default: $COPTER_DATA/profiles/sia)")
    command.add_argument("--seed", type=int, default=0, help="the first draw (default 0)")
    command.add_argument("--seeds", type=whole, default=3, help="draws of the placements that have run (default 3)")
    command.add_argument("--gpu-type", default="dgx-ext", help="of the configurations (default dgx-ext: InfiniBand)")
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    asked = command.parse_args()
    root = Path(asked.profiles or Path(os.environ.get("COPTER_DATA", "../shared/data")) / "profiles" / "sia")
    if not root.is_dir():
        raise SystemExit(f"{root} is not there: set COPTER_DATA to the folder of the public data, or give --profiles")
    table: dict[str, Any] = {}
    print("\nMean error of predicted throughputs; below 5%: share of the placements")
    print(f"  {'model':<13}{'placements':>10}{'theory':>9}{'median':>9}{'below 5%':>10}   {'half run':<24}never run")
    for model in MODELS:
        each = [
            errors_of(model, root / model, np.random.default_rng(seed))
            for seed in range(asked.seed, asked.seed + asked.seeds)
        ]
        first = each[0]
        half, never = ([100.0 * one[name] for one in each] for name in ("half_run", "half_run_unseen"))
        print(
            f"  {model:<13}{first['placements']:>10}{first['theory']:>9.1%}{first['theory_median']:>9.1%}"
            f"{first['within_5']:>10.0%}   {spread(half) + ' %':<24}{spread(never)} %"
        )
        table[model] = {"errors": each}
    table["by_gpu_type"] = by_gpu_type(root)
    print("\nFigure 6, samples per second predicted from the profile, and measured, by GPUs on each server")
    for model in MODELS:
        found = table[model]["configurations"] = configurations(model, root / model, asked.gpu_type)
        print(f"  {model} on {found['gpu_type']}, {found['batch_per_gpu']:g} samples a GPU")
        rows = list(found["samples_per_s"].items())
        for at in sorted({round(i) for i in np.linspace(0, len(rows) - 1, min(MOST_SHOWN, len(rows)))}):
            placement, (predicted, seen) = rows[at]
            print(f"    {'+'.join(placement):<20}{predicted:>10.1f}{seen:>10.1f}{predicted / seen - 1.0:>+9.1%}")
    print(f"\nThe paper: {PAPER}.")
    if asked.json:
        print(json.dumps(table))


if __name__ == "__main__":
    main()
