"""Load on ``copter serve``: acknowledged deltas a second and the latency of deltas and plan fetches while rounds run.

    python benchmarks/serve_load.py [--gpus 10000] [--jobs 4000] [--rate 1000] [--seconds 30] [--sync always]

Starts a service on a free port, makes a cluster of seven GPU types, loads it with jobs, and then sends one delta after
the other at the given rate, whether earlier ones are answered or not: a delta's latency counts from the moment at which
it was due. A quarter adds a job, a quarter removes one, the rest brings measured throughputs and weights. Plans are
fetched whole all the while. Requests are made before the clock starts. Service, scheduler and clients share the
machine, and the clients ask for short turns as the service does: elsewhere they would have processors of their own.
Told are the processor time of each, which other work on the machine does not change, how long the service and the
scheduler waited for a processor, what other processes used and what the host took away, which say what such work did
to the latencies; and how late the clients were to send. At the end the service is killed (kill -9) and started again:
how long until it has the cluster back and answers.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

try:
    from uvloop import run
except ImportError:
    from asyncio import run
from copter_frontends.vocabulary.named_clusters import SCALED_GPUS_PER_NODE, SCALED_TYPES
from copter_serve.service.turns import short_turns

ROOT = Path(__file__).resolve().parents[1]
SIZES = (1, 2, 4, 8, 16, 32)
CONNECTIONS = 32
FETCHERS = 2
FETCH_EVERY_S = 0.05
TICKS = os.sysconf("SC_CLK_TCK")


class Client:
    """One kept connection, one request at a time."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, document: Any = None) -> tuple[int, bytes]:
        """(status, body)."""
        return await self.send(message(method, path, document))

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """(status, body) of a request."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        reader, writer = self.streams
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", answer).group(1))  # type: ignore[union-attr]
        return int(answer[9:12]), await reader.readexactly(length)


def message(method: str, path: str, document: Any = None) -> bytes:
    """A request."""
    body = b"" if document is None else json.dumps(document).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Load:
    """What is sent."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.alive: list[str] = []
        self.count = 0

    def job(self) -> dict[str, Any]:
        """A job with a table of throughputs: some types, some sizes."""
        self.count += 1
        kinds = self.rng.choice(len(SCALED_TYPES), size=3, replace=False)
        most = int(self.rng.integers(1, len(SIZES) + 1))
        scaling = self.rng.uniform(0.6, 0.98)
        table = {
            SCALED_TYPES[k]: {str(size): float(self.rng.uniform(1, 4) * size**scaling) for size in SIZES[:most]}
            for k in kinds.tolist()
        }
        return {"id": f"job-{self.count}", "weight": float(self.rng.uniform(0.5, 2.0)), "throughputs": table}

    def delta(self) -> dict[str, Any]:
        """The next delta."""
        what = self.rng.random()
        if what < 0.25 or len(self.alive) < 10:
            job = self.job()
            self.alive.append(job["id"])
            return {"add_jobs": [job]}
        at = int(self.rng.integers(len(self.alive)))
        if what < 0.5:
            self.alive[at], self.alive[-1] = self.alive[-1], self.alive[at]
            return {"remove_jobs": [self.alive.pop()]}
        name = self.alive[at]
        if what < 0.9:
            kind = SCALED_TYPES[int(self.rng.integers(len(SCALED_TYPES)))]
            return {"throughputs": {name: {kind: {"1": float(self.rng.uniform(1, 4))}}}}
        return {"change_jobs": [{"id": name, "weight": float(self.rng.uniform(0.5, 2.0))}]}


