"""Sia against its public simulator, workload by workload, with that simulator's semantics.

python benchmarks/tables/sia_reference.py [--only philly_1,saturn_3] [--json]

Reads the reference results and the workloads in the data directory (COPTER_DATA). JCT, makespan and GPU hours are
compared by their averages, and JCTs by their distributions: the largest distance between the two cumulative
distributions (Kolmogorov-Smirnov), and the mean distance between equal quantiles over the mean (Wasserstein).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
from runs import Setting, data_directory, mean, relative, show, simulate

SETTINGS = {"het": "sia-het", "homog": "sia-hom"}
FIGURES = ("avg_jct_h", "makespan_h", "gpu_h")
BARS = {"each": 0.10, "mean": 0.05}


def references(data: Path) -> dict[str, dict[str, Any]]:
    """Sia's rows of the reference summary by name (philly_1, homog_philly_1), with the JCTs of its jobs in seconds."""
    folder, found = data / "reference_results", {}
    with (folder / "summary.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["policy"] != "sia":
                continue
            name = f"{'homog_' if row['setting'] == 'homog' else ''}{row['trace']}_{row['n']}"
            with gzip.open(folder / f"jobs_sia_{name}.csv.gz", "rt", newline="") as jobs:
                jct_s = np.array([float(job["jct"]) for job in csv.DictReader(jobs)])
            found[name] = {
                "cluster": SETTINGS[row["setting"]],
                "workload": data / "traces" / "sia" / row["trace"] / f"workload-{row['n']}.csv",
                "avg_jct_h": float(row["avg_jct_h"]),
                "p99_jct_h": float(row["p99_jct_h"]),
                "makespan_h": float(row["makespan_h"]),
                "gpu_h": float(row["avg_gpu_h_roundbased"]),
                "restarts": float(row["avg_restarts"]),
                "jct_s": jct_s,
            }
    return found


def compare(name: str, reference: dict[str, Any]) -> dict[str, Any]:
    """Simulate one workload and set it beside its reference."""
    from scipy.stats import ks_2samp

    result = simulate(Setting("sia", reference["cluster"], reference["workload"]))
    summary = result.summary()
    jct_s = result.jobs["jct_s"].astype(np.float64)
    measured = {
        "avg_jct_h": summary["avg_jct_h"],
        "p99_jct_h": summary["p99_jct_h"],
        "makespan_h": summary["makespan_h"],
        "gpu_h": summary["gpu_hours_per_job"],
        "restarts": summary["restarts_per_job"],
    }
    return {
        "name": name,
        "jobs_completed": summary["jobs_completed"],
        **measured,
        **{f"reference_{key}": reference[key] for key in measured},
        **{f"off_{key}": relative(measured[key], reference[key]) for key in measured},
        "ks": float(ks_2samp(jct_s, reference["jct_s"]).statistic),
        "quantiles_off": quantile_distance(jct_s, reference["jct_s"]),
    }


def quantile_distance(measured: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """Mean distance between equal quantiles, over the reference's mean."""
    at = np.linspace(0.0, 1.0, 1001)
    return float(np.abs(np.quantile(measured, at) - np.quantile(reference, at)).mean() / reference.mean())


def main(arguments: list[str] | None = None) -> int:
    """Print the comparison; exit code 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of workloads, by commas; by default all twelve")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    asked = parser.parse_args(arguments)
    known = references(data_directory())
    names = asked.only.split(",") if asked.only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no reference for {', '.join(unknown)}; there are {', '.join(known)}")
    rows = []
    for name in names:
        rows.append(compare(name, known[name]))
        print(f"{name}: JCT {rows[-1]['off_avg_jct_h']:+.1%}", file=sys.stderr, flush=True)
    report(rows)
    off = {figure: np.array([row[f"off_{figure}"] for row in rows]) for figure in FIGURES}
    within = all(np.abs(x).max() <= BARS["each"] and abs(x.mean()) <= BARS["mean"] for x in off.values())
    if asked.json:
        print(json.dumps({"rows": rows, "within": within}))
    return 0 if within else 1


def report(rows: list[dict[str, Any]]) -> None:
    """The tables on the screen."""
    keys = ("avg_jct_h", "p99_jct_h", "makespan_h", "gpu_h", "restarts")
    columns = ["workload", *(f"{key} {which}" for key in keys for which in ("ref", "here", "off")), "KS", "quantiles"]
    lines = []
    for row in rows:
        cells = [x for k in keys for x in (row[f"reference_{k}"], row[k], f"{row[f'off_{k}']:+.1%}")]
        lines.append([row["name"], *cells, row["ks"], f"{row['quantiles_off']:.1%}"])
    cells = [x for k in keys for x in (mean(rows, f"reference_{k}"), mean(rows, k), f"{mean(rows, f'off_{k}'):+.1%}")]
    lines.append(["mean", *cells, mean(rows, "ks"), f"{mean(rows, 'quantiles_off'):.1%}"])
    show("Sia: public simulator and copter with its semantics", columns, lines)


if __name__ == "__main__":
    sys.exit(main())
