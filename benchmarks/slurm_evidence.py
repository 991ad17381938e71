"""Streams of short jobs on a real Slurm of fake nodes, by Slurm's schedulers and by copter, and the page of results.

    python benchmarks/slurm_evidence.py run [--kinds rigid,mixed,moldable] [--seeds 1,2,3] [--settings ...] [--jobs 200]
    python benchmarks/slurm_evidence.py page

`run` keeps each stream's figures beside the page of results as soon as it ends, and goes on where it was stopped;
`page` makes the page from them.
Slurm comes from packages: tests/slurm/cluster.sh install.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from slurm_streams import APPS, GPUS, KINDS, NODES, StreamJob, stream  # noqa: E402

from tests.slurm.fake_cluster import FakeCluster  # noqa: E402

DATA, PAGE = ROOT / "docs" / "results" / "slurm.json", ROOT / "docs" / "results" / "slurm.md"
SCHEDULER = (
    "SchedulerParameters=bf_interval=1,bf_continue,bf_resolution=1,bf_max_job_test=1000,default_queue_depth=1000,"
    "sched_interval=1,bf_window=60"
)
SMALL_FIRST = (
    "PriorityType=priority/multifactor\nPriorityWeightJobSize=100000\nPriorityFavorSmall=YES\nPriorityCalcPeriod=1"
)
SETTINGS = {
    "fifo": "Slurm: backfill, first come first served",
    "small": "Slurm: backfill, priority/multifactor with small jobs first",
    "fifo-a100": "Slurm: backfill, every user asks for `-C a100`",
    "copter": "copter slurm run",
}
LEASE_S = 120
LATEST_S = 900.0  # longest wall-clock time of a stream


def main(arguments: Sequence[str] | None = None) -> None:
    """Run streams, or make the page."""
    parser = argparse.ArgumentParser(description="Streams of short jobs on a real Slurm.")
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--again", action="store_true", help="Run streams that the file has already.")
    given = parser.parse_args(arguments)
    if given.what == "page":
        PAGE.write_text(page(json.loads(DATA.read_text())))
        return
    for seed in given.seeds.split(","):
        for kind in given.kinds.split(","):
            for setting in given.settings.split(","):
                key = (kind, int(seed), setting, given.jobs)
                if (setting != "fifo-a100" or kind == "mixed") and (given.again or not _is_kept(key)):
                    row = measured(*key)
                    print(json.dumps(row), flush=True)
                    _keep(row)


def _key(row: dict[str, Any]) -> tuple[str, int, str, int]:
    return row["kind"], row["seed"], row["setting"], row["jobs"]


def _kept() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(DATA.read_text()) if DATA.exists() else []
    return rows


def _is_kept(key: tuple[str, int, str, int]) -> bool:
    return any(_key(row) == key for row in _kept())


def _keep(row: dict[str, Any]) -> None:
    """Add a stream's figures to the file; runs beside each other wait for one another."""
    with Path(tempfile.gettempdir(), "copter-slurm-evidence.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = [each for each in _kept() if _key(each) != _key(row)] + [row]
        rows.sort(key=lambda each: (KINDS.index(each["kind"]), each["seed"], list(SETTINGS).index(each["setting"])))
        DATA.write_text("[\n" + ",\n".join(json.dumps(each, sort_keys=True) for each in rows) + "\n]\n")


def measured(kind: str, seed: int, setting: str, count: int) -> dict[str, Any]:
    """Run one stream; return its figures."""
    jobs = stream(kind, seed, count)
    extra = f"{SCHEDULER}\nDefMemPerCPU=100\n" + (SMALL_FIRST if setting == "small" else "")
    with FakeCluster(NODES[kind], extra=extra, rest=True, more={"MIN_JOB_AGE": "10"}) as cluster:
        out = cluster.folder / "out"
        out.mkdir()
        controller = _controller(cluster, kind) if setting == "copter" else None
        try:
            if controller is not None:
                cluster.until((cluster.folder / "alive").exists, "the controller's first step", 60.0)
            began = time.time() + 1.0
            submitted = []
            for at, job in enumerate(jobs):
                time.sleep(max(0.0, began + job.at_s - time.time()))
                submitted.append(time.time())
                cluster.submit(*_asks(job, kind, setting), script=_script(job, kind, out / str(at)))
            while len(list(out.glob("*.end"))) < count and time.time() < began + LATEST_S:
                time.sleep(0.3)
        finally:
            if controller is not None:
                controller.terminate()
                controller.wait(30)
        return _figures(kind, seed, setting, jobs, submitted, out)


def _asks(job: StreamJob, kind: str, setting: str) -> list[str]:
    # two CPUs a GPU, so that Slurm's job size, which counts CPUs, orders jobs by GPUs; moldable jobs need one each
    cpus = 1 if kind == "moldable" and setting == "copter" else 2 * job.gpus
    found = ["-N1", "-n1", f"-c{cpus}", f"--gres=gpu:{job.gpus}", "-t", "2", "--mem-per-cpu=10"]
    if setting == "fifo-a100":
        found += ["-C", "a100"]
    if setting == "copter":
        sizes = " sizes=1,2,4,8" if kind == "moldable" else ""
        found += [f"--begin=now+{LEASE_S}", f"--comment=copter: app={job.app}{sizes}"]
    return found


def _script(job: StreamJob, kind: str, out: Path) -> str:
    """Return a job that runs as long as its application would on the GPUs that it got."""
    cases = "".join(
        f"  {gpu}:{size}) s={job.takes(gpu, size):.3f} ;;\n" for gpu in job.seconds for size in (1, 2, 4, 8)
    )
    return f"""#!/bin/bash
b=$EPOCHREALTIME
case $SLURMD_NODENAME in n*) kind=a100 ;; *) kind=t4 ;; esac

case $kind:$SLURM_GPUS_ON_NODE in
{cases}esac
sleep $s
echo "$b $EPOCHREALTIME $kind $SLURM_GPUS_ON_NODE" >{out}.new && mv {out}.new {out}.end
"""


def _controller(cluster: FakeCluster, kind: str) -> subprocess.Popen[bytes]:
    profiles = cluster.folder / "profiles.yaml"
    lines = []
    for app, (seconds, fast, rate) in APPS.items():
        speeds = f", speed: {{a100: {fast}, t4: 1}}" if kind == "mixed" else ""
        lines.append(f"{app}: {{seconds: {seconds * (1.5 if kind == 'mixed' else 1.0)}, rate: {rate}{speeds}}}\n")
    profiles.write_text("".join(lines))
    log = (cluster.folder / "controller.log").open("wb")
    return subprocess.Popen(
        [sys.executable, "-m", "copter_frontends.cli", "slurm", "run", "--profiles", str(profiles), "--every", "0.25",
         "--lease", str(LEASE_S), "--give-up", "6", "--rest", cluster.address,
         "--alive", str(cluster.folder / "alive")],
        env={**cluster.env, "SLURM_JWT": cluster.token()}, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _figures(
    kind: str, seed: int, setting: str, jobs: Sequence[StreamJob], submitted: Sequence[float], out: Path
) -> dict[str, Any]:
    waits, ends, busy, large, runs = [], [], 0.0, [], []
    for at, job in enumerate(jobs):
        path = Path(f"{out / str(at)}.end")
        if path.exists():
            began, ended, _, gpus = path.read_text().split()
            wait = float(began) - submitted[at]
            waits.append(wait)
            ends.append(float(ended))
            runs.append(float(ended) - submitted[at])
            busy += int(gpus) * (float(ended) - float(began))
            if job.gpus == max(each.gpus for each in jobs):
                large.append(wait)
    makespan = max(ends) - submitted[0]
    return {
        "kind": kind, "seed": seed, "setting": setting, "jobs": len(jobs), "ended": len(waits),
        "wait_mean_s": round(sum(waits) / len(waits), 3), "wait_p95_s": round(sorted(waits)[int(0.95 * len(waits))], 3),
        "wait_max_s": round(max(waits), 3), "wait_large_s": round(sum(large) / len(large), 3),
        "completion_mean_s": round(sum(runs) / len(runs), 3), "makespan_s": round(makespan, 3),
        "utilisation": round(busy / GPUS / makespan, 4),
    }  # fmt: skip


HEAD = """# Real streams on Slurm

Written by `python benchmarks/slurm_evidence.py page`; `run` measures. Slurm {release} of fake nodes on one machine, 48
GPUs; jobs sleep as long as their application would run on the GPUs that they got. Slurm's settings: backfill every
second over all jobs, at a resolution of one second. copter knows each application's mean run time and speeds; single
runs differ by a quarter. The machine has two cores and was shared with other work, which delays starts: a stream's
schedulers ran at different times, on different days too, so compare them with that in mind.

How this differs from a real cluster: jobs last 15 seconds in the mean, so that the time from a decision to a start (0.5
to 2 s on a machine shared with others) counts for more than in hours; every time limit is two minutes, as Slurm takes
whole minutes only, so that backfill knows little of run times; jobs neither fail nor share a network.

| stream | seed | jobs | scheduler | {names} |
|---|---:|---:|---|{rule}|
"""
FIGURES = (
    "ended", "wait_mean_s", "wait_p95_s", "wait_max_s", "wait_large_s", "completion_mean_s", "makespan_s",
    "utilisation",
)  # fmt: skip


def page(rows: Sequence[dict[str, Any]]) -> str:
    """Return the page of all streams that were measured, and copter's figures over those of the best Slurm setting."""
    names = " | ".join(name.replace("_s", ", s").replace("_", " ") for name in FIGURES)
    lines = [HEAD.format(release="22.05", names=names, rule="---:|" * (len(FIGURES) - 1) + "---:").rstrip("\n")]
    for row in rows:
        cells = [
            row["kind"],
            row["seed"],
            row["jobs"],
            SETTINGS[row["setting"]],
            *(f"{row[name]:g}" for name in FIGURES),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [
        "",
        "copter's figures over those of the Slurm setting of least mean wait on the same stream; large jobs over "
        "those of",
        "first come, first served too, which treats them best. Bars: mean wait 0.7 (mixed) and 0.4 (moldable), "
        "large jobs",
        "1.1, makespan 1.0.",
        "",
        "| stream | seed | jobs | best setting | mean wait | completion | large jobs | large, over FIFO | makespan |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    missing = []
    for key in dict.fromkeys((row["kind"], row["seed"], row["jobs"]) for row in rows):
        same = {row["setting"]: row for row in rows if (row["kind"], row["seed"], row["jobs"]) == key}
        own = same.pop("copter", None)
        if own is None or "fifo" not in same:
            missing.append(f"{key[0]} {key[1]}")
            continue
        best = min(same.values(), key=lambda row: float(row["wait_mean_s"]))
        ratios = [own[name] / best[name] for name in ("wait_mean_s", "completion_mean_s", "wait_large_s")]
        ratios += [own["wait_large_s"] / same["fifo"]["wait_large_s"], own["makespan_s"] / best["makespan_s"]]
        told = " | ".join(f"{ratio:.2f}" for ratio in ratios)
        lines.append(f"| {key[0]} | {key[1]} | {key[2]} | {best['setting']} | {told} |")
    if missing:
        lines += ["", f"Not run under all schedulers: {', '.join(missing)}."]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