async def measure(port: int, asked: argparse.Namespace, service: int) -> dict[str, Any]:
    """Load the service, and say how it did."""
    load, first = Load(0), Client(port)
    nodes = asked.gpus // SCALED_GPUS_PER_NODE
    kinds = {
        kind: {"nodes": nodes // 7 + (k < nodes % 7), "gpus_per_node": SCALED_GPUS_PER_NODE}
        for k, kind in enumerate(SCALED_TYPES)
    }
    status, told = await first.ask(
        "PUT", "/v1/clusters/load", {"types": kinds, "react_s": asked.react, "round_s": 60.0}
    )
    assert status == 201, told
    jobs = [load.job() for _ in range(asked.jobs)]
    load.alive = [job["id"] for job in jobs]
    for at in range(0, len(jobs), 500):
        status, told = await first.ask("POST", "/v1/clusters/load/deltas", {"add_jobs": jobs[at : at + 500]})
        assert status == 200, told
    sequence, header = json.loads(told)["sequence"], {"sequence": 0}
    while header["sequence"] < sequence:
        await asyncio.sleep(0.2)
        header = json.loads((await first.ask("GET", "/v1/clusters/load/plan"))[1])
    versions, sizes, fetches, latencies = [header["version"]], [0], [], []
    rounds: dict[int, float] = {}
    idle: asyncio.Queue[Client] = asyncio.Queue()
    connected = [Client(port) for _ in range(CONNECTIONS)]
    for each in connected:
        idle.put_nowait(each)
    requests = [
        message("POST", "/v1/clusters/load/deltas", load.delta()) for _ in range(int(asked.rate * asked.seconds) + 1)
    ]
    await asyncio.gather(*(client.ask("GET", "/healthz") for client in connected))
    gc.collect()
    gc.freeze()
    gc.disable()  # a pause of the client's is none of the service's
    before, waited, stolen, used = processor_times(service), waiting_times(service), stolen_time(), used_times()
    own, begun = time.process_time(), time.perf_counter()
    refused: list[bytes] = []
    late: list[float] = []

    async def one(due: float, request: bytes) -> None:
        late.append(time.perf_counter() - due)
        client = await idle.get()
        status, told = await client.send(request)
        if status != 200:
            refused.append(told)
        latencies.append(time.perf_counter() - due)
        idle.put_nowait(client)

    async def fetch(client: Client) -> None:
        while time.perf_counter() - begun < asked.seconds:
            started = time.perf_counter()
            status, body = await client.ask("GET", "/v1/clusters/load/plan")
            fetches.append(time.perf_counter() - started)
            assert status == 200
            sizes.append(len(body))
            version = int(re.search(rb'"version":(\d+)', body[:200]).group(1))  # type: ignore[union-attr]
            if version != versions[-1]:
                versions.append(version)
                rounds[version] = float(re.search(rb'"round_s":([\d.e-]+)', body).group(1))  # type: ignore[union-attr]
            await asyncio.sleep(FETCH_EVERY_S)

    fetchers = [asyncio.create_task(fetch(Client(port))) for _ in range(FETCHERS)]
    tasks, sent = set(), 0
    while (now := time.perf_counter()) - begun < asked.seconds:
        while sent < (now - begun) * asked.rate:
            due = begun + sent / asked.rate
            task = asyncio.create_task(one(due, requests[sent]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await asyncio.sleep(0.001)
    if tasks:
        await asyncio.wait(tasks)
    await asyncio.gather(*fetchers)
    wall = time.perf_counter() - begun
    own = time.process_time() - own
    after, waited_after, used_after = processor_times(service), waiting_times(service), used_times()
    at, fetched = np.array(latencies), np.array(fetches)
    made = [rounds[version] for version in sorted(rounds)]
    return {
        "gpus": asked.gpus,
        "jobs": len(load.alive),
        "sync": asked.sync,
        "acknowledged_per_s": (len(at) - len(refused)) / wall,
        "refused": len(refused),
        "delta_ms": quantiles(at),
        "sent_late_ms": quantiles(np.array(late)),
        "fetch_ms": quantiles(fetched),
        "fetches_per_s": len(fetched) / wall,
        "plan_kib": max(sizes) / 1024,
        "rounds": versions[-1] - versions[0],
        "round_ms": quantiles(np.array(made)) if made else None,
        "processor_us_per_delta": 1e6 * (after[0] - before[0]) / max(len(at), 1),
        "processor_share": {
            "service": (after[0] - before[0]) / wall,
            "scheduler": (after[1] - before[1]) / wall,
            "clients": own / wall,
            "others": (used_after[0] - used[0] - (after[0] - before[0]) - own) / wall,
            "others_of_low_priority": (used_after[1] - used[1] - (after[1] - before[1])) / wall,
        },
        "journal": journal_writes((await first.ask("GET", "/metrics"))[1].decode()),
        "waited_for_a_processor_share": {
            "service": (waited_after[0] - waited[0]) / wall,
            "scheduler": (waited_after[1] - waited[1]) / wall,
        },
        "processors_taken_by_the_host": (stolen_time() - stolen) / wall,
        "load_average": os.getloadavg()[0],
    }


def processor_times(service: int) -> tuple[float, float]:
    """Seconds of the service, and of its children."""

    def seconds(pid: int) -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    children = Path(f"/proc/{service}/task/{service}/children").read_text().split()
    return seconds(service), sum(seconds(int(pid)) for pid in children)


def waiting_times(service: int) -> tuple[float, float]:
    """Seconds for which the service's event loop, and its children, were ready to run and another process ran."""

    def seconds(pid: int) -> float:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9

    children = Path(f"/proc/{service}/task/{service}/children").read_text().split()
    return seconds(service), sum(seconds(int(pid)) for pid in children)


def used_times() -> tuple[float, float]:
    """Seconds of all processors that were used at an ordinary priority, or in the system; and at a lower one."""
    told = [int(each) / TICKS for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return told[0] + told[2], told[1]


def stolen_time() -> float:
    """Processor seconds that the host of a virtual machine has given to others."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / TICKS


def journal_writes(metrics: str) -> dict[str, float]:
    """How many deltas a write of the journal took together, and how long it took, from the service's metrics."""

    def value(name: str) -> float:
        return float(re.search(rf"^copter_journal_{name} (\S+)$", metrics, re.M).group(1))  # type: ignore[union-attr]

    writes = value("write_seconds_count")
    return {
        "records_a_write": value("records_total") / writes,
        "mean_ms": 1e3 * value("write_seconds_sum") / writes,
        "above_20_ms": 1.0 - value(r'write_seconds_bucket\{le="0\.02"\}') / writes,
    }


def quantiles(seconds: Any) -> dict[str, float]:
    """Median, 99th percentile and maximum, in milliseconds."""
    found = 1e3 * np.quantile(seconds, [0.5, 0.9, 0.99, 1.0])
    return dict(zip(("p50", "p90", "p99", "max"), [round(float(each), 2) for each in found], strict=True))


def started(folder: str, sync: str) -> tuple[subprocess.Popen[bytes], int, float]:
    """(process, port, seconds until it listened) of a service on a folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "frontends")])}
    command = [sys.executable, "-m", "copter_frontends.cli", "serve", "--data", folder, "--port", "0", "--sync", sync]
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    found = re.search(r":(\d+)/", line)
    if found is None:
        raise SystemExit(line + process.stderr.read().decode())
    return process, int(found.group(1)), time.perf_counter() - began


async def recovery(port: int, service: int, wall: float) -> dict[str, float]:
    """After kill -9: how long until the service answered, and what it used until then, the imports with it."""
    began = time.perf_counter()
    status, told = await Client(port).ask("GET", "/v1/clusters/load/plan")
    assert status == 200, told
    own, _ = processor_times(service)
    return {"seconds": wall + time.perf_counter() - began, "processor_seconds": own}


def main() -> None:
    """Start the service, load it, stop it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=4_000)
    parser.add_argument("--rate", type=float, default=1_000.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--react", type=float, default=1.0)
    parser.add_argument("--sync", choices=["always", "never"], default="always")
    asked = parser.parse_args()
    short_turns()
    with tempfile.TemporaryDirectory() as folder:
        process, port, _ = started(folder, asked.sync)
        try:
            result = run(measure(port, asked, process.pid))
            process.kill()
            process.wait(60)
            process, port, wall = started(folder, asked.sync)
            result["recovery"] = run(recovery(port, process.pid, wall))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
