"""The controller's policy on the streams of slurm_evidence.py, simulated: what its options and constants are worth.

    python benchmarks/slurm_simulated.py [--kinds mixed,rigid] [--delay 0.5] [--patience 4,10] [--moves 0,200]

Half of the delay lies between an event and the plan, half between the plan and the start. The comparison is Slurm with
small jobs first and a delay of 0.05 s, whose backfill knows time limits only, as in the real streams. It is simpler
than Slurm's, so that ratios compare variants of the policy, and only roughly copter with Slurm.
"""

from __future__ import annotations

import argparse
import heapq
import math
import shlex
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from slurm_streams import APPS, NODES, StreamJob, stream

from copter_serve.slurm_controller import timetable
from copter_serve.slurm_controller.horizon import Start
from copter_serve.slurm_controller.policy import Policy, Rules
from copter_serve.slurm_controller.profiles import Profile, of_file
from copter_serve.slurm_controller.reading import ClusterNow, JobNow, NodeNow
from copter_serve.views.slurm_text import expanded

AT_S = 1e9  # Unix time of a stream's start
LIMIT_S = 120.0
TICK_S = 1.0
HEAD = """# Slurm's streams, simulated

Made by `{command}`: the policy of `copter slurm run` on {seeds} streams of 200 jobs a kind, {delay:g} s from event
to start. Each figure is the mean ratio to Slurm with small jobs first and 0.05 s, as simulated there, whose backfill is
simpler than Slurm's: ratios compare variants of the policy with each other. Real streams: [slurm.md](slurm.md); the
method: [timetable.md](../method/timetable.md).

"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each variant; write the page if asked."""
    parser = argparse.ArgumentParser(description="Simulated streams under the Slurm controller's policy.")
    parser.add_argument("--kinds", default="mixed,rigid")
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--delay", type=float, default=0.5)
    parser.add_argument("--patience", default=f"{Rules().patience}")
    parser.add_argument("--moves", default=f"{timetable.MOVES}")
    parser.add_argument("--write", type=Path, help="file of the page")
    given = parser.parse_args(arguments)
    lines = ["| stream | patience | moves | mean wait | large jobs | makespan |", "|---|---|---|---|---|---|"]
    print("\n".join(lines))
    for kind in given.kinds.split(","):
        streams = [stream(kind, seed) for seed in range(1, given.seeds + 1)]
        slurm = [_figures(jobs, *small_first(jobs, kind)) for jobs in streams]
        for patience in given.patience.split(","):
            for moves in given.moves.split(","):
                rules = Rules(patience=float(patience))
                ours = [_figures(jobs, *by_policy(jobs, kind, given.delay, rules, int(moves))) for jobs in streams]
                ratios = [
                    statistics.mean(one[at] / other[at] for one, other in zip(ours, slurm, strict=True))
                    for at in range(3)
                ]
                figures = " | ".join(f"{ratio:.2f}" for ratio in ratios)
                lines.append(f"| {kind} | {patience} | {moves} | {figures} |")
                print(lines[-1], flush=True)
    if given.write is not None:
        words = [word for word in (sys.argv[1:] if arguments is None else arguments) if word != "--write"]
        command = shlex.join(["python", "benchmarks/slurm_simulated.py", *(w for w in words if w != str(given.write))])
        head = HEAD.format(command=command, seeds=given.seeds, delay=given.delay)
        given.write.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def _figures(jobs: Sequence[StreamJob], starts: Sequence[float], ends: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean wait of all jobs and of the largest, and the makespan."""
    waits = [start - job.at_s for start, job in zip(starts, jobs, strict=True)]
    most = max(job.gpus for job in jobs)
    large = [wait for wait, job in zip(waits, jobs, strict=True) if job.gpus == most]
    return statistics.mean(waits), statistics.mean(large), max(ends) - jobs[0].at_s


def nodes_of(kind: str) -> dict[str, tuple[str, dict[str, float]]]:
    """Return each node's GPU type and amounts."""
    found = {}
    for line in NODES[kind].splitlines():
        names, cpus, memory, gpu_type, gpus, _ = line.split()
        for name in expanded(names):
            found[name] = (gpu_type, {"cpu": float(cpus), "mem": float(memory), gpu_type: float(gpus)})
    return found


def profiles_of(kind: str) -> dict[str, Profile]:
    """Return what the controller knows of each application, as in the real streams."""
    slower = 1.5 if kind == "mixed" else 1.0
    return of_file(
        {
            app: {"seconds": seconds * slower, "rate": rate}
            | ({"speed": {"a100": fast, "t4": 1}} if kind == "mixed" else {})
            | ({"sizes": "1,2,4,8"} if kind == "moldable" else {})
            for app, (seconds, fast, rate) in APPS.items()
        },
        "applications",
    )


def by_policy(
    jobs: Sequence[StreamJob], kind: str, delay_s: float, rules: Rules, moves: int
) -> tuple[list[float], list[float]]:
    """Return the starts and ends of a stream's jobs under the controller's policy."""
    timetable.MOVES, nodes, told, policy = moves, nodes_of(kind), profiles_of(kind), Policy(rules)
    starts, ends, half_s = [0.0] * len(jobs), [0.0] * len(jobs), delay_s / 2.0
    waiting: dict[str, JobNow] = {}
    held: dict[str, tuple[JobNow, Start]] = {}  # asked for or running
    events = [(job.at_s, at, "comes") for at, job in enumerate(jobs)]
    plan_s, left = math.inf, len(jobs)
    while left:
        now_s = events[0][0] if events else math.inf
        if plan_s < now_s:
            now_s, plan_s = plan_s, plan_s + TICK_S
            cluster = ClusterNow({}, dict(waiting), AT_S + now_s)
            for name, (gpu_type, has) in nodes.items():
                words, partitions = frozenset({gpu_type}), frozenset({"all"})
                cluster.nodes[name] = NodeNow(name, dict(has), dict(has), words, partitions, True)
            for name, (job, start) in held.items():
                cluster.jobs[name] = job
                free = cluster.nodes[job.nodes[0]].free
                for resource, amount in (("cpu", job.cpus), ("mem", job.memory_mb), (start.kind, job.gpus)):
                    free[resource] -= amount
            known = {name: told[jobs[int(name)].app] for name in cluster.jobs}
            runs_s = {name: start.seconds for name, (_, start) in held.items()}
            for start in policy.plan(cluster, known, runs_s=runs_s).starts:
                name = start.job.id
                changed = {"state": "CONFIGURING", "nodes": start.nodes, "gpus": start.gpus}
                held[name] = (replace(waiting.pop(name), started_s=AT_S + now_s, **changed), start)
                heapq.heappush(events, (now_s + half_s, int(name), "starts"))
            plan_s = plan_s if waiting else math.inf
            continue
        _, at, what = heapq.heappop(events)
        job, name = jobs[at], str(at)
        if what == "comes":
            cpus = 1 if kind == "moldable" else 2 * job.gpus
            waiting[name] = JobNow(
                name, "u", "all", "copter:", "PENDING", "BeginTime", AT_S + math.floor(job.at_s), 0.0, 0.0, LIMIT_S,
                1.0, 1, cpus, 10.0 * cpus, job.gpus, "",
            )  # fmt: skip
        elif what == "starts":
            starts[at], start = now_s, held[name][1]
            held[name] = (replace(held[name][0], started_s=AT_S + math.floor(now_s)), start)
            heapq.heappush(events, (now_s + job.takes(start.kind, start.gpus), at, "ends"))
            continue
        else:
            own, start = held.pop(name)
            ends[at], left = now_s, left - 1
            asked = replace(own, gpus=job.gpus)
            policy.estimates.learn(asked, told[job.app], start.kind, start.gpus, max(1, round(now_s - starts[at])))
        plan_s = min(plan_s, now_s + half_s)
    return starts, ends


def small_first(jobs: Sequence[StreamJob], kind: str, delay_s: float = 0.05) -> tuple[list[float], list[float]]:
    """Return the starts and ends of a stream's jobs under backfill with small jobs first, which knows limits only."""
    free = {name: int(has[gpu_type]) for name, (gpu_type, has) in nodes_of(kind).items()}
    kinds = {name: gpu_type for name, (gpu_type, _) in nodes_of(kind).items()}
    starts, ends, left = [0.0] * len(jobs), [0.0] * len(jobs), len(jobs)
    events = [(job.at_s, at, "comes") for at, job in enumerate(jobs)]
    waiting, running = list[int](), dict[int, str]()
    while left:
        now_s, at, what = heapq.heappop(events)
        if what != "plans":
            if what == "comes":
                waiting.append(at)
            else:
                free[running.pop(at)] += jobs[at].gpus
                ends[at], left = now_s, left - 1
            heapq.heappush(events, (now_s + delay_s, -1, "plans"))
            continue
        kept: dict[str, int] = {}  # GPUs of nodes that are kept for an earlier job
        for one in sorted(waiting, key=lambda at: (jobs[at].gpus, jobs[at].at_s)):
            gpus = jobs[one].gpus
            if able := [name for name in free if free[name] - kept.get(name, 0) >= gpus]:
                name = min(able, key=lambda name: free[name])
                free[name] -= gpus
                waiting.remove(one)
                starts[one], running[one] = now_s, name
                heapq.heappush(events, (now_s + jobs[one].takes(kinds[name], gpus), one, "ends"))
                continue
            found = [
                (_free_at(gpus, free[name], name, running, starts, jobs), name) for name in sorted(free.keys() - kept)
            ]
            if found and min(found)[0] < math.inf:
                kept[min(found)[1]] = gpus
    return starts, ends


def _free_at(
    gpus: int, free: int, name: str, running: dict[int, str], starts: Sequence[float], jobs: Sequence[StreamJob]
) -> float:
    """Return when a node has so many free GPUs, by the time limits of its jobs."""
    for at in sorted((at for at, node in running.items() if node == name), key=lambda at: starts[at]):
        free += jobs[at].gpus
        if free >= gpus:
            return starts[at] + LIMIT_S
    return math.inf


if __name__ == "__main__":
    main()
