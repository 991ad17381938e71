# ruff: noqa: E501  (a situation is a line)
"""Records documents of a real Slurm in many situations, with what it started next.

``python -m tests.slurm.record [--root FOLDER] [SITUATION ...]`` writes ``recorded/RELEASE/SITUATION/``:

- ``before_squeue.json``, ``before_sinfo.json``: what ``squeue --json`` and ``sinfo --json`` print while Slurm is kept from
  starting anything, so that jobs wait that could start;
- ``started.json``: each job that Slurm started once it was let go, with its nodes, and the reason of each that still waits;
- ``after_squeue.json``, ``after_sinfo.json``: the documents then. Nothing in them can start: the scheduler and its backfill
  have looked at every job;
- ``before_jobs.txt``, ``before_nodes.txt``, ``before_partitions.txt``, ``before_reservations.txt``: the same as
  ``scontrol show`` prints it, which has fields that JSON lacks in old releases;
- ``rest_*.json``: answers of slurmrestd (situation "types" only, as they are made by the same plugin).

Host name, system and folders of the machine that recorded are replaced.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.slurm.fake_cluster import TWO_KINDS, FakeCluster, NoCluster

HERE = Path(__file__).with_name("recorded")


@dataclass(frozen=True)
class Situation:
    """Jobs that run, jobs that wait, and what else is done before the documents are taken."""

    run: tuple[str, ...]
    wait: tuple[str, ...]
    then: Callable[[FakeCluster, list[str], list[str]], None] | None = None
    partitions: str = ""
    extra: str = ""
    nodes: str = TWO_KINDS


def _do(*commands: str) -> Callable[[FakeCluster, list[str], list[str]], None]:
    """Return a step that runs commands, with r0, r1, ... for running and w0, w1, ... for waiting jobs."""

    def step(cluster: FakeCluster, running: list[str], waiting: list[str]) -> None:
        names = {f"r{at}": job for at, job in enumerate(running)} | {f"w{at}": job for at, job in enumerate(waiting)}
        for command in commands:
            if command.startswith("sleep "):
                time.sleep(float(command.split()[1]))
                continue
            cluster.run(*re.sub(r"\b[rw]\d+\b", lambda found: names[found[0]], command).split())

    return step


A100, T4 = "--gres=gpu:a100:4 -n1", "--gres=gpu:t4:2 -n1"
SITUATIONS = {
    "types": Situation((A100, A100), ("--gres=gpu:a100:4 -n1", "-C a100 -n1 --gres=gpu:1", "--gres=gpu:t4:1 -n1", "--gres=gpu:1 -n1", "-G t4:2 -n1", "-n1")),
    "features": Situation(("--gres=gpu:a100:4 -n1 -w n1",), ("-C a100&fast -n1 --gres=gpu:2", "-C t4|a100 -n1 --gres=gpu:4", "-C slow -n1 --gres=gpu:1", "-C [a100|t4] -N2 -n2", "-C fast -N2 -n2", "-C fast*1&slow*1 -N2 -n2")),
    "bad_constraints": Situation((), ("-C fast -n1", "-C slow -n1 --gres=gpu:1", "-n1 --gres=gpu:a100:1"),
        _do("scontrol update NodeName=n1,n2 ActiveFeatures=a100 AvailableFeatures=a100")),
    "required_nodes": Situation(("-w n1 -n1 --gres=gpu:a100:4", "-w t1 -n1 --gres=gpu:t4:1"), ("-w n1 -n1 --gres=gpu:1", "-w t1 -n1 --gres=gpu:1", "-w t1,t2 -N2 -n2 --gres=gpu:1", "-x n2,t1,t2 -n1 --gres=gpu:1", "-x n1 -n1 --gres=gpu:2", "-w n2 -n1 --gres=gpu:4")),
    "exclusive": Situation(("--exclusive -n1 -w n1", "-n1 -w n2"), ("--gres=gpu:a100:4 -n1", "--gres=gpu:a100:1 -n1", "--exclusive -n1 -w n2", "--exclusive -n1", "--exclusive -N2 -n2 --gres=gpu:t4:2", "-n1 -w n1", "--exclusive=user -n1 --gres=gpu:1")),
    "suspended": Situation((A100 + " -w n1", T4 + " -w t1", "-n4 -w t2"), ("--gres=gpu:a100:4 -n1 -w n1", "--gres=gpu:t4:2 -n1 -w t1", "-n1 -w n1", "-n4 -w t2", "-n1 --gres=gpu:a100:2"), _do("scontrol suspend r0", "scontrol suspend r1", "scontrol suspend r2")),
    "node_states": Situation(("-w n1 -n1 --gres=gpu:a100:1",), ("--gres=gpu:a100:1 -n1", "--gres=gpu:t4:1 -n1", "-w n1 -n1", "-w t1 -n1", "-n1", "-N4 -n4", "-w n2,t2 -N2 -n2"), _do("scontrol update NodeName=n1 State=DRAIN Reason=fan", "scontrol update NodeName=n2 State=DOWN Reason=lost", "scontrol update NodeName=t1 State=DRAIN Reason=disk")),
    "node_lost": Situation((), ("--gres=gpu:a100:4 -n1 -w n1", "--gres=gpu:a100:4 -n1", "--gres=gpu:t4:1 -n1"), lambda cluster, running, waiting: _lose(cluster, "n1")),
    "node_future": Situation((), ("--gres=gpu:a100:4 -n1", "-n1 --gres=gpu:t4:2", "-n1 --gres=gpu:t4:2"), _do("scontrol update NodeName=n1 State=FAIL Reason=fan", "scontrol update NodeName=t1 State=FUTURE")),
    "arrays": Situation(("--array=0-5%2 -n1 --gres=gpu:a100:1",), ("--array=0-3%1 -n1 --gres=gpu:t4:1", "--array=1,3,5-9:2 -n1 --gres=gpu:a100:2", "--array=0-40 -n1 --gres=gpu:1"), None),
    "holds": Situation((T4,), ("-H -n1 --gres=gpu:1", "-n1 --gres=gpu:1", "-n1 --gres=gpu:1", "-n1 --gres=gpu:a100:1", "-n1 --gres=gpu:a100:1", "-n1 --priority=0"), _do("scontrol hold w1", "scontrol update JobId=w2 Priority=0", "scontrol requeuehold r0", "sleep 2")),
    "dependency": Situation((T4,), ("-n1 --dependency=afterok:1 --gres=gpu:1", "-n1 --dependency=singleton --gres=gpu:1", "-n1 -J other --dependency=singleton --gres=gpu:1", "-n1 --dependency=afternotok:1 --gres=gpu:1", "-n1 --dependency=after:1 --gres=gpu:1", "-n1 --gres=gpu:1"), None),
    "dependency_never": Situation((T4,), ("-n1 --dependency=afterok:1 --gres=gpu:1", "-n1 --gres=gpu:1"), _do("scancel r0", "sleep 2")),
    "begin": Situation((T4,), ("-n1 --begin=now+3600 --gres=gpu:1", "-n1 --begin=now+7200 --gres=gpu:1", "-n1 --gres=gpu:1", "-n1 --deadline=now+7200 -t 5 --gres=gpu:1"), _do("scontrol update JobId=w1 StartTime=now")),
    "node_full": Situation(("-w n1 -n1 --gres=gpu:a100:2", "-w n2 -n1 --gres=gpu:a100:2", "-w t1 -n1 --gres=gpu:t4:1", "-w t2 -n1 --gres=gpu:t4:1"), ("-N1 -n1 --gres=gpu:a100:4", "-N2 -n2 --gres=gpu:a100:3", "-N1 -n1 --gres=gpu:t4:2", "-N2 -n2 --gres=gpu:t4:1", "-N1 -n1 --gres=gpu:a100:3")),
    "gpus_per": Situation(("-w n1 -n1 --gres=gpu:a100:2", "-w n2 -n1 --gres=gpu:a100:2"), ("-G a100:4 -n2", "-G a100:3 -n2", "-n2 --gpus-per-task=1", "-N2 --gpus-per-node=a100:1", "-n4 --gpus-per-task=a100:1", "-G 2 -n1 --cpus-per-gpu=2", "-n1 -N1 -G 4")),
    "memory": Situation(("-w n1 -n1 --mem=7900", "-w t1 -n1 --mem=4000", "-w t2 -n1 --mem-per-cpu=2000"), ("-n1 --gres=gpu:a100:4 --mem=500 -w n1", "-n1 --gres=gpu:t4:1 --mem=2500", "-n1 --gres=gpu:t4:1 --mem-per-gpu=3000", "-n1 --gres=gpu:t4:1 --mem=1000", "-n1 --mem=0 -w n2", "-n2 -N1 --mem-per-cpu=3000", "-n1 --gres=gpu:a100:1 --mem=6000"), extra="DefMemPerCPU=1000"),
    "cpus": Situation(("-w n1 -n8", "-w t1 -n3", "-w t2 -n2 --cpus-per-task=2"), ("-n1 --gres=gpu:a100:4 -w n1", "-n2 -N1 --gres=gpu:t4:1", "-n1 --gres=gpu:t4:1", "-n1 -c8 --gres=gpu:a100:1", "-n1 -c2 --gres=gpu:1", "-n12 -N2")),
    "partitions": Situation(("-p gpu -n1 --gres=gpu:a100:4",), ("-p gpu -n1 --gres=gpu:a100:4", "-p shut -n1", "-p off -n1", "-p drained -n1 --gres=gpu:1", "-p gpu,small -n1 --gres=gpu:1", "-p small -N2 -n2", "-p small -n1 -t 30", "-p both -N4 -n4", "-p rootonly -n1", "-p one -N2 -n2", "-p short -n1 -t 10"),
        _do("scontrol update PartitionName=shut State=DOWN", "scontrol update PartitionName=off State=INACTIVE", "scontrol update PartitionName=drained State=DRAIN", "scontrol update PartitionName=one MaxNodes=1", "scontrol update PartitionName=short MaxTime=5"),
        partitions="PartitionName=gpu Nodes=n[1-2] Default=YES State=UP MaxTime=INFINITE\nPartitionName=small Nodes=t[1-2] State=UP MaxTime=60\nPartitionName=both Nodes=ALL State=UP PriorityTier=5\n" + "".join(f"PartitionName={name} Nodes=t[1-2] State=UP\n" for name in ("shut", "off", "drained", "rootonly", "one", "short"))),
    "reservations": Situation((T4 + " -w t1",), ("-n1 --gres=gpu:a100:4 --reservation=mine", "-n1 --gres=gpu:a100:4", "-n1 --gres=gpu:a100:4 -w n1", "-n1 --gres=gpu:t4:2 -w t2 -t 60", "-n1 --gres=gpu:t4:1 -w t2 -t 5", "-n1 --reservation=later", "-n1 --gres=gpu:a100:1 -w n2"), None),
    "licenses": Situation(("-n1 -L matlab:3",), ("-n1 -L matlab:2 --gres=gpu:1", "-n1 -L matlab:1 --gres=gpu:1", "-n1 -L idl:1 --gres=gpu:1", "-n1 --gres=gpu:1"), extra="Licenses=matlab:4,idl:1"),
    "shapes": Situation(("-w n1 -n1 --gres=gpu:a100:4",), ("-N2-4 -n4 --gres=gpu:2", "--contiguous -N2 -n2", "-N2 --ntasks-per-node=2 --gres=gpu:t4:1", "-N1 -n1 --gres=gpu:a100:4 --requeue", "-N3 -n3 --gres=gpu:2", "-N2 -n2 --gres=gpu:2", "-N1-2 -n10")),
    "untyped": Situation(("-n1 --gres=gpu:2", "-n1 --gres=gpu:2"), ("-n1 --gres=gpu:2", "-n1 --gres=gpu:4", "-N2 -n2 --gres=gpu:1", "-n1"), nodes="c[8-11] 4 4000 - 0 -\ng[1-2] 8 8000 any 4 big", extra=""),
    "cpu_only": Situation(("-n4 -N1", "-n3 -N1"), ("-n4 -N1", "-n1", "-N2 -n8", "-n40", "-N3 -n3"), nodes="node[8-11] 4 4000 - 0 -"),
    "het": Situation((A100,), ("-n1 --gres=gpu:a100:2 : -n1 --gres=gpu:t4:1", "-n1 --gres=gpu:a100:4 : -n1 --gres=gpu:a100:1", "-n1 --gres=gpu:t4:2")),
    "shards": Situation(("-n1 --gres=shard:3", "-n1 --gres=gpu:1 -w n1"), ("-n1 --gres=shard:4", "-n1 --gres=shard:8", "-n1 --gres=gpu:4", "-n1 --gres=gpu:3", "-n1 --gres=shard:2 -w n1"), nodes="n[1-2] 8 8000 a100 4 shards", extra="GresTypes=gpu,shard"),
    "oversubscribe": Situation(("-n8 -N1 -w n1 -s",), ("-n8 -N1 -s -w n1", "-n8 -N1 -w n1", "-n1 --gres=gpu:a100:4 -w n1", "-n8 -N1"), partitions="PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES:2 MaxTime=INFINITE"),
    "priorities": Situation((A100, A100), ("-n1 --gres=gpu:a100:4 -t 60", "-n1 --gres=gpu:t4:2 -t 60", "-N2 -n2 --gres=gpu:t4:2 -t 60", "-n1 --gres=gpu:t4:1 -t 5", "-n1 --nice=1000 --gres=gpu:t4:1 -t 1"), extra="PriorityType=priority/multifactor\nPriorityWeightJobSize=1000\nPriorityWeightAge=10\nPriorityFavorSmall=YES"),
    "backfill": Situation(("-n1 --gres=gpu:a100:4 -t 3 -w n1",), ("-N2 -n2 --gres=gpu:a100:4 -t 60", "-n1 --gres=gpu:a100:4 -t 2", "-n1 --gres=gpu:a100:4 -t 60", "-n1 --gres=gpu:t4:2 -t 60")),
    "finished": Situation((T4 + " -t 1",), ("-n1 --gres=gpu:a100:1", "-n1 --gres=gpu:t4:2"), _do("scancel r0", "sleep 3")),
    "empty": Situation((), ()),
}  # fmt: skip


def _lose(cluster: FakeCluster, node: str) -> None:
    cluster.down(node, kill=True)
    cluster.until(
        lambda: node not in cluster.run("sinfo", "-h", "-N", "-t", "idle,mixed,alloc", "-r", "-o", "%N").split(),
        f"{node} to be lost",
        90.0,
    )


def cleaned(text: str, cluster: FakeCluster) -> str:
    """Return a document without what is this machine's."""
    system = platform.uname()
    for old, new in (
        (str(cluster.state), "/var/lib/slurm"), (cluster.root or "/nowhere", ""), (f'"{system.node}"', '"host"'),
        (f"={system.node} ", "=host "), (system.release, "6.1.0"), (system.version.replace(" ", " "), "Debian"),
    ):  # fmt: skip
        text = text.replace(old, new)
    return re.sub(rf"\b{re.escape(system.node)}\b(?=[:.\"])", "host", text)


