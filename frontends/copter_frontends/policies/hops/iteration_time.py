"""Time of a training iteration in seconds, computed from its parts (equations 1, 2, 4, 5; HP3, HP4)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal

from copter_frontends.policies.hops.data_loading import DataLoading, LoadingState
from copter_frontends.policies.hops.errors import ThroughputError

NOT_HIDDEN = 0.2  # share of the communication that does not overlap with the backward pass (HP3)
Pattern = Literal[1, 2]


@dataclass(frozen=True, slots=True)
class Links:
    """Bandwidths of a GPU type, in parameters per second.

    Attributes
    ----------
    within_server : float
        B_link.
    between_servers : float
        B_net.
    """

    within_server: float
    between_servers: float

    def __post_init__(self) -> None:
        for name in ("within_server", "between_servers"):
            if not getattr(self, name) > 0:
                raise ThroughputError(f"links: {name} is {getattr(self, name)}, must be > 0 parameters per second")

    def communication_s(self, parameters: float, gpus: int, nodes: int) -> float:
        """Return T_c, for a ring of GPUs in one server or over the network between servers (2)."""
        if nodes > 1:
            return parameters / self.between_servers
        return parameters / self.within_server * (gpus - 1) / gpus


@dataclass(frozen=True, slots=True)
class IterationTimes:
    """The parts of an iteration that a profiling run measures.

    Parameters
    ----------
    forward_s, backward_s, update_s : float
        T_f, T_b, T_u.
    loading : DataLoading
        T_d and T_w.
    parameters : float
        Number of the model's parameters.
    batch_per_gpu : float
        Samples of each GPU's batch, which does not depend on the number of GPUs.
    links : Links
    pattern : {1, 2}
        Pattern 1 overlaps the backward pass with data loading, pattern 2 does not.

    Raises
    ------
    ThroughputError
        If a time is negative or not finite, if forward and backward pass take no time, or if the batch is empty.
    """

    forward_s: float
    backward_s: float
    update_s: float
    loading: DataLoading
    parameters: float
    batch_per_gpu: float
    links: Links
    pattern: Pattern = 1

    def __post_init__(self) -> None:
        for name in ("forward_s", "backward_s", "update_s", "parameters"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise ThroughputError(f"iteration times: {name} is {value}, must be finite and >= 0")
        if not (isfinite(self.batch_per_gpu) and self.batch_per_gpu > 0 and self.forward_s + self.backward_s > 0):
            raise ThroughputError("iteration times: batch_per_gpu and forward_s + backward_s must be > 0")
        if self.pattern not in (1, 2):
            raise ThroughputError(f"iteration times: pattern is {self.pattern!r}, must be 1 or 2")

    def seconds(self, gpus: int, nodes: int) -> float:
        """Return E(T_iter), the expectation over cached and slow loads (1), (4)."""
        loading = self.loading
        total = 0.0
        for share, state in ((loading.cached_share, loading.cached), (1.0 - loading.cached_share, loading.slow)):
            if share > 0:
                total += share * self._seconds_in(state, gpus, nodes)
        return total

    def throughput(self, gpus: int, nodes: int) -> float:
        """Return samples per second of one GPU of a job with this many GPUs on this many servers (5)."""
        if not 1 <= nodes <= gpus:
            raise ThroughputError(f"{gpus} GPUs on {nodes} nodes: each node needs a GPU, and there must be one")
        return self.batch_per_gpu / self.seconds(gpus, nodes)

    def _seconds_in(self, state: LoadingState, gpus: int, nodes: int) -> float:
        communication = self.links.communication_s(self.parameters, gpus, nodes) if gpus > 1 else 0.0
        back = max(self.backward_s + NOT_HIDDEN * communication, communication)
        wait_s = state.wait_s if gpus > 1 else 0.0
        if self.pattern == 1:
            return state.mean_of_larger_s(back + self.update_s) + self.forward_s + wait_s
        return state.mean_s + back + self.update_s + self.forward_s + wait_s

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for the database."""
        return asdict(self)

    @classmethod
    def from_dict(cls, known: dict[str, Any]) -> IterationTimes:
        """Return times from the result of :meth:`to_dict`."""
        loading = known["loading"]
        states = {name: LoadingState(**loading[name]) for name in ("cached", "slow")}
        return cls(
            **{
                **known,
                "loading": DataLoading(**states, cached_share=loading["cached_share"]),
                "links": Links(**known["links"]),
            }
        )
