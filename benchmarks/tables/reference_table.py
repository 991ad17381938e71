"""A policy against the public Sia simulator, workload by workload, with that simulator's semantics."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import loads
import numpy as np
from numpy.typing import NDArray
from runs import RunStore, Setting, data_directory, figures_of, mean, relative, run_name, show

from copter_papers.sia.workload import reference_workload

FIGURES = {
    "avg_jct_h": "avg_jct_h",
    "p99_jct_h": "p99_jct_h",
    "makespan_h": "makespan_h",
    "gpu_hours_per_job": "avg_gpu_h_roundbased",
    "restarts_per_job": "avg_restarts",
}
"""Figures of a run, and the columns of the reference summary that they are compared with."""

BARRED = ("avg_jct_h", "makespan_h", "gpu_hours_per_job")


@dataclass(frozen=True)
class ReferenceTable:
    """A policy's comparison with the public simulator.

    Attributes
    ----------
    policy : str
    clusters : mapping of setting to cluster
        Settings of the reference results that are compared.
    each, mean : float
        How far the barred figures may be off, as a share, on each workload and on average.
    """

    policy: str
    clusters: Mapping[str, str]
    each: float
    mean: float


def main(table: ReferenceTable, description: str | None, arguments: list[str] | None = None) -> int:
    """Print the comparison; exit code 1 where a bar is missed, which is one of the public simulator's semantics."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of workloads, by commas; by default all of them")
    parser.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    parser.add_argument(
        "--own-shim", action="store_true", help="plans by copter's own shim, without branch and bound over it"
    )
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    asked = parser.parse_args(arguments)
    known = references(table, data_directory())
    names = asked.only.split(",") if asked.only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no reference for {', '.join(unknown)}; there are {', '.join(known)}")
    store = RunStore(asked.keep)
    rows = [compare(table, name, known[name], store, asked.own_shim) for name in names]
    report(table, rows, asked.own_shim)
    off = {figure: np.array([row[f"off_{figure}"] for row in rows]) for figure in BARRED}
    within = all(np.abs(x).max() <= table.each and abs(x.mean()) <= table.mean for x in off.values())
    print(f"within {table.each:.0%} on each workload and {table.mean:.0%} on average: {'yes' if within else 'no'}")
    loads.say()
    if asked.json:
        print(json.dumps({"rows": rows, "within": bool(within)}))
    return 0 if within or asked.own_shim else 1


def references(table: ReferenceTable, data: Path) -> dict[str, dict[str, Any]]:
    """The policy's rows of the reference summary by name (philly_1, homog_philly_1), with the JCTs of its jobs."""
    folder, found = data / "reference_results", {}
    with (folder / "summary.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["policy"] != table.policy or row["setting"] not in table.clusters:
                continue
            name = f"{'homog_' if row['setting'] == 'homog' else ''}{row['trace']}_{row['n']}"
            with gzip.open(folder / f"jobs_{table.policy}_{name}.csv.gz", "rt", newline="") as jobs:
                jct_s = np.array([float(job["jct"]) for job in csv.DictReader(jobs)])
            found[name] = {
                "cluster": table.clusters[row["setting"]],
                "workload": reference_workload(name).path(data),
                "jct_s": jct_s,
                **{figure: float(row[column]) for figure, column in FIGURES.items()},
            }
    return found


def compare(
    table: ReferenceTable, name: str, reference: dict[str, Any], store: RunStore, own_shim: bool = False
) -> dict[str, Any]:
    """Simulate one workload and compare it with its reference.

    The public simulator's semantics have branch and bound (HiGHS) override Sia's shim where it finds better; with
    `own_shim` plans are the shim's.

    JCTs are compared by their distributions too: the largest distance between the two cumulative distributions
    (Kolmogorov-Smirnov), and the mean distance between equal quantiles over the mean (Wasserstein).
    """
    from scipy.stats import ks_2samp

    setting = Setting(table.policy, reference["cluster"], reference["workload"])
    if own_shim:
        setting = replace(setting, semantics=replace(setting.semantics, shim="filled"))
    summary = store.figures(run_name(setting, "own shim" if own_shim else ""), lambda: figures_of(setting))
    jct_s = np.array(summary["jct_s"])
    return {
        "name": name,
        "jobs_completed": summary["jobs_completed"],
        "round_p95_s": summary["round_s"]["p95"],
        **{figure: summary[figure] for figure in FIGURES},
        **{f"reference_{figure}": reference[figure] for figure in FIGURES},
        **{f"off_{figure}": relative(summary[figure], reference[figure]) for figure in FIGURES},
        "ks": float(ks_2samp(jct_s, reference["jct_s"]).statistic),
        "quantiles_off": quantile_distance(jct_s, reference["jct_s"]),
    }


def quantile_distance(measured: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """Mean distance between equal quantiles, over the reference's mean."""
    at = np.linspace(0.0, 1.0, 1001)
    return float(np.abs(np.quantile(measured, at) - np.quantile(reference, at)).mean() / reference.mean())


def report(table: ReferenceTable, rows: list[dict[str, Any]], own_shim: bool = False) -> None:
    """The table on the screen: the public simulator's figure, ours, and how far off it is."""
    lines = []
    for row in rows:
        cells = [f"{row[f'reference_{k}']:.4g} / {row[k]:.4g} ({row[f'off_{k}']:+.1%})" for k in FIGURES]
        lines.append([row["name"], *cells, f"{row['ks']:.2f}", f"{row['quantiles_off']:.1%}"])
    means = [f"({mean(rows, f'off_{k}'):+.1%})" for k in FIGURES]
    lines.append(["mean", *means, f"{mean(rows, 'ks'):.2f}", f"{mean(rows, 'quantiles_off'):.1%}"])
    title = f"{table.policy}: public simulator / copter with its semantics (how far off)"
    if table.policy == "sia":
        title += "; plans by copter's shim" if own_shim else "; plans by HiGHS's branch and bound over copter's shim"
    show(title, ["workload", *FIGURES, "KS", "quantiles"], lines)
