"""A simulated cluster of shards and its network: messages are late, come twice, overtake and outlive their sender."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from copter.runtime.clock import CLOCK
from copter.runtime.errors import CopterError, SnapshotError
from copter.storage.disk import DISK
from copter_distributed.messages.traffic import Traffic
from copter_distributed.messages.turns import Order
from copter_distributed.shards.shard import Shard
from copter_distributed.shards.transport import LATE, LOST, ShardOptions
from tests.faults.sim_disk import DiskOf, SimDisk
from tests.faults.sim_loop import Killed, SimLoop, SimProcess

Message = tuple[int, str, tuple[Any, ...], Order]
WITH_A_DEADLINE = 0.05  # of calls with a deadline, those that are not heard in time
TWICE = 0.02  # of messages, those that come again some time later


class Host:
    """One shard's process; it is started again where it died, as an actor is."""

    def __init__(self, number: int, options: ShardOptions) -> None:
        self.number, self.options = number, options
        self.process: SimProcess | None = None
        self.view: DiskOf | None = None
        self.shard: Shard | None = None
        self.dies_after = -1  # calls; the process is killed when the last of them is done


class Cluster:
    """All shards' processes, the disk that all see, and the messages that are on their way.

    Parameters
    ----------
    random : Random
    disk : SimDisk
    loop : SimLoop
    clock
    counts : Counter
    """

    def __init__(self, random: Random, disk: SimDisk, loop: SimLoop, clock: Any, counts: Counter[str]) -> None:
        self.random, self.disk, self.loop, self.clock, self.counts = random, disk, loop, clock, counts
        self.hosts: dict[int, Host] = {}
        self.on_their_way: list[tuple[int, Message]] = []  # (how many more calls they take, message)

    def process(self, name: str) -> tuple[SimProcess, DiskOf]:
        """A process, and its disk."""
        process = SimProcess(name)
        view = DiskOf(self.disk, process, self.loop)
        process.context.run(DISK.set, view)
        process.context.run(CLOCK.set, self.clock)
        return process, view

    def start(self, number: int, options: ShardOptions) -> None:
        """Start a shard's process unless it runs."""
        self.hosts.setdefault(number, Host(number, options))
        self.begin(self.hosts[number])

    def stop(self, number: int) -> None:
        """End one for good."""
        self.kill(self.hosts.pop(number))

    def begin(self, host: Host) -> bool:
        """Whether a shard runs; where it does not, it is started, which may fail."""
        if host.shard is not None:
            return True
        host.process, host.view = process, view = self.process(f"shard {host.number}")
        if self.random.random() < 0.03:
            view.dies_in = self.random.randrange(20)
        try:
            host.shard = process.context.run(Shard, host.number, *host.options.arguments())
        except (Killed, SnapshotError, OSError) as error:
            if not isinstance(error, Killed) and not (self.disk.full or self.disk.failing):
                raise
            self.counts["shards that did not start"] += 1
            self.kill(host)
            return False
        view.dies_in = -1
        self.counts["shards started"] += 1
        return True

    def kill(self, host: Host) -> None:
        """As kill -9 does."""
        if host.process is not None and host.view is not None:
            host.process.dead = True
            host.view.end()
        host.process = host.view = host.shard = None
        host.dies_after = -1

    def do(self, message: Message) -> Any:
        """A shard gets a message: its answer, or LOST."""
        number, method, arguments, order = message
        host = self.hosts.get(number)
        if host is None or not self.begin(host) or host.process is None or host.shard is None:
            return LOST
        try:
            answer = host.process.context.run(host.shard.invoke, method, arguments, order)
        except Killed:
            self.counts["shards killed inside a disk call"] += 1
            self.kill(host)
            return LOST
        if host.dies_after >= 0:
            host.dies_after -= 1
            if host.dies_after < 0:
                self.counts["shards killed before they answered"] += 1
                self.kill(host)
                return LOST
        return answer

    def send(self, message: Message) -> Any:
        """A message whose answer is waited for; others may come before it, and it may come again."""
        self.arrive()
        if self.random.random() < TWICE:
            self.counts["messages that came twice"] += 1
            self.later(message)
        return self.do(message)

    def later(self, message: Message) -> None:
        """A message comes some calls later."""
        self.on_their_way.append((self.random.randrange(40), message))

    def arrive(self) -> None:
        """What is on its way comes nearer; nobody hears its answers."""
        due = [message for left, message in self.on_their_way if left == 0]
        self.on_their_way = [(left - 1, message) for left, message in self.on_their_way if left]
        for message in due:
            answer = self.do(message)
            if answer is not LOST and isinstance(answer[1], CopterError):
                self.counts["messages that came late and were refused"] += 1
            else:
                self.counts["messages that came late and were done"] += 1


class SimTransport:
    """One coordinator's way to the shards.

    Attributes
    ----------
    dies_in : int
        Messages until the coordinator is killed, some of which were sent already; -1 for never.
    """

    def __init__(self, cluster: Cluster, process: SimProcess) -> None:
        self.cluster, self.process = cluster, process
        self.traffic = Traffic()
        self.dies_in = -1

    def reserve(self, numbers: Sequence[int]) -> None:
        """Nothing to set aside."""

    def release(self) -> None:
        """Nothing was."""

    def start(self, number: int, options: ShardOptions) -> None:
        """Start a shard where it does not run."""
        self.cluster.start(number, options)

    def stop(self, number: int) -> None:
        """End a shard for good."""
        self.cluster.stop(number)

    def call(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], order: Order, seconds: float | None = None
    ) -> dict[int, Any]:
        """Messages go out at once; they come in any order of the shards."""
        cluster, random = self.cluster, self.cluster.random
        found: dict[int, Any] = {}
        messages = [(number, method, given, order) for number, given in arguments.items()]
        random.shuffle(messages)
        for at, message in enumerate(messages):
            self.traffic.messages += 2
            if self.dies_in >= 0:
                self.dies_in -= 1
                if self.dies_in < 0:
                    for left in messages[at:]:  # they were sent, and reach their shards or not
                        if random.random() < 0.7:
                            cluster.counts["messages that outlived their coordinator"] += 1
                            cluster.later(left)
                    raise Killed
            if seconds is not None and seconds < 1e9 and random.random() < WITH_A_DEADLINE:
                cluster.counts["answers that were late"] += 1
                cluster.later(message)
                found[message[0]] = LATE
            else:
                found[message[0]] = cluster.send(message)
        return {number: found[number] for number in arguments}
