"""A table of policies on the paper's workloads: the paper's figures and ours, and their ratio."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs import RunStore, Setting, data_directory, figures_of, mean, show

from copter_frontends.semantics import PRESETS
from copter_frontends.simulator.policies import POLICIES


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: its title, cluster, traces and figures, by (trace, policy).

    A figure is a name of the summary, or a path into it (``ftf.thesis.worst``).
    """

    title: str
    cluster: str
    traces: tuple[str, ...]
    figures: tuple[str, ...]
    values: Mapping[tuple[str, str], tuple[float, ...]]


def main(paper: PaperTable, description: str | None) -> int:
    """Run the table as the command line asks, and print it."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default="sia", help=f"some of {','.join(POLICIES)} (default sia)")
    parser.add_argument("--traces", default=",".join(paper.traces), help=f"some of {','.join(paper.traces)}")
    parser.add_argument("--workloads", type=int, default=2, help="workloads of each trace (default 2)")
    parser.add_argument("--jobs", type=int, help="only the first so many jobs of each")
    parser.add_argument("--semantics", choices=list(PRESETS), default="sia-artifact")
    parser.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    asked = parser.parse_args()
    unknown = [name for name in asked.policies.split(",") if name not in POLICIES]
    if unknown:
        parser.error(f"unknown policy {', '.join(unknown)}; there are {', '.join(POLICIES)}")
    found: list[dict[str, Any]] = []
    store = RunStore(asked.keep)
    for trace in asked.traces.split(","):
        paths = sorted((data_directory() / "traces" / "sia" / trace).glob("workload-*.csv"))[: asked.workloads]
        found += [
            {"trace": trace, "policy": policy, **average(paper, policy, paths, asked, store)}
            for policy in asked.policies.split(",")
        ]
    columns = ["trace", "policy", *(f"{name} {which}" for name in paper.figures for which in ("paper", "here"))]
    rows = []
    for row in found:
        printed = paper.values.get((row["trace"], row["policy"]), (float("nan"),) * len(paper.figures))
        cells = [x for name, value in zip(paper.figures, printed, strict=True) for x in (value, row[name])]
        rows.append([row["trace"], row["policy"], *cells])
    show(f"{paper.title}; {asked.workloads} workloads a trace, semantics {asked.semantics}", columns, rows)
    if asked.json:
        print(json.dumps({"rows": found}))
    return 0


def average(
    paper: PaperTable, policy: str, paths: list[Path], asked: argparse.Namespace, store: RunStore
) -> dict[str, float]:
    """Mean of the figures over workloads."""
    rows = []
    for path in paths:
        setting = Setting(policy, paper.cluster, path, PRESETS[asked.semantics], jobs=asked.jobs)
        name = f"{policy} {paper.cluster} {path.parent.name}/{path.stem} {asked.semantics} {asked.jobs or 'all'} jobs"
        figures = store.figures(name, lambda setting=setting: figures_of(setting))  # type: ignore[misc]
        rows.append({figure: at_path(figures, figure) for figure in paper.figures})
    return {name: mean(rows, name) for name in paper.figures}


def at_path(figures: Mapping[str, Any], path: str) -> float:
    """A figure by its name, with dots into nested mappings."""
    found: Any = figures
    for part in path.split("."):
        found = found[part]
    return float(found)
