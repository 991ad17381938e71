"""Thesis Figures 3.1 to 3.9 (some of them) and 3.5.3's two panels: the paper's claim, what is measured, the points.

    python benchmarks/tables/sia_curves.py 3.7 [--policies sia,pollux,gavel] [--workloads 1] [--jobs N] [--json]

3.1: average JCT of adaptive jobs on one GPU type, on three, and of rigid jobs on three. 3.2: a
job's life under the thesis's semantics, and how many jobs' lives go so. 3.4: GPUs of three jobs on the
testbed. 3.7: curves of finish-time fairness and of JCT. 3.8: which jobs run in a spike of arrivals, with turns and
without; 3.9: the spike's arrivals. gpt: the pipeline model's throughput by GPUs, and its GPUs beside other jobs. The
last line with --json has a picture's points (`make pictures`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from figure_command import Figures, end_figure, figure_options, names_of, spread, whole
from policy_table import tuner_of
from runs import Setting, jobs_of, show, sia_policy, simulate
from sia_figures import testbed, workloads
from sweeps import limited
from table_3_4 import PAPER as HOMOGENEOUS
from time_sharing import BEFORE, JOBS, Spike, model_of

from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.applications import ALL_APPLICATIONS
from copter_frontends.goodput.pipeline import pipeline_step_s
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policies.sia import TimeSharing
from copter_frontends.simulator import SimulationResult
from copter_frontends.simulator.alone import GoodputAloneTimes
from copter_frontends.simulator.fairness import finish_time_fairness
from copter_frontends.vocabulary import Configuration, Job, configurations_of
from copter_frontends.vocabulary.named_clusters import NAMED_CLUSTERS, cluster_from
from copter_frontends.vocabulary.semantics import SIA_THESIS

PAPER = {
    "3.2": "a job is profiled on one GPU of each type, starts on exactly one GPU, and at most doubles in a round",
    "3.1": "one type: Sia 1.9 h, Pollux 2.0, Gavel 4.3; three types: 0.6, 1.0, 1.9; rigid: Sia 0.75 of Gavel's",
    "3.4": "congestion moves ImageNet to fewer GPUs and from a100 to rtx; afterwards it returns and DeepSpeech2 grows",
    "3.7": "worst rho of Sia 1.2, Shockwave 3.3, Pollux 4.6, Gavel 27.8; unfair below 0.3, 14, 28, 15%",
    "3.8": "Gavel swaps jobs every round; Sia keeps them and lets others wait for hours; turns of 180 or 300 s do not",
    "3.9": "240 jobs in 6 hours, 40 an hour, with a burst at hour 2.5",
    "gpt": "throughput grows linearly with GPUs; Sia scales the job down under congestion and up again after it",
}
SCENARIOS = ("adaptive, one type", "adaptive, three types", "rigid, three types")
PAPER_BARS = {"sia": (1.9, 0.6, None), "pollux": (2.0, 1.0, None), "gavel": (4.3, 1.9, None)}
SHARES = tuple(range(0, 101, 5))
TIMELINE_S, WATCHED = 2700.0, ("imagenet", "cifar10", "deepspeech2")
BURST_SHARE = 100 / 240
WINDOW_S = (2.75 * 3600.0, 4.25 * 3600.0)
TURNS: tuple[tuple[str, float | None], ...] = (("gavel", None), ("sia", None), ("sia", 180.0), ("sia", 300.0))
START_S = 30.0
GPT_GPUS = {"a100": (2, 4, 8, 16), "rtx": (8, 16, 24)}
Row = tuple[float, float, str, int]


def scenario(name: str, policy: str, path: Path, jobs: int | None) -> Setting:
    """What a bar of Figure 3.1 runs; inelastic policies' jobs are tuned for the cluster of one type."""
    if name == SCENARIOS[0]:
        change = tuner_of(HOMOGENEOUS, [path]).tune_all if POLICIES[policy].rigid else None
        return Setting(policy, "sia-hom", path, jobs=jobs, change=change)
    change = limited("rigid") if name == SCENARIOS[2] and not POLICIES[policy].rigid else None
    return Setting(policy, "sia-het", path, jobs=jobs, change=change)


