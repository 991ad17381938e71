"""A table of policies on the paper's workloads: the paper's figures and ours, and their ratio."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import loads
from runs import RunStore, Setting, data_directory, figures_of, mean, run_name, show

from copter_frontends.goodput.measured import find_profiles, read_profiles
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.simulator.tuned_jobs import JobTuner
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_frontends.vocabulary.semantics import PRESETS

NAN = float("nan")

HEADS = {
    "avg_jct_h": "JCT h",
    "p99_jct_h": "p99 JCT h",
    "makespan_h": "makespan h",
    "gpu_hours_per_job": "GPU hours a job",
    "restarts_per_job": "restarts a job",
    "ftf.thesis.worst": "worst rho",
    "ftf.thesis.unfair_fraction": "unfair",
    "ftf.artifact.worst": "worst rho, tool",
    "ftf.artifact.unfair_fraction": "unfair, tool",
}
"""What a figure is called on the screen."""


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: its title, cluster, traces and figures, by (trace, policy).

    A figure is a name of the summary, or a path into it (``ftf.thesis.worst``). With `tuned_gpus` rigid policies
    have jobs that are tuned for the cluster, to so many GPUs at most, and not those of the workload file.
    """

    title: str
    cluster: str
    traces: tuple[str, ...]
    figures: tuple[str, ...]
    values: Mapping[tuple[str, str], tuple[float, ...]]
    tuned_gpus: int | None = None


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
    if paper.tuned_gpus is not None:
        parser.add_argument(
            "--tuned",
            action=argparse.BooleanOptionalAction,
            default=True,
            help="tune the jobs of rigid policies for this cluster (B38), and do not take the workload's requests",
        )
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
    report(paper, found, f"{asked.workloads} workloads a trace, semantics {asked.semantics}")
    loads.say()
    if asked.json:
        print(json.dumps({"rows": found}))
    return 0


def report(paper: PaperTable, found: list[dict[str, Any]], how: str) -> None:
    """Paper and measured side by side, and each policy over the first of its trace, with how far that ratio is off."""
    heads = [HEADS.get(figure, figure) for figure in paper.figures]
    rows, ratios = [], []
    first: dict[str, str] = {}
    for row in found:
        trace, policy = row["trace"], row["policy"]
        printed = paper.values.get((trace, policy), (NAN,) * len(paper.figures))
        cells = [
            f"{number(v)} / {number(row[f])}{of_each(row['each'][f])}"
            for f, v in zip(paper.figures, printed, strict=True)
        ]
        rows.append([trace, policy, *cells])
        base = first.setdefault(trace, policy)
        if policy == base:
            continue
        over = next(each for each in found if (each["trace"], each["policy"]) == (trace, base))
        base_printed = paper.values.get((trace, base), (NAN,) * len(paper.figures))
        cells = []
        for figure, value, base_value in zip(paper.figures, printed, base_printed, strict=True):
            expected, measured = value / base_value, row[figure] / over[figure] if over[figure] else NAN
            off = measured / expected - 1
            told = "" if math.isnan(off) else f" ({off:+.0%})"
            cells.append(f"{number(expected, 3)} / {number(measured, 3)}{told}")
        ratios.append([trace, f"{policy} over {base}", *cells])
    show(f"{paper.title}; {how}; paper / here", ["trace", "policy", *heads], rows)
    if ratios:
        show("Ratios: paper / here (how far off)", ["trace", "policies", *heads], ratios)


def of_each(values: list[float]) -> str:
    """The least and the most of several workloads."""
    return f" ({number(min(values), 3)} to {number(max(values), 3)})" if len(values) > 1 else ""


def number(value: float, digits: int = 4) -> str:
    """A figure as text; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.{digits}g}"


def average(
    paper: PaperTable, policy: str, paths: list[Path], asked: argparse.Namespace, store: RunStore
) -> dict[str, Any]:
    """Mean of the figures over workloads; of a worst one, the worst; ``each`` has every workload's."""
    rows = []
    tuner = tuner_of(paper, paths) if getattr(asked, "tuned", False) and POLICIES[policy].rigid else None
    what = "" if tuner is None else f"tuned to {paper.tuned_gpus} GPUs"
    for path in paths:
        setting = Setting(policy, paper.cluster, path, PRESETS[asked.semantics], jobs=asked.jobs)
        if tuner is not None:
            setting = replace(setting, change=tuner.tune_all)
        figures = store.figures(run_name(setting, what), lambda setting=setting: figures_of(setting))  # type: ignore[misc]
        rows.append({figure: at_path(figures, figure) for figure in paper.figures})
    worst = [name for name in paper.figures if name.endswith(".worst")]
    found: dict[str, Any] = {
        name: max(row[name] for row in rows) if name in worst else mean(rows, name) for name in paper.figures
    }
    return {**found, "each": {name: [row[name] for row in rows] for name in paper.figures}}


def tuner_of(paper: PaperTable, paths: list[Path]) -> JobTuner:
    """Tunes jobs for the table's cluster by the measured profiles, or by the fitted constants where there are none."""
    found = find_profiles(*paths)
    profiles = read_profiles(found) if found else None
    return JobTuner(cluster_from(paper.cluster), most_gpus=paper.tuned_gpus or 1, profiles=profiles)


def at_path(figures: Mapping[str, Any], path: str) -> float:
    """A figure by its name, with dots into nested mappings."""
    found: Any = figures
    for part in path.split("."):
        found = found[part]
    return float(found)
