"""The service, its journal and its schedulers on one simulated machine, with clients that do not give up."""

from __future__ import annotations

import logging
import sys
from asyncio import CancelledError, events
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from copter.runtime.clock import CLOCK
from copter.runtime.errors import SnapshotError
from copter.storage.disk import DISK
from copter_serve.service import cluster_service, delta_log
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.clusters import Clusters
from copter_serve.service.metrics import Metrics
from copter_serve.service.problems import Problem
from copter_serve.service.settings import ServeSettings
from copter_serve.service.worker_link import LAUNCH
from tests.faults.oracle import Broken, Oracle, require
from tests.faults.sim_clock import SimClock
from tests.faults.sim_disk import DiskOf, Folder, Node, SimDisk
from tests.faults.sim_loop import Killed, SimLoop, SimProcess
from tests.faults.sim_worker import SimWorker

TYPES = {"a": {"nodes": 2, "gpus_per_node": 2}, "t": {"nodes": 2, "gpus_per_node": 2}}
POLICIES = ("fifo", "tiresias", "srtf", "themis")
DATA = Path("/data")
FOREIGN = b"somebody's"


class ServiceWorld:
    """One machine, from one seed.

    Parameters
    ----------
    seed : int
    counts : Counter
        Of what was done and which faults were met; added to.
    astray : bool
        Whether requests also come twice, and so late that others overtake them or another process gets them.
    """

    def __init__(self, seed: int, counts: Counter[str], astray: bool = True) -> None:
        self.random, self.counts = Random(seed), counts
        self.network = Random(~seed) if astray else None  # of its own, so that seeds from before it replay
        self.loop = SimLoop(Random(self.random.random()))
        self.clock = SimClock(self.loop)
        self.disk = SimDisk(Random(self.random.random()))
        self.disk.counts = counts
        self.sync = "always" if self.random.random() < 0.8 else "never"
        self.policy = "allocation" if self.random.random() < 0.02 else self.random.choice(POLICIES)
        self.metrics = Metrics()
        self.oracle = Oracle(TYPES)
        self.second: str = "absent"  # whether a second cluster is there
        self.made = False  # whether the first has been acknowledged
        self.clusters: Clusters | None = None
        self.process: SimProcess | None = None
        self.view: DiskOf | None = None
        self.ids = 0
        self.flying: Counter[str] = Counter()  # attempts at a delta that are not answered
        self.trace = 0
        self.data = Folder()
        self.disk.root.names["data"] = self.disk.root.durable["data"] = self.data
        other = Folder()
        self.data.names["other"] = self.data.durable["other"] = other
        kept = Node()
        kept.cache, kept.durable = bytearray(FOREIGN), bytearray(FOREIGN)
        other.names["snapshot"] = other.durable["snapshot"] = kept

    # The machine --------------------------------------------------------------------------------------------------

    def settings(self) -> ServeSettings:
        """Of the service."""
        return ServeSettings(data=DATA, sync=self.sync, max_clusters=3)

    def new_process(self, name: str) -> tuple[SimProcess, DiskOf]:
        """A process of the service, and its disk."""
        process = SimProcess(name)
        view = DiskOf(self.disk, process, self.loop)

        async def launch(threads: int) -> SimWorker:
            return SimWorker(self.loop, self.clock, process)

        process.context.run(DISK.set, view)
        process.context.run(CLOCK.set, self.clock)
        process.context.run(LAUNCH.set, launch)
        return process, view

    def start(self) -> None:
        """Start the service; it may be killed while it starts."""
        self.process, self.view = process, view = self.new_process("service")
        if self.random.random() < 0.1:
            view.dies_in = self.random.randrange(60)
        self.counts["starts"] += 1
        try:
            self.clusters = process.context.run(Clusters, self.settings(), self.metrics)
        except Killed:
            self.end()
            return
        except SnapshotError as error:
            faulty = self.disk.full or self.disk.failing
            self.end()
            if not faulty:
                raise Broken(f"the service does not start: {error}") from error
            self.counts["starts refused by a broken disk"] += 1
            return
        self.loop.create_task(self.clusters.open(), context=process.context)
        self.loop.run_until(self.loop.at)
        if process.dead:
            self.end()
            return
        served = self.clusters.served
        require("main" in served or not self.made, "an acknowledged cluster is lost")
        require("x" in served or self.second != "there", "an acknowledged second cluster is lost")
        require("x" not in served or self.second != "absent", "a deleted cluster is back")
        self.second = "there" if "x" in served else "absent"
        if "main" in served:
            self.made = True
            self.oracle.recovered(served["main"])
            self.counts["recoveries judged"] += 1

    def end(self) -> None:
        """The service's process is gone, and its schedulers with it."""
        if self.process is not None and self.view is not None:
            if self.clusters is not None:
                for service in self.clusters.served.values():
                    worker = service.link._process
                    if isinstance(worker, SimWorker):
                        worker.process.dead = True
            self.process.dead = True
            self.view.end()
            self.loop.bury(self.process)
        self.clusters = self.process = self.view = None
        self.flying.clear()

    # Steps --------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One thing that clients or fate do; then the service goes on, and is judged."""
        if self.clusters is None:
            if self.random.random() < 0.5:
                self.disk.full = self.disk.failing = False
            self.start()
        else:
            chance = self.random.random()
            if chance < 0.05:
                self.fault()
            elif not self.made or chance < 0.055:
                self.call(self.make, "main" if not self.made else "x")
            elif chance < 0.06:
                self.call(self.delete)
            elif chance < 0.065:
                self.call(self.explain)
            elif chance < 0.12 and self.oracle.sent:
                self.call(self.submit, self.random.choice(list(self.oracle.sent)[-8:]))
            else:
                self.call(self.submit, self.new_delta())
        wait = self.random.random()
        self.loop.run_until(self.loop.at + (wait * 0.004 if wait < 0.9 else wait if wait < 0.99 else 70.0 * wait))
        self.judge()

    def judge(self) -> None:
        """Whether all promises hold."""
        if self.loop.lost:
            raise Broken(f"an error that nobody caught: {self.loop.lost[0]}")
        if self.process is not None and self.process.dead:
            self.end()
        if self.clusters is None:
            return
        service = self.clusters.served.get("main")
        if service is not None and not service._pending and not service._closed:
            log = service.log
            if log._group is None and not log._queue and not log._turning:
                self.oracle.settled(service)
                self.trace = hash((self.trace, service.state.sequence, service.book.version, service.book.edition))
        kept = self.data.names.get("other")
        require(isinstance(kept, Folder), "somebody's folder has gone")
        require(bytes(kept.names["snapshot"].cache) == FOREIGN, "somebody's file has gone")

    def call(self, request: Callable[..., Coroutine[Any, Any, None]], *given: str) -> None:
        """A request comes in after a while; whoever sent it may go away before it is answered."""
        if self.process is None:
            return
        context, random = self.process.context, self.random
        gone = random.random()

        def arrive() -> None:
            task = self.loop.create_task(request(*given))
            if gone < 0.03:
                self.counts["clients that went away"] += 1
                self.loop.call_later(random.expovariate(300.0), task.cancel)

        if gone > 0.98:
            self.counts["requests lost"] += 1
            return
        self.loop.call_later(random.expovariate(500.0), arrive, context=context)
        if self.network is not None and self.network.random() < 0.03:
            self.counts["requests that came again, seconds later"] += 1
            self.loop.call_later(self.network.expovariate(0.5), self.deliver, request, *given)

    def deliver(self, request: Callable[..., Coroutine[Any, Any, None]], *given: str) -> None:
        """A message reaches whatever process there is now; others sent after it have overtaken it."""
        if self.process is not None and not self.process.dead:
            self.counts["of these, done by whoever was there"] += 1
            self.loop.create_task(request(*given), context=self.process.context)

    # Requests -----------------------------------------------------------------------------------------------------

    async def submit(self, name: str) -> None:
        """Send a delta; what is answered is told to the oracle as it leaves the service."""
        clusters, oracle = self.clusters, self.oracle
        service = None if clusters is None else clusters.served.get("main")
        if service is None:
            return
        oracle.absent.discard(name)
        self.flying[name] += 1
        try:
            told = await service.submit({"id": name, **oracle.sent[name]})
        except CancelledError:
            self.flying[name] += 1  # its sender has gone; the attempt goes on
            raise
        except Problem as problem:
            alone = self.flying[name] == 1  # another attempt may be on its way to the disk
            if alone and name not in oracle.acknowledged and "may find" not in problem.detail:
                oracle.absent.add(name)
            require(problem.status in (409, 422, 503), "an answer of another kind", problem.status, problem.detail)
            require(problem.status == 503 or name not in oracle.acknowledged, "a repeated delta is refused", name)
            self.counts[f"deltas answered {problem.status}"] += 1
        else:
            oracle.answered(name, told["sequence"])
            self.counts["deltas acknowledged again" if told.get("repeated") else "deltas acknowledged"] += 1
        finally:
            self.flying[name] -= 1

    async def make(self, name: str) -> None:
        """Make a cluster."""
        if self.clusters is None:
            return
        record = ClusterRecord.read({"types": TYPES, "policy": self.policy, "react_s": 0.5, "round_s": 30.0})
        if name == "x" and self.second == "absent":
            self.second = "unknown"
        try:
            await self.clusters.make(name, record)
        except Problem as problem:
            require(problem.status in (409, 503), "an answer of another kind", problem.status, problem.detail)
            return
        if name == "x":
            self.second = "there"
        else:
            self.made = True
        self.counts["clusters made"] += 1

    async def delete(self) -> None:
        """Delete the second cluster."""
        if self.clusters is None or "x" not in self.clusters.served:
            return
        self.second = "unknown"
        try:
            await self.clusters.delete("x")
        except Problem:
            return
        self.second = "absent"
        self.counts["clusters deleted"] += 1

    async def explain(self) -> None:
        """Ask why."""
        service = None if self.clusters is None else self.clusters.served.get("main")
        if service is not None and service.state.jobs:
            try:
                await service.link.ask({"job": next(iter(service.state.jobs))}, 5.0)
            except Problem as problem:
                require(problem.status in (404, 503), "an answer of another kind", problem.status, problem.detail)

    def new_delta(self) -> str:
        """A delta that mostly fits what the service has; its id."""
        random, told = self.random, {}
        service = None if self.clusters is None else self.clusters.served.get("main")
        jobs = [] if service is None else list(service.state.jobs)
        nodes = [] if service is None else list(service.state.type_of_node)
        for _ in range(1 if random.random() < 0.7 else 2):
            kind = random.randrange(10)
            if kind < 4:
                job = {"id": f"j{random.randrange(12)}", "weight": random.randrange(1, 9) / 2.0, "work": 100.0}
                told["add_jobs"] = [{**job, "gpus": random.randrange(1, 4)}]
            elif kind < 6 and jobs:
                told["remove_jobs"] = [random.choice(jobs)]
            elif kind == 6 and jobs:
                told["change_jobs"] = [{"id": random.choice(jobs), "progress": random.randrange(100) / 100.0}]
            elif kind == 7 and jobs and nodes:
                node = random.choice(nodes)
                pin = {"gpu_type": service.state.type_of_node[node], "nodes": {node: 1}} if service else None
                told["pins"] = {random.choice(jobs): pin if random.random() < 0.6 else None}
            elif kind == 8:
                told["set_capacity"] = {random.choice("at"): 2 * random.randrange(0, 5)}
            elif nodes and random.random() < 0.5:
                told["remove_nodes"] = [random.choice(nodes)]
            else:
                told["add_nodes"] = {random.choice("at"): [f"{random.choice('at')}-{random.randrange(9)}"]}
        self.ids += 1
        self.oracle.sent[f"d{self.ids}"] = told
        return f"d{self.ids}"

    # Faults -------------------------------------------------------------------------------------------------------

    def fault(self) -> None:
        """Something goes wrong."""
        kind = self.random.choice(
            ("kill", "kill", "power", "power", "call", "full", "failing", "worker", "worker", "jump", "second", "stop")
        )
        service = None if self.clusters is None else self.clusters.served.get("main")
        if kind == "kill":
            self.counts["service killed"] += 1
            self.end()
        elif kind == "power" and self.sync == "always":
            self.counts["power lost"] += 1
            self.end()
            self.disk.lose_power()
        elif kind == "call" and self.view is not None:
            self.view.dies_in = self.random.randrange(12)
        elif kind == "full":
            self.counts["disk filled up"] += 1
            self.disk.full = True
            self.loop.call_later(self.random.expovariate(20.0), setattr, self.disk, "full", False)
        elif kind == "failing":
            self.counts["disk failed"] += 1
            self.disk.failing = True
            self.loop.call_later(self.random.expovariate(20.0), setattr, self.disk, "failing", False)
        elif kind == "worker" and service is not None and service.link._process is not None:
            self.counts["schedulers killed"] += 1
            service.link._process.kill()
        elif kind == "jump":
            self.counts["clock jumped"] += 1
            self.clock.offset += self.random.choice((-1.0, 1.0)) * 10.0 ** self.random.uniform(-2.0, 7.0)
        elif kind == "second":
            self.second_start()
        elif kind == "stop" and self.clusters is not None and self.process is not None:
            self.counts["service stopped"] += 1
            closing = self.loop.create_task(self.clusters.close(), context=self.process.context)
            self.loop.run_until(self.loop.at + 20.0)
            if not self.process.dead:
                require(closing.done(), "the service does not stop")
                closing.result()
            self.end()

    def second_start(self) -> None:
        """Another service starts on the same folder."""
        process, view = self.new_process("second service")
        self.counts["second starts"] += 1
        try:
            process.context.run(Clusters, self.settings(), self.metrics)
        except SnapshotError as error:
            require("in use" in str(error), "the second start is refused for another reason", str(error))
        else:
            raise Broken("two services run on one folder")
        finally:
            process.dead = True
            view.end()


def quiet(lost: Any) -> None:
    """What objects of dead processes raise when they go."""
    if not isinstance(lost.exc_value, Killed | RuntimeError):
        sys.__unraisablehook__(lost)


def run_world(seed: int, steps: int, counts: Counter[str], astray: bool = True) -> int:
    """A world from a seed for so many steps; a digest of what happened. Broken where a promise does."""
    before = delta_log.RESERVE, delta_log.ROTATE_BYTES, cluster_service.ROTATE_BYTES, logging.root.manager.disable
    delta_log.RESERVE, cluster_service.ROTATE_BYTES = 2048, 6000  # small files, so that all happens often
    logging.disable(logging.CRITICAL)
    world = ServiceWorld(seed, counts, astray)
    events._set_running_loop(world.loop)
    hook, sys.unraisablehook = sys.unraisablehook, quiet
    try:
        for _ in range(steps):
            world.step()
        world.end()
    finally:
        events._set_running_loop(None)
        delta_log.RESERVE, delta_log.ROTATE_BYTES, cluster_service.ROTATE_BYTES = before[:3]
        logging.disable(before[3])
        sys.unraisablehook = hook
    counts["events"] += world.loop.events
    return world.trace
