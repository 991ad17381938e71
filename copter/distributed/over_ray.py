"""Shards as Ray actors. This file alone imports Ray; nothing of copter's imports it by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
    from ray.util.metrics import Gauge
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"shards over Ray need it: pip install 'copter-lp[ray]' ({error})", name="ray") from None

from copter.distributed.messages import Hello, Priced, size_of
from copter.distributed.shard import Shard
from copter.distributed.traffic import Traffic
from copter.distributed.transport import LATE, LOST, ShardOptions

LONGEST_S = 1e6  # that a wait without a deadline is cut into


class ShardActor:
    """A shard in a process of its own; Ray starts it again where it dies, from its directory."""

    def __init__(self, number: int, arguments: tuple[Any, ...]) -> None:
        self.shard = Shard(number, *arguments)
        tags = {"shard": str(number)}
        self.seconds = Gauge("copter_pass_seconds", "Time of the last pricing pass", tag_keys=("shard",))
        self.columns = Gauge("copter_columns", "Columns of the shard's requests", tag_keys=("shard",))
        self.memory = Gauge("copter_peak_memory_bytes", "Peak resident memory", tag_keys=("shard",))
        for gauge in (self.seconds, self.columns, self.memory):
            gauge.set_default_tags(tags)

    def invoke(self, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any, int]:
        """Do a call of :class:`Shard`."""
        done, result, birth = self.shard.invoke(method, arguments)
        if isinstance(result, Priced):
            self.seconds.set(result.seconds)
            self.columns.set(float(self.shard.model.n_columns))
        elif isinstance(result, Hello):
            self.memory.set(float(result.memory))
        return done, result, birth


class RayTransport:
    """One named actor for every shard, spread over the cluster's nodes.

    Actors are named, so that a coordinator that starts again finds those that still run.

    Parameters
    ----------
    address : str
        Of a cluster; "local" starts one here, unless this process is connected already.
    name : str
        Of the session: two sessions on one cluster need two.
    processors : float
        That Ray sets aside for each actor.
    detached : bool
        Whether actors outlive the process that started them, so that another coordinator can go on.
    placement : {"SPREAD", "DEFAULT"}
        Ray's scheduling strategy.

    Attributes
    ----------
    traffic : Traffic
    """

    def __init__(
        self,
        address: str = "local",
        name: str = "copter",
        *,
        processors: float = 1.0,
        detached: bool = False,
        placement: str = "SPREAD",
    ) -> None:
        if not ray.is_initialized():
            ray.init(address=address, namespace="copter", log_to_driver=False, logging_level="warning")
        self.traffic = Traffic()
        self._name, self._processors, self._detached, self._placement = name, processors, detached, placement
        self._actors: dict[int, Any] = {}

    def actor(self, number: int) -> Any:
        """The actor of a shard, for Ray's own tools."""
        return self._actors[number]

    def start(self, number: int, options: ShardOptions) -> None:
        """Start an actor, or find the one of this name."""
        actor_class: Any = ray.remote(ShardActor)
        self._actors[number] = actor_class.options(
            name=f"{self._name}-{number}",
            namespace="copter",
            get_if_exists=True,
            lifetime="detached" if self._detached else None,
            max_restarts=-1 if options.directory is not None else 0,
            max_task_retries=0,
            num_cpus=self._processors,
            scheduling_strategy=self._placement,
        ).remote(number, options.arguments())

    def stop(self, number: int) -> None:
        """End an actor for good."""
        ray.kill(self._actors.pop(number), no_restart=True)

    def call(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], seconds: float | None = None
    ) -> dict[int, Any]:
        """Call actors at the same time."""
        shared: dict[int, Any] = {}  # the same arguments go into the object store once
        waiting = {}
        for number, given in arguments.items():
            if id(given) not in shared:
                shared[id(given)] = ray.put(given) if size_of(given) > 100_000 else given
            waiting[number] = self._actors[number].invoke.remote(method, shared[id(given)])
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
        return found

    @staticmethod
    def _result(task: Any) -> Any:
        try:
            return ray.get(task)
        except RayTaskError:  # an error of ours, not of the caller's
            raise
        except (RayActorError, GetTimeoutError):
            return LOST
