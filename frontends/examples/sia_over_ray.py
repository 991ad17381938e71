"""Sia's rounds over Ray actors, compared with the same rounds in one process: gap, messages, bytes, seconds.

    python frontends/examples/sia_over_ray.py --gpus 10000 --actors 2             # a Ray head of its own, here
    python frontends/examples/sia_over_ray.py --gpus 100000 --actors 4 --address auto   # after `ray start --head`
    python frontends/examples/sia_over_ray.py --gpus 10000 --actors 2 --local     # shards in this process, without Ray

There are seven GPU types with all configurations up to all nodes, and every job has its own goodput. Each round 1% of
the jobs leave, as many arrive, and the values of all running jobs change. Both sides get the same edits; the last
column is the difference of their optima. Both processor seconds (of the coordinator and all actors) and wall-clock
seconds are printed; on a busy machine the former say more.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import copter
import copter_distributed as distributed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TYPES, GPUS_PER_NODE = 7, 8
JOBS_PER_GPU = 0.14
CHURN = 0.01
WORTH = 1.1  # worth of a running job, from which the shortfall of its goodput is subtracted
AT_A_TIME = 200  # jobs added in one batch


@dataclass
class Round:
    """The edits of one round.

    Attributes
    ----------
    gone : list of int
    came : list of (int, ndarray)
        New jobs with their values.
    jobs : list of int
        All jobs after these edits.
    scale : ndarray
        Factor on each job's values in this round.
    """

    gone: list[int]
    came: list[tuple[int, Floats]]
    jobs: list[int]
    scale: Floats


@dataclass
class Figures:
    """Measurements of a round on one side."""

    objective: float
    gap: float
    passes: int
    edit_s: float
    processor_s: float
    clock_s: float
    traffic: distributed.Traffic = field(default_factory=distributed.Traffic)
    edit_bytes: int = 0


class Workload:
    """Rounds from a seed, the same in every iteration.

    Parameters
    ----------
    gpus, seed : int
    """

    def __init__(self, gpus: int, seed: int) -> None:
        self.seed, self.jobs = seed, round(JOBS_PER_GPU * gpus)
        nodes = np.full(TYPES, gpus // GPUS_PER_NODE // TYPES)
        nodes[: gpus // GPUS_PER_NODE - nodes.sum()] += 1
        sizes = [np.concatenate((2.0 ** np.arange(3), GPUS_PER_NODE * np.arange(1.0, n + 1))) for n in nodes]
        self.counts = nodes * float(GPUS_PER_NODE)
        self.size: Floats = np.concatenate(sizes)
        self.kind = np.repeat(np.arange(TYPES), [len(each) for each in sizes])

    def empty_model(self) -> copter.Model:
        """Return a model with the GPU types and the template of configurations."""
        model = copter.Model("max")
        for kind, count in enumerate(self.counts.tolist()):
            model.add_resource(kind, count)
        model.add_template({kind: np.where(self.kind == kind, self.size, 0.0) for kind in range(TYPES)})
        return model

    def values(self, rng: np.random.Generator) -> Floats:
        """Return a new job's shortfall in each configuration: goodput to the power of -1/2, relative to the least."""
        speed = np.log(rng.uniform(1.0, 10.0, TYPES))[self.kind]
        goodput = speed + rng.uniform(0.6, 0.95) * np.log(self.size) - np.log1p(self.size / 2.0 ** rng.uniform(2, 9))
        return np.asarray(np.exp(-0.5 * (goodput - goodput.min())))

    def rounds(self, count: int) -> Iterator[Round]:
        """Yield the rounds; the first one fills the cluster."""
        rng, jobs, following = np.random.default_rng(self.seed), [], 0
        for number in range(count):
            churn = max(1, round(CHURN * self.jobs)) if number else 0
            leaving = set(rng.choice(len(jobs), churn, replace=False).tolist()) if churn else set()
            gone = [job for at, job in enumerate(jobs) if at in leaving]
            new = list(range(following, following + (churn if number else self.jobs)))
            following += len(new)
            jobs = [job for at, job in enumerate(jobs) if at not in leaving] + new
            came = [(job, self.values(np.random.default_rng((self.seed, job)))) for job in new]
            yield Round(
                gone, came, list(jobs), 1.0 + 0.2 * np.random.default_rng((self.seed, number, 1)).random(len(jobs))
            )


def edit(session: Any, change: Round) -> None:
    """Apply a round's edits to either kind of session."""
    model = session.model
    template = model.templates[0]
    if change.gone:
        model.remove_requests(change.gone)
    for first in range(0, len(change.came), AT_A_TIME):
        part = change.came[first : first + AT_A_TIME]
        ids, values = [job for job, _ in part], [each for _, each in part]
        model.add_requests(ids, values, template=template, scale=-1.0, offset=WORTH, integer=True)
    model.rescale_costs(change.jobs, -change.scale, WORTH)


def run(session: Any, workload: Workload, rounds: int) -> list[Figures]:
    """Return the measurements of all rounds on one side."""
    figures = []
    for change in workload.rounds(rounds):
        before = getattr(session, "traffic", distributed.Traffic())
        begun = processor_time(session)
        edit(session, change)
        edits = getattr(session, "traffic", distributed.Traffic()) - before
        processor_s, started = processor_time(session), time.perf_counter()
        solution = session.solve()
        clock_s = time.perf_counter() - started
        traffic = getattr(session, "last_traffic", distributed.Traffic())
        figures.append(
            Figures(
                solution.objective, solution.gap, solution.pricing_passes, processor_s - begun,
                processor_time(session) - processor_s, clock_s, traffic, edits.sent + edits.received,
            )
        )  # fmt: skip
    return figures


