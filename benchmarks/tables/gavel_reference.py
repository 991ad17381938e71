"""Gavel against Sia's public simulator, workload by workload, with that simulator's semantics.

python benchmarks/tables/gavel_reference.py [--only philly_1,saturn_3] [--json]

Reads the reference results and the workloads in the data directory (COPTER_DATA). Average JCT, makespan and GPU hours
(of whole rounds) are to be within 5% on every workload.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from runs import Setting, data_directory, mean, relative, show, simulate

FIGURES = ("avg_jct_h", "makespan_h", "gpu_h", "restarts")
BARRED = FIGURES[:3]
BAR = 0.05


def references(data: Path) -> dict[str, dict[str, Any]]:
    """Gavel's rows of the reference summary, by workload (philly_1)."""
    found = {}
    with (data / "reference_results" / "summary.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["policy"] == "gavel" and row["setting"] == "het":
                found[f"{row['trace']}_{row['n']}"] = {
                    "workload": data / "traces" / "sia" / row["trace"] / f"workload-{row['n']}.csv",
                    "avg_jct_h": float(row["avg_jct_h"]),
                    "makespan_h": float(row["makespan_h"]),
                    "gpu_h": float(row["avg_gpu_h_roundbased"]),
                    "restarts": float(row["avg_restarts"]),
                }
    return found


def compare(name: str, reference: dict[str, Any]) -> dict[str, Any]:
    """Simulate one workload, its jobs as tuned there, and set it beside its reference."""
    result = simulate(Setting("gavel", "sia-het", reference["workload"]))
    summary = result.summary()
    measured = {
        "avg_jct_h": summary["avg_jct_h"],
        "makespan_h": summary["makespan_h"],
        "gpu_h": float(result.jobs["gpu_seconds"].astype(float).mean()) / 3600,
        "restarts": summary["restarts_per_job"],
    }
    return {
        "name": name,
        "jobs_completed": summary["jobs_completed"],
        **measured,
        **{f"reference_{key}": reference[key] for key in FIGURES},
        **{f"off_{key}": relative(measured[key], reference[key]) for key in FIGURES},
    }


def report(rows: list[dict[str, Any]]) -> None:
    """The table on the screen."""
    columns = ["workload", *(f"{key} {which}" for key in FIGURES for which in ("ref", "here", "off"))]
    lines = []
    for row in rows:
        cells = [x for k in FIGURES for x in (row[f"reference_{k}"], row[k], f"{row[f'off_{k}']:+.1%}")]
        lines.append([row["name"], *cells])
    cells = [
        x for k in FIGURES for x in (mean(rows, f"reference_{k}"), mean(rows, k), f"{mean(rows, f'off_{k}'):+.1%}")
    ]
    show("Gavel: public simulator and copter with its semantics", columns, [*lines, ["mean", *cells]])


def main(arguments: list[str] | None = None) -> int:
    """Print the comparison; exit code 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of workloads, by commas; by default all ten")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    asked = parser.parse_args(arguments)
    known = references(data_directory())
    names = asked.only.split(",") if asked.only else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no reference for {', '.join(unknown)}; there are {', '.join(known)}")
    rows = [compare(name, known[name]) for name in names]
    report(rows)
    within = all(abs(row[f"off_{figure}"]) <= BAR for row in rows for figure in BARRED)
    if asked.json:
        print(json.dumps({"rows": rows, "within": within}))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
