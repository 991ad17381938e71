"""Error of the Hops throughput estimator on measured step times, model by model (Figures 6 and 7b of the paper).

    COPTER_DATA=path/to/data python benchmarks/tables/hops_estimator.py

Each (model, GPU type, local batch) is a job. It is profiled on one GPU, on two of one server and on one of each of two
servers, as the paper's profiler and its offline link measurements do; equations (1), (2) then predict every other
measured placement. The profiles do not split the compute time: the backward pass is taken as two thirds of it. The
second figure is the error once half of the other placements, chosen at random, have run and are in the database.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from copter_frontends.goodput.profile_files import read_columns
from copter_frontends.hops import DataLoading, IterationTimes, Links, ThroughputEstimator
from copter_frontends.vocabulary import Job

MODELS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
BACKWARD_SHARE = 2 / 3
LEAST_S = 1e-9
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


def errors_of(model: str, folder: Path, rng: np.random.Generator) -> dict[str, float]:
    """Relative errors of a model's throughputs, before and after running."""
    before, after, layered = [], [], []
    for (kind, batch), (measured, compute_s) in measured_jobs(folder).items():
        parts = parts_of(measured, compute_s, batch)
        others = [p for p in measured if p not in ("1", "2", "11")]
        if parts is None or len(others) < 2:
            continue
        estimator = ThroughputEstimator(by_application=False)
        job = Job(f"{model}-{kind}-{batch}", model, work_samples=1.0)
        estimator.profile(job, {kind: parts})
        truth = {p: batch * sum(map(int, p)) / measured[p] for p in others}
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
        "half_run": float(np.mean(after)),
        "half_run_unseen": float(np.mean(layered)),
    }


def main() -> None:
    """Print one line a model."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--profiles", help="folder of the profiles (default: $COPTER_DATA/profiles/sia)")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    asked = command.parse_args()
    root = Path(asked.profiles or Path(os.environ.get("COPTER_DATA", "../shared/data")) / "profiles" / "sia")
    if not root.is_dir():
        raise SystemExit(f"{root} is not there: set COPTER_DATA to the folder of the public data, or give --profiles")
    rng, table = np.random.default_rng(asked.seed), {}
    print(f"{'model':<14}{'placements':>11}{'theory':>9}{'median':>9}{'half run':>10}{'unseen':>9}")
    for model in MODELS:
        found = table[model] = errors_of(model, root / model, rng)
        print(
            f"{model:<14}{found['placements']:>11}{found['theory']:>9.1%}{found['theory_median']:>9.1%}"
            f"{found['half_run']:>10.1%}{found['half_run_unseen']:>9.1%}"
        )
    if asked.json:
        print(json.dumps(table))


if __name__ == "__main__":
    main()
