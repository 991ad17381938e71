"""Shards as Ray actors. Only this file imports Ray, and no other module of copter imports this file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
    from ray.util.metrics import Counter, Gauge
    from ray.util.placement_group import get_placement_group, placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"shards over Ray need it: pip install ray ({error})", name="ray") from None

from copter.runtime.errors import SettingsError
from copter_distributed.messages.messages import Hello, Priced, size_of
from copter_distributed.messages.traffic import Traffic
from copter_distributed.messages.turns import Order
from copter_distributed.shards.shard import Shard
from copter_distributed.shards.transport import LATE, LOST, ShardOptions

LONGEST_S = 1e6  # seconds of one wait on Ray; a wait without a deadline is repeated
PLACEMENTS = ("SPREAD", "PACK", "STRICT_SPREAD", "STRICT_PACK")  # Ray's strategies for placing actors on machines


NAMESPACE = "copter"  # Ray namespace of the shards' actors


def connect(address: str) -> None:
    """Connect this process to a cluster if needed; raises SettingsError if none answers."""
    if ray.is_initialized():
        return
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="warning")
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SettingsError(
            f"no Ray cluster answers at {address!r}: start one by `ray start --head` ({reason})"
        ) from None


class ShardActor:
    """A shard in its own process; Ray restarts it from its directory after a crash."""

    def __init__(self, number: int, arguments: tuple[Any, ...]) -> None:
        self.shard = Shard(number, *arguments)
        tags = {"shard": str(number)}
        self.seconds = Gauge("copter_pass_seconds", "Time of the last pricing pass", tag_keys=("shard",))
        self.columns = Gauge("copter_columns", "Columns of the shard's requests", tag_keys=("shard",))
        self.memory = Gauge("copter_peak_memory_bytes", "Peak resident memory", tag_keys=("shard",))
        for gauge in (self.seconds, self.columns, self.memory):
            gauge.set_default_tags(tags)

    def invoke(self, method: str, arguments: tuple[Any, ...], order: Order) -> tuple[bool, Any, int]:
        """Call a method of the :class:`Shard`."""
        done, result, birth = self.shard.invoke(method, arguments, order)
        if isinstance(result, Priced):
            self.seconds.set(result.seconds)
            self.columns.set(float(self.shard.model.n_columns))
        elif isinstance(result, Hello):
            self.memory.set(float(result.memory))
        return done, result, birth


class RayTransport:
    """One named actor per shard, in a placement group over the cluster's nodes.

    Actors have names, by which a restarted coordinator finds those that still run.

    Parameters
    ----------
    address : str
        Address of a cluster; "auto" finds the one that runs here, "local" starts one here. A process that is already
        connected stays with its cluster.
    name : str
        Name of the session, unique on its cluster.
    processors : float, optional
        Processors that Ray reserves for each actor; by default one, or an equal share if the cluster has fewer
        processors than actors.
    detached : bool
        Whether actors outlive the process that started them, so that another coordinator can go on.
    placement : {"SPREAD", "PACK", "STRICT_SPREAD", "STRICT_PACK"}
        Ray's strategy for the placement group.
    patience_s : float
        Longest wait until the cluster has room for all actors.

    Attributes
    ----------
    traffic : Traffic

    Raises
    ------
    SettingsError
        If no cluster answers at the address, the placement is unknown, `processors` is not above zero, or (when they
        are started) the actors do not fit.
    """

    def __init__(
        self,
        address: str = "local",
        name: str = "copter",
        *,
        processors: float | None = None,
        detached: bool = False,
        placement: str = "SPREAD",
        patience_s: float = 60.0,
    ) -> None:
        if placement not in PLACEMENTS:
            raise SettingsError(f"placement is {placement!r}, must be one of {', '.join(PLACEMENTS)}")
        if processors is not None and not processors > 0.0:
            raise SettingsError(f"processors is {processors}, must be above zero")
        connect(address)
        self.traffic = Traffic()
        self._name, self._processors, self._detached, self._placement = name, processors, detached, placement
        self._patience_s = patience_s
        self._group: Any = None
        self._reserved: set[int] = set()
        self._actors: dict[int, Any] = {}
        self._messages = Counter("copter_messages", "Calls and replies of shards", tag_keys=("session",))
        self._bytes = Counter("copter_bytes", "Bytes of calls and replies of shards", tag_keys=("session",))
        for counter in (self._messages, self._bytes):
            counter.set_default_tags({"session": name})

    def actor(self, number: int) -> Any:
        """Return a shard's actor, for Ray's own tools."""
        return self._actors[number]

    def reserve(self, numbers: Sequence[int]) -> None:
        """Reserve processors for these shards in a placement group, or find the group of this name."""
        self._reserved = set(numbers)
        have = float(ray.cluster_resources().get("CPU", 0.0))
        if self._processors is None:
            self._processors = min(1.0, int(100.0 * have / max(len(numbers), 1)) / 100.0) or 0.01
        try:
            self._group = get_placement_group(self._name) if self._detached else None
        except ValueError:
            self._group = None
        if self._group is not None:
            return
        # otherwise the group ends with this process
        kept = {"name": self._name, "lifetime": "detached"} if self._detached else {}
        bundles: list[dict[str, float]] = [{"CPU": self._processors}] * len(numbers)
        self._group = placement_group(bundles, self._placement, **kept)
        if not self._group.wait(self._patience_s):
            self.release()
            free, nodes = float(ray.available_resources().get("CPU", 0.0)), len(ray.nodes())
            raise SettingsError(
                f"no room for {len(numbers)} actors of {self._processors:g} processors each, placed {self._placement}, "
                f"in {self._patience_s:g} s: the cluster has {have:g} on {nodes} nodes, {free:g} of them free; "
                "take fewer shards, fewer processors or another placement"
            )

    def release(self) -> None:
        """Remove the placement group and the actors in it."""
        if self._group is not None:
            remove_placement_group(self._group)
            self._group = None

    def start(self, number: int, options: ShardOptions) -> None:
        """Start an actor or find the one of this name; a later shard is placed outside the group."""
        actor_class: Any = ray.remote(ShardActor)
        placed = number in self._reserved and self._group is not None
        strategy = PlacementGroupSchedulingStrategy(self._group) if placed else "SPREAD"
        self._actors[number] = actor_class.options(
            name=f"{self._name}-{number}",
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached" if self._detached else None,
            max_restarts=-1 if options.directory is not None else 0,
            max_task_retries=0,
            num_cpus=self._processors,
            scheduling_strategy=strategy,
        ).remote(number, options.arguments())

    def stop(self, number: int) -> None:
        """End an actor for good; the last one removes the placement group."""
        ray.kill(self._actors.pop(number), no_restart=True)
        if not self._actors:
            self.release()

    def call(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], order: Order, seconds: float | None = None
    ) -> dict[int, Any]:
        """Call actors at the same time."""
        shared: dict[int, Any] = {}  # equal arguments are put into the object store once
        waiting = {}
        before = self.traffic.sent + self.traffic.received
        for number, given in arguments.items():
            if id(given) not in shared:
                shared[id(given)] = ray.put(given) if size_of(given) > 100_000 else given
            waiting[number] = self._actors[number].invoke.remote(method, shared[id(given)], order)
            self.traffic.messages += 2
            self.traffic.sent += size_of(given)
        limit = None if seconds is None or seconds > LONGEST_S else max(seconds, 0.0)
        if limit is not None:
            ready, _ = ray.wait(list(waiting.values()), num_returns=len(waiting), timeout=limit)
            in_time = set(ready)
        else:
            in_time = set(waiting.values())
        found = {number: self._result(task) if task in in_time else LATE for number, task in waiting.items()}
        for answer in found.values():
            self.traffic.received += size_of(answer)
        self._messages.inc(2.0 * len(waiting))
        self._bytes.inc(max(float(self.traffic.sent + self.traffic.received - before), 1.0))
        return found

    @staticmethod
    def _result(task: Any) -> Any:
        try:
            return ray.get(task)
        except RayTaskError:  # an internal error, not the caller's
            raise
        except (RayActorError, GetTimeoutError):
            return LOST