def figure_3_1(asked: argparse.Namespace) -> Figures:
    """Average JCT in three scenarios."""
    found: dict[str, dict[str, list[float]]] = {}
    for policy in asked.policies:
        found[policy] = {
            name: [
                simulate(scenario(name, policy, path, asked.jobs)).summary()["avg_jct_h"]
                for path in workloads("philly", asked.workloads)
            ]
            for name in SCENARIOS
        }
    rows = []
    for policy, each in found.items():
        bars = PAPER_BARS.get(policy, (None,) * len(SCENARIOS))
        cells = [
            f"{'–' if bar is None else bar} / {spread(values)}" for bar, values in zip(bars, each.values(), strict=True)
        ]
        rows.append([policy, *cells])
    show("Figure 3.1: average JCT h, paper / here", ["policy", *SCENARIOS], rows)
    return found


def life(result: SimulationResult, job: str, submit_s: float) -> list[tuple[float, str]]:
    """What happens to a job, by minutes from its submission."""
    row = result.jobs["id"].tolist().index(job)
    spans = sorted((span.begin_s, span.end_s, span.gpu_type, span.gpus) for span in result.spans if span.job == job)
    found, end_s = [(0.0, "submitted"), (SIA_THESIS.profiling_s, "profiled on one GPU of each type; waits")], None
    for begin_s, until_s, kind, gpus in spans:
        if end_s is not None and begin_s > end_s:
            found.append((end_s - submit_s, "waits"))
        found.append((begin_s - submit_s, f"{gpus} of {kind}"))
        end_s = until_s
    found.append((float(result.jobs["completion_s"][row]) - submit_s, "ended"))
    return [(round(second / 60.0, 2), what) for second, what in found]


def figure_3_2(asked: argparse.Namespace) -> Figures:
    """The job whose GPUs change most often, and over all jobs how they start and grow."""
    rows, first = [], None
    for path in workloads("saturn", asked.workloads):
        setting = Setting("sia", "sia-het", path, SIA_THESIS, jobs=asked.jobs)
        result = simulate(setting)
        of: dict[str, list[Any]] = {}
        for span in sorted(result.spans, key=lambda span: span.begin_s):
            of.setdefault(span.job, []).append(span)
        grown = {
            job: max(
                (span.gpus / max(each.gpus for each in spans[:at]) for at, span in enumerate(spans) if at), default=1.0
            )
            for job, spans in of.items()
        }
        rows.append(
            [
                path.stem,
                str(len(of)),
                f"{np.mean([spans[0].gpus == 1 for spans in of.values()]):.1%}",
                f"{max(grown.values()):g}",
                f"{np.mean([len({span.gpu_type for span in spans}) > 1 for spans in of.values()]):.1%}",
                f"{np.mean([len(spans) for spans in of.values()]):.3g}",
            ]
        )
        if first is None:
            busy = max(of, key=lambda job: len(of[job]))
            submit_s = next(job.submit_s for job in jobs_of(setting) if job.id == busy)
            first = (busy, life(result, busy, submit_s))
    assert first is not None
    show(f"Figure 3.2: {first[0]}", ["min", "what"], [[f"{minute:g}", what] for minute, what in first[1]])
    heads = ["workload", "jobs", "start on one GPU", "largest step, times the most before", "on several types"]
    show(f"All jobs, semantics {SIA_THESIS.name}", [*heads, "allocations a job"], rows)
    return {"job": first[0], "life": first[1]}


def spans_of(result: SimulationResult, job: str, begin_s: float, end_s: float) -> list[Row]:
    """A job's periods on its GPUs within a window: begin and end in minutes from its begin, GPU type, GPUs."""
    cut = [
        (max(span.begin_s, begin_s), min(span.end_s, end_s), span.gpu_type, span.gpus)
        for span in result.spans
        if span.job == job and span.begin_s < end_s and span.end_s > begin_s
    ]
    return [
        (round((a - begin_s) / 60.0, 2), round((b - begin_s) / 60.0, 2), kind, gpus) for a, b, kind, gpus in sorted(cut)
    ]