def processor_time(session: Any) -> float:
    """Return the processor time so far of this process and all actors' processes."""
    actors = session.shards.values() if isinstance(session, distributed.Session) else ()
    own = time.process_time()
    if isinstance(session, distributed.Session) and isinstance(session.transport, distributed.LocalTransport):
        return own
    return own + sum(hello.processor_s for hello in actors)


def transport_of(arguments: argparse.Namespace) -> distributed.Transport:
    """Return a transport to actors over Ray, or to shards in this process."""
    if arguments.local:
        return distributed.LocalTransport()
    try:
        from copter_distributed.over_ray import RayTransport  # Ray is an optional extra
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error}; or run it with --local") from None
    try:
        return RayTransport(arguments.address)
    except copter.CopterError as error:
        raise SystemExit(str(error)) from None


def table(one: list[Figures], many: list[Figures]) -> None:
    """Return a table of both sides by round."""
    print(
        f"{'round':>5} {'passes':>6} {'gap':>8} {'messages':>8} {'kB out':>8} {'kB in':>8} {'kB edits':>9} "
        f"{'cpu s':>7} {'clock s':>7} | {'passes':>6} {'gap':>8} {'cpu s':>7} {'clock s':>7} | apart"
    )
    for number, (here, there) in enumerate(zip(one, many, strict=True)):
        traffic = there.traffic
        apart = abs(here.objective - there.objective) / abs(here.objective)
        print(
            f"{number:5d} {there.passes:6d} {there.gap:8.1e} {traffic.messages:8d} {traffic.sent / 1e3:8.1f} "
            f"{traffic.received / 1e3:8.1f} {there.edit_bytes / 1e3:9.1f} "
            f"{there.processor_s:7.3f} {there.clock_s:7.3f} | {here.passes:6d} {here.gap:8.1e} "
            f"{here.processor_s:7.3f} {here.clock_s:7.3f} | {apart:.1e}"
        )


def median_ratio(many: list[float], one: list[float]) -> float:
    """Return the ratio over the rounds after the first two, which are untypical: a cold start and its clean-up."""
    warm = slice(min(2, len(many) - 1), None)
    return float(np.median(many[warm]) / np.median(one[warm]))


def main() -> None:
    """Run both sides, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tolerance", type=float, default=1e-9, help="relative gap (default 1e-9)")
    parser.add_argument("--threads", type=int, default=1, help="of each actor's pass (default 1)")
    parser.add_argument("--address", default="local", help="of a Ray cluster; 'auto' finds the one that runs here")
    parser.add_argument("--local", action="store_true", help="shards in this process, without Ray")
    parser.add_argument("--directory", help="for snapshots and journals, seen by all actors")
    parser.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    arguments = parser.parse_args()
    if arguments.gpus < TYPES * GPUS_PER_NODE or min(arguments.actors, arguments.rounds, arguments.threads) < 1:
        parser.error(f"--gpus must be {TYPES * GPUS_PER_NODE} or more; --actors, --rounds and --threads 1 or more")
    workload = Workload(arguments.gpus, arguments.seed)
    settings = copter.Settings(tolerance=arguments.tolerance, threads=arguments.threads * arguments.actors)
    transport = transport_of(arguments)  # connect before the long part, as the address may be wrong
    one = run(copter.Session(workload.empty_model(), settings), workload, arguments.rounds)
    try:
        session = distributed.Session(
            workload.empty_model(), settings, shards=arguments.actors, transport=transport,
            threads=arguments.threads, directory=arguments.directory,
        )  # fmt: skip
    except copter.CopterError as error:
        raise SystemExit(str(error)) from None
    many = run(session, workload, arguments.rounds)
    shards = session.shards
    print(
        f"{arguments.gpus:,} GPUs, {workload.jobs:,} jobs, {session.model.n_columns:,} variables over "
        f"{arguments.actors} actors; left: over actors, right: one machine, {settings.threads} threads"
    )
    table(one, many)
    for number, hello in shards.items():
        print(f"actor {number}: {hello.columns:,} variables, peak {hello.memory / 1e6:,.0f} MB")
    ratio = median_ratio([each.processor_s for each in many], [each.processor_s for each in one])
    whole = median_ratio(
        [each.edit_s + each.processor_s for each in many], [each.edit_s + each.processor_s for each in one]
    )
    clock = median_ratio([each.clock_s for each in many], [each.clock_s for each in one])
    print(
        f"median warm solve over actors, of one machine's: {ratio:.2f} in processor time, {clock:.2f} on the clock; "
        f"with the edits {whole:.2f} in processor time"
    )
    if arguments.json:
        print(json.dumps({
            "gpus": arguments.gpus, "actors": arguments.actors, "variables": session.model.n_columns,
            "ratio": ratio, "clock_ratio": clock, "ratio_with_edits": whole,
            "apart": max(abs(a.objective - b.objective) / abs(a.objective) for a, b in zip(one, many, strict=True)),
            "gap": max(each.gap for each in many),
            "messages": [each.traffic.messages for each in many],
            "edit_bytes": [each.edit_bytes for each in many],
            "bytes": [each.traffic.sent + each.traffic.received for each in many],
            "peak_bytes": [hello.memory for hello in shards.values()],
        }))  # fmt: skip
    session.close()


if __name__ == "__main__":
    main()