def record(name: str, case: Situation, root: str) -> Path:
    """Record one situation; return its folder."""
    lines = case.extra if "DefMem" in case.extra else f"DefMemPerCPU=100\n{case.extra}"
    more = {"CTLD": "-R"} | ({"NODE_TIMEOUT": "6"} if name == "node_lost" else {})
    with FakeCluster(case.nodes, case.partitions, lines, rest=name == "types", root=root, more=more) as cluster:
        if name == "shards":
            _shards(cluster)
        running = [cluster.submit("-t", "60", *options.split()) for options in case.run]
        singles = [job for job, options in zip(running, case.run, strict=True) if "--array" not in options]
        if running:
            cluster.running(*singles)
            time.sleep(1.5)
        if name == "reservations":
            for made in (
                "ReservationName=mine Nodes=n1 Users=root StartTime=now Duration=600",
                "ReservationName=later Nodes=t2 Users=root StartTime=now+20minutes Duration=600",
            ):
                cluster.run("scontrol", "create", "reservation", *made.split()[0:1], *made.split()[1:])
        cluster.freeze()
        waiting = []
        for options in case.wait:
            try:
                waiting.append(cluster.submit("-t", "10", *options.split()))
            except NoCluster as error:
                print(f"  {name}: {options!r} was refused: {str(error).splitlines()[0][-90:]}")
                waiting.append("")
        if case.then is not None:
            case.then(cluster, running, waiting)
        time.sleep(1.0)
        folder = HERE / cluster.version / name
        folder.mkdir(parents=True, exist_ok=True)
        _documents(cluster, folder, "before")
        if name == "types":
            _rest(cluster, folder)
        was = cluster.states()
        cluster.thaw()
        _settled(cluster)
        part = next(name[:-1] for name in cluster.run("sinfo", "-h", "-o", "%P").split() if name.endswith("*"))
        cluster.run("scontrol", "update", f"PartitionName={part}", "State=UP")  # the main scheduler then writes reasons
        _settled(cluster)
        _documents(cluster, folder, "after")
        now = cluster.states()
        begun = {
            job: nodes
            for job, (state, _, nodes) in now.items()
            if state != "PENDING" and was.get(job, ("PENDING",))[0] == "PENDING"
        }
        left = {job: reason for job, (state, reason, _) in now.items() if state == "PENDING"}
        asked = dict(zip(waiting, case.wait, strict=True))
        _write(folder / "started.json", {"started": begun, "waiting": left, "options": asked})
        return folder