def active(result: SimulationResult, begin_s: float, end_s: float) -> list[tuple[float, int]]:
    """Jobs in the cluster at each round of a window, by minutes from its begin."""
    return [
        (round((record.now_s - begin_s) / 60.0, 2), record.active_jobs)
        for record in result.rounds
        if begin_s <= record.now_s < end_s
    ]


def busiest(result: SimulationResult, length_s: float, watched: Collection[str]) -> float:
    """When the window of this length begins in which the number of jobs varies most while a watched one trains."""
    starts = np.array([record.now_s for record in result.rounds])
    counts = np.array([record.active_jobs for record in result.rounds])
    held = [(span.begin_s, span.end_s) for span in result.spans if span.job in watched]
    trains = (
        np.array([any(a <= start < b for a, b in held) for start in starts]) if held else np.ones(len(starts), bool)
    )
    spreads = [np.ptp(counts[(starts >= start) & (starts < start + length_s)]) for start in starts]
    return float(starts[int(np.argmax(np.where(trains, spreads, -1)))])


def longest_of(result: SimulationResult, jobs: Iterable[Job], name: str, begin_s: float) -> str | None:
    """The job of an application that has GPUs for most of a timeline."""
    of = [job.id for job in jobs if job.application == name]
    held = {job: sum(b - a for a, b, *_ in spans_of(result, job, begin_s, begin_s + TIMELINE_S)) for job in of}
    return max(held, key=lambda job: held[job]) if held and max(held.values()) > 0 else None


def figure_3_4(asked: argparse.Namespace) -> Figures:
    """GPUs of three jobs over 45 minutes, beside the number of jobs."""
    path = workloads("philly", asked.workloads)[-1]
    setting = Setting("sia", "sia-physical", path, jobs=asked.jobs, change=testbed)
    result, jobs = simulate(setting), jobs_of(setting)
    begin_s = busiest(result, TIMELINE_S, {job.id for job in jobs if job.application == WATCHED[0]})
    chosen = {name: longest_of(result, jobs, name, begin_s) for name in WATCHED}
    found = {
        name: spans_of(result, job, begin_s, begin_s + TIMELINE_S) for name, job in chosen.items() if job is not None
    }
    rows = [[name, f"{a:g}", f"{b:g}", kind, str(gpus)] for name, spans in found.items() for a, b, kind, gpus in spans]
    show(f"Figure 3.4: from {begin_s / 3600.0:.2f} h on", ["job", "from, min", "to, min", "type", "GPUs"], rows)
    return {"jobs": found, "active": active(result, begin_s, begin_s + TIMELINE_S)}


def figure_3_7(asked: argparse.Namespace) -> Figures:
    """Quantiles of rho (3.6) and of JCT over all jobs of the workloads."""
    found: dict[str, dict[str, Any]] = {}
    rows = []
    for policy in asked.policies:
        rho, jct_h, worst, unfair = [], [], [], []
        for path in workloads("saturn", asked.workloads):
            setting = Setting(policy, "sia-het", path, jobs=asked.jobs)
            result = simulate(setting)
            alone = GoodputAloneTimes(GoodputModel(configurations_of(cluster_from(setting.cluster))))
            jobs = [replace(job, max_batch_size=None) for job in jobs_of(setting)]  # alone a job tunes its batch
            ratios = finish_time_fairness(result, jobs, alone)["thesis"]
            rho.append(ratios.values)
            jct_h.append(result.jobs["jct_s"].astype(float) / 3600.0)
            worst.append(ratios.worst)
            unfair.append(100.0 * (ratios.unfair_fraction or 0.0))
        curves = {
            "rho": np.percentile(np.concatenate(rho), SHARES).round(4).tolist(),
            "jct_h": np.nanpercentile(np.concatenate(jct_h), SHARES).round(4).tolist(),
        }
        found[policy] = {**curves, "worst": worst, "unfair": unfair}
        told = [f"{curves[name][SHARES.index(share)]:.3g}" for name in curves for share in (50, 90, 100)]
        rows.append([policy, *told, spread(unfair, "%")])
    heads = [f"{name} p{share}" for name in ("rho", "JCT h") for share in (50, 90, 100)]
    show("Figure 3.7: quantiles", ["policy", *heads, "unfair"], rows)
    return {"shares": list(SHARES), **found}