def _settled(cluster: FakeCluster) -> None:
    """Wait until nothing has changed for 3 s: backfill looks every second."""
    seen, since = cluster.states(), time.monotonic()
    while time.monotonic() < since + 3.0:
        time.sleep(0.5)
        if (now := cluster.states()) != seen:
            seen, since = now, time.monotonic()


def _shards(cluster: FakeCluster) -> None:
    """Give each node four shards a GPU, which cluster.sh does not know of."""
    path = cluster.state / "slurm.conf"
    path.write_text(
        path.read_text().replace("Gres=gpu:a100:4", "Gres=gpu:a100:4,shard:16").replace("GresTypes=gpu\n", "")
    )
    plain = cluster.state / "gres.conf"
    plain.write_text(plain.read_text() + "".join(f"NodeName=n{at} Name=shard Count=16\n" for at in (1, 2)))
    names = ("slurmctld", "n1", "n2")
    cluster.down(*names)
    cluster.up(*names)
    cluster.until(lambda: set(cluster.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}, "nodes")


def _documents(cluster: FakeCluster, folder: Path, when: str) -> None:
    for command in ("squeue", "sinfo"):
        _write(folder / f"{when}_{command}.json", json.loads(cleaned(cluster.run(command, "--json"), cluster)))
    if when == "before":
        for what in ("job", "node", "partition", "reservation"):
            (folder / f"{when}_{what}s.txt").write_text(cleaned(cluster.run("scontrol", "show", what), cluster))
        if cluster.version >= "23.02":
            for what in ("job", "node", "partition", "reservation"):
                _write(
                    folder / f"{when}_{what}s.json",
                    json.loads(cleaned(cluster.run("scontrol", "show", what, "--json"), cluster)),
                )


def _rest(cluster: FakeCluster, folder: Path) -> None:
    api = {"22.05": "v0.0.38", "24.11": "v0.0.42"}.get(cluster.version, "v0.0.38")
    for what in ("jobs", "nodes", "partitions", "reservations", "ping"):
        request = urllib.request.Request(
            f"{cluster.address}/slurm/{api}/{what}",
            headers={"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": cluster.token()},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            _write(folder / f"rest_{what}.json", json.loads(cleaned(answer.read().decode(), cluster)))


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n")


def main(arguments: list[str] | None = None) -> None:
    """Record the situations that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--root", default="", help="folder with another release's packages")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args(arguments)
    for name in given.names or SITUATIONS:
        try:
            print(f"{name}: {record(name, SITUATIONS[name], given.root)}", flush=True)
        except NoCluster as error:
            print(f"{name}: not recorded: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