def spike(jobs: int | None) -> Spike:
    """The arrivals of time_sharing.py, of fewer jobs for a trial."""
    count = jobs or JOBS
    burst = round(BURST_SHARE * count)
    before = round(BEFORE * (count - burst))
    return Spike((before, burst, count - burst - before))


def figure_3_9(asked: argparse.Namespace) -> Figures:
    """Arrivals an hour, over half hours."""
    paths = workloads("newtrace", asked.workloads)
    each = []
    for path in paths:
        times = [job.submit_s / 1800.0 for job in jobs_of(Setting("sia", "sia-het", path, change=spike(asked.jobs)))]
        each.append((2.0 * np.histogram(times, bins=np.arange(0, 13))[0]).tolist())
    rows = [[f"{half / 2:g} to {(half + 1) / 2:g}", spread([run[half] for run in each])] for half in range(12)]
    show("Figure 3.9: jobs an hour", ["hours", "jobs an hour"], rows)
    return {"rates": each}


def turns(policy: str, turn_s: float | None, path: Path, jobs: int | None) -> tuple[SimulationResult, list[Job]]:
    """A run of the spike, with turns or without; every start takes as long as the thesis says."""
    setting, model = Setting(policy, "sia-het", path, change=spike(jobs)), model_of(START_S)
    if policy != "sia":
        return simulate(setting, model=model), jobs_of(setting)
    sharing = None if turn_s is None else TimeSharing(turn_s)
    return simulate(setting, sia_policy(setting, model, sharing=sharing), model), jobs_of(setting)


def activity(result: SimulationResult, jobs: Iterable[Job]) -> Figures:
    """What a panel of Figure 3.8 shows of the jobs that come before its window ends, and the figures in its caption."""
    begin_s, end_s = WINDOW_S
    end_of = dict(zip(result.jobs["id"].tolist(), result.jobs["completion_s"].astype(float).tolist(), strict=True))
    shown = [j for j in sorted(jobs, key=lambda j: j.submit_s) if j.submit_s < end_s and end_of[j.id] > begin_s]
    bars, served, present, lengths = [], 0.0, 0.0, []
    for job in shown:
        spans = spans_of(result, job.id, *WINDOW_S)
        bars.append([(a, b) for a, b, *_ in spans])
        served += sum(b - a for a, b in bars[-1])
        present += (min(end_of[job.id], end_s) - max(job.submit_s, begin_s)) / 60.0
        lengths += [b - a for a, b in bars[-1]]
    jct_s = dict(zip(result.jobs["id"].tolist(), result.jobs["jct_s"].astype(float).tolist(), strict=True))
    first = dict(zip(result.jobs["id"].tolist(), result.jobs["first_start_s"].astype(float).tolist(), strict=True))
    came = [job for job in jobs if begin_s <= job.submit_s < end_s]
    return {
        "jct_h": float(np.mean([jct_s[job.id] for job in came]) / 3600.0),
        "wait_min": float(np.mean([first[job.id] - job.submit_s for job in came]) / 60.0),
        "longest_wait_min": float(max(first[job.id] - job.submit_s for job in came) / 60.0),
        "served": 100.0 * served / present,
        "run_min": float(np.mean(lengths)),
        "bars": bars,
        "from_min": [round(max(job.submit_s - begin_s, 0.0) / 60.0, 2) for job in shown],
        "to_min": [round(min(end_of[job.id] - begin_s, end_s - begin_s) / 60.0, 2) for job in shown],
    }


def figure_3_8(asked: argparse.Namespace) -> Figures:
    """Who runs in an hour and a half of the spike."""
    found: dict[str, list[Figures]] = {}
    for policy, turn_s in TURNS:
        name = policy if turn_s is None else f"{policy}, turns of {turn_s:g} s"
        found[name] = [
            activity(*turns(policy, turn_s, path, asked.jobs)) for path in workloads("newtrace", asked.workloads)
        ]
    columns = {
        "jct_h": "JCT h of the window's jobs",
        "wait_min": "wait for the first GPU, min",
        "longest_wait_min": "longest, min",
        "served": "time with GPUs, %",
        "run_min": "a stretch, min",
    }
    rows = [[name, *(spread([each[key] for each in runs]) for key in columns)] for name, runs in found.items()]
    show("Figure 3.8: hours 2.75 to 4.25 of the spike", ["policy", *columns.values()], rows)
    return {name: runs[0] for name, runs in found.items()}


def gpt_throughput() -> dict[str, list[tuple[int, float]]]:
    """Samples per second of the pipeline model by GPUs."""
    gpt = ALL_APPLICATIONS["gpt"]
    assert gpt.pipeline is not None
    per_node = {kind: gpus for kind, (_, gpus) in NAMED_CLUSTERS["sia-het"].items()}
    found: dict[str, list[tuple[int, float]]] = {}
    for kind, sizes in GPT_GPUS.items():
        stages, batch = gpt.pipeline.stages[kind], gpt.pipeline.microbatches
        found[kind] = [
            (
                gpus,
                batch
                * (gpus // stages)
                / pipeline_step_s(gpt, Configuration(-(-gpus // per_node[kind]), gpus, kind))[0],
            )
            for gpus in sizes
        ]
    return found


def figure_gpt(asked: argparse.Namespace) -> Figures:
    """Throughput of the pipeline model by GPUs, and its GPUs beside a workload."""
    throughput = gpt_throughput()
    rows = [
        [kind, str(gpus), f"{rate:.3g}", f"{rate / points[0][1] / (gpus / points[0][0]):.3f}"]
        for kind, points in throughput.items()
        for gpus, rate in points
    ]
    show("3.5.3, left: throughput", ["GPU type", "GPUs", "samples/s", "of linear"], rows)
    gpt = Job("gpt", "gpt", max_gpus=64)
    path = workloads("philly", asked.workloads)[-1]
    setting = Setting("sia", "sia-het", path, jobs=asked.jobs, change=lambda jobs: [gpt, *jobs])
    result = simulate(setting)
    end_s = max(span.end_s for span in result.spans if span.job == gpt.id)
    spans, others = spans_of(result, gpt.id, 0.0, end_s), active(result, 0.0, end_s)
    times, counts = np.array(others).T
    crowded = np.median(counts)
    gpus = np.array([next((n for a, b, _, n in spans if a <= t < b), 0) for t in times])
    rows = [
        [kind, f"{gpus[chosen].mean():.3g}"]
        for kind, chosen in (("few", counts <= crowded), ("many", counts > crowded))
        if chosen.any()
    ]
    show("3.5.3, right: the job's GPUs", [f"jobs in the cluster (median {crowded:g})", "mean GPUs"], rows)
    return {"throughput": throughput, "spans": spans, "active": others}


FIGURES: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "3.1": figure_3_1,
    "3.2": figure_3_2,
    "3.4": figure_3_4,
    "3.7": figure_3_7,
    "3.8": figure_3_8,
    "3.9": figure_3_9,
    "gpt": figure_gpt,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a figure and print it."""
    command = figure_options(__doc__, FIGURES, "workloads")
    command.add_argument("--policies", type=names_of(POLICIES), default="sia,gavel", help="(default sia,gavel)")
    command.add_argument("--jobs", type=whole, help="only the first so many jobs of each")
    asked = command.parse_args(arguments)
    end_figure(asked, FIGURES[asked.figure](asked), PAPER)


if __name__ == "__main__":
    main()
