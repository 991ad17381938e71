"""A drop-in replacement of AdaptDL's and Sia's policies: ``optimize(jobs, nodes, base_allocations, node_template)``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from math import ceil
from typing import Any, Protocol

from copter.runtime.errors import InvalidDataError
from copter_frontends.vocabulary import Allocation, Cluster, GpuType, Job, Node
from copter_serve.allocation import AllocationPolicy

GPU = "nvidia.com/gpu"


class JobInfo(Protocol):
    """A job as AdaptDL describes it (``adaptdl_sched.policy.utils.JobInfo``)."""

    resources: Mapping[str, int]
    speedup_fn: Any
    max_replicas: int | Mapping[str, int]
    min_replicas: int | Mapping[str, int]
    preemptible: bool


class NodeInfo(Protocol):
    """A node as AdaptDL describes it (``adaptdl_sched.policy.utils.NodeInfo``)."""

    resources: Mapping[str, int]
    preemptible: bool


class AdaptDLPolicy:
    """Allocates GPUs by the sum of the jobs' speed-ups, in AdaptDL's calling convention.

    Use it in AdaptDL's allocator instead of ``PolluxPolicy``, or in the allocator of Sia's AdaptDL instead of
    ``MIPPolicy``; for Sia's simulator see :class:`.SiaSimulatorPolicy`. The linear program and its state are kept
    between calls.

    A job's ``speedup_fn`` is a function (nodes, replicas) -> speed-up or, as in Sia, one function per GPU type; its
    numbers of replicas may also be given by type. If functions by type have Sia's ``get_goodput``, goodputs are used,
    because their speed-ups are relative to one GPU of the same type and so do not compare types.

    Parameters
    ----------
    gpu : str
        Name of the resource that counts GPUs.
    type_of : callable (node key, NodeInfo) -> str, optional
        Function that returns a node's GPU type, which is a key of ``speedup_fn`` if that is a mapping, as in Sia. By
        default all nodes have one type.
    restart_penalty : float
        See :class:`.AllocationPolicy`.
    """

    def __init__(
        self,
        gpu: str = GPU,
        type_of: Callable[[Hashable, NodeInfo], str] | None = None,
        restart_penalty: float = 0.1,
    ) -> None:
        self.gpu, self._type_of, self._penalty = gpu, type_of or _one_type, restart_penalty
        self._policy: AllocationPolicy | None = None
        self._shape: object = None
        self._told: dict[str, object] = {}
        self._calls = 0

    def allocate_job(self, job_info: JobInfo, nodes: Mapping[Hashable, NodeInfo]) -> list[Hashable]:
        """Return the first node with room for a new job's fewest replicas, as a list; [] if there is none."""
        wanted = _fewest(job_info)
        for key, node in sorted(nodes.items(), key=lambda item: (item[1].preemptible, str(item[0]))):
            if _most_replicas(job_info, node) >= wanted:
                return [key] * wanted
        return []

    def optimize(
        self,
        jobs: Mapping[Hashable, JobInfo],
        nodes: Mapping[Hashable, NodeInfo],
        base_allocations: Mapping[Hashable, Sequence[Hashable]],
        node_template: NodeInfo,
    ) -> tuple[dict[Hashable, list[Hashable]], int]:
        """Decide a round.

        Parameters
        ----------
        jobs : mapping of job key to JobInfo
        nodes : mapping of node key to NodeInfo
        base_allocations : mapping of job key to list of node key
            Present allocations, with a node for each replica.
        node_template : NodeInfo
            A node that could be added.

        Returns
        -------
        allocations : dict of job key to list of node key
            For every job, a node for each replica.
        desired_nodes : int
            If jobs wait: the present nodes plus the template nodes that the waiting jobs need at least. Otherwise the
            nodes in use, so that AdaptDL returns the others.
        """
        named = {f"{key!r}": key for key in nodes if nodes[key].resources.get(self.gpu, 0) > 0}
        ids = {f"{key!r}": key for key in jobs}
        policy = self._follow_nodes({name: nodes[key] for name, key in named.items()}, named)
        if policy is None:
            return {key: [] for key in jobs}, self._desired(jobs, list(jobs), nodes, set(), node_template)
        for name in [name for name in self._told if name not in ids]:
            policy.remove_job(name)
            del self._told[name]
        for name, key in ids.items():
            self._follow_job(policy, name, jobs[key], base_allocations.get(key, ()), nodes)
        self._calls += 1
        plan = policy.plan(float(self._calls))
        found: dict[Hashable, list[Hashable]] = {key: [] for key in jobs}
        for name, given in plan.allocations.items():
            each = jobs[ids[name]].resources[self.gpu]
            found[ids[name]] = [named[node] for node, gpus in given.nodes for _ in range(gpus // each)]
        self._keep_other_limits(jobs, nodes, found)
        used = {node for held in found.values() for node in held}
        return found, self._desired(jobs, [key for key, held in found.items() if not held], nodes, used, node_template)

    # Inside -------------------------------------------------------------------------------------------------------

    def _follow_nodes(self, nodes: Mapping[str, NodeInfo], keys: Mapping[str, Hashable]) -> AllocationPolicy | None:
        """Return a policy for these nodes, or None without nodes; a GPU type is a name with a number of GPUs per
        node.
        """
        kinds = {}
        for name, node in nodes.items():
            gpus = int(node.resources[self.gpu])
            kinds[name] = (f"{self._type_of(keys[name], node)}/{gpus}", gpus)
        if not kinds:
            self._policy = None
            return None
        shape = frozenset(kinds.values())
        if self._policy is None or not shape <= self._shape:  # type: ignore[operator]
            cluster = Cluster({kind: GpuType(kind, gpus) for kind, gpus in sorted(shape)})
            cluster.nodes = {name: Node(name, *kinds[name]) for name in sorted(kinds)}
            self._policy, self._shape = AllocationPolicy(cluster, restart_penalty=self._penalty), shape
            self._told = {}
            return self._policy
        policy = self._policy
        there = policy.cluster.nodes.items()
        for old in [old for name, old in there if kinds.get(name) != (old.gpu_type, old.gpus)]:
            for job_id in [j for j, pin in policy.pins.items() if any(each == old.id for each, _ in pin.nodes)]:
                policy.pin(job_id, None)
            policy.remove_resources(old.gpu_type, old.gpus, [old.id])
        for name, (kind, gpus) in kinds.items():
            if name not in policy.cluster.nodes:
                policy.add_resources(kind, gpus, [name])
        return policy

    def _follow_job(
        self,
        policy: AllocationPolicy,
        name: str,
        job: JobInfo,
        base: Sequence[Hashable],
        nodes: Mapping[Hashable, NodeInfo],
    ) -> None:
        """Pass a job's speed-ups and current allocation to the policy."""
        each = int(job.resources.get(self.gpu, 0))
        if each < 1:
            raise InvalidDataError(f"job {name}: a replica has {each} of {self.gpu!r}, must be 1 or more")
        held = self._allocation(policy, each, [node for node in base if node in nodes])
        table = self._rates(policy, job, each, held)
        pinned = held is not None and not job.preemptible
        if name not in self._told:
            if not table:
                return  # no present node can run the job
            policy.add_job(Job(name, "adaptdl", preemptible=job.preemptible), table)
        elif not table:
            policy.remove_job(name)
            del self._told[name]
            return
        elif self._told[name] != table:
            policy.pin(name, None)
            policy.update_job(name, rates=table)
        self._told[name] = table
        policy.pin(name, None)
        policy.hold(name, held)
        if pinned:
            policy.pin(name, held)

    def _rates(
        self, policy: AllocationPolicy, job: JobInfo, each: int, held: Allocation | None
    ) -> dict[str, dict[int, float]]:
        """Return speed-ups by type and GPUs: powers of two within a node, whole nodes, and the job's current number."""
        table: dict[str, dict[int, float]] = {}
        for kind in policy.cluster.types.values():
            speedup = self._speedup(job, kind.name)
            there = len(policy.cluster.nodes_of(kind.name))
            within = kind.gpus_per_node // each
            if speedup is None or not within or not there:
                continue
            counts = {2**k for k in range(within.bit_length())} & set(range(1, within + 1))
            if kind.gpus_per_node % each == 0:
                counts |= {within * n for n in range(1, there + 1)}
            if held is not None and held.gpu_type == kind.name:
                counts.add(held.gpus // each)
            name = kind.name.rpartition("/")[0]
            least, most = max(_by_type(job.min_replicas, name, 0), 1), _by_type(job.max_replicas, name, 0)
            rates = {
                replicas * each: float(speedup(ceil(replicas / within), replicas))
                for replicas in sorted(counts)
                if least <= replicas <= most or (held is not None and replicas * each == held.gpus)
            }
            rates = {gpus: rate for gpus, rate in rates.items() if rate > 0}
            if rates:
                table[kind.name] = rates
        return table

    @staticmethod
    def _speedup(job: JobInfo, kind: str) -> Callable[[int, int], float] | None:
        """Return a type's function (nodes, replicas) -> speed; Sia's jobs have one per type, which returns goodput."""
        function = job.speedup_fn
        if isinstance(function, Mapping):
            function = function.get(kind.rpartition("/")[0])
            return getattr(function, "get_goodput", function)
        return function  # type: ignore[no-any-return]

    @staticmethod
    def _allocation(policy: AllocationPolicy, each: int, base: Sequence[Hashable]) -> Allocation | None:
        """Return a job's current allocation; None for no GPUs, or for nodes of several types, which the policy
        never assigns.
        """
        counts = Counter(f"{node!r}" for node in base)
        kinds = {policy.cluster.nodes[name].gpu_type for name in counts if name in policy.cluster.nodes}
        if len(kinds) != 1 or any(name not in policy.cluster.nodes for name in counts):
            return None
        shares = tuple(sorted((name, each * replicas) for name, replicas in counts.items()))
        if any(gpus > policy.cluster.nodes[name].gpus for name, gpus in shares):
            return None
        return Allocation(kinds.pop(), sum(gpus for _, gpus in shares), shares)

    def _keep_other_limits(
        self,
        jobs: Mapping[Hashable, JobInfo],
        nodes: Mapping[Hashable, NodeInfo],
        found: dict[Hashable, list[Hashable]],
    ) -> None:
        """Remove replicas that exceed a node's other resources (pods, memory); pinned jobs are served first."""
        left = {key: dict(node.resources) for key, node in nodes.items()}
        for key in sorted(found, key=lambda key: jobs[key].preemptible):
            wanted: dict[Hashable, Counter[str]] = {}
            for node in found[key]:
                wanted.setdefault(node, Counter()).update(dict(jobs[key].resources))
            if any(left[node].get(name, 0) < units for node, need in wanted.items() for name, units in need.items()):
                found[key] = []
                continue
            for node, need in wanted.items():
                for name, units in need.items():
                    left[node][name] -= units

    def _desired(
        self,
        jobs: Mapping[Hashable, JobInfo],
        waiting: Sequence[Hashable],
        nodes: Mapping[Hashable, NodeInfo],
        used: Set[Hashable],
        template: NodeInfo,
    ) -> int:
        """Return the number of nodes in use; if jobs wait, all nodes plus the template nodes that these jobs need."""
        gpus = int(template.resources.get(self.gpu, 0))
        need = sum(int(jobs[key].resources.get(self.gpu, 0)) * _fewest(jobs[key]) for key in waiting)
        return max(len(nodes) + ceil(need / gpus) if need and gpus else len(used), 1)


def _one_type(key: Hashable, node: NodeInfo) -> str:
    return "gpu"


def _by_type(replicas: int | Mapping[str, int], name: str, otherwise: int) -> int:
    """Return the number of replicas on a type."""
    return int(replicas.get(name, otherwise)) if isinstance(replicas, Mapping) else int(replicas)


def _fewest(job: JobInfo) -> int:
    """Return the fewest replicas a job may have on any type, at least one."""
    least = job.min_replicas
    return max(min(least.values(), default=1) if isinstance(least, Mapping) else least, 1)


def _most_replicas(job: JobInfo, node: NodeInfo) -> int:
    """Return how many replicas of a job fit on an empty node."""
    return min((node.resources.get(name, 0) // units for name, units in job.resources.items() if units > 0), default=0)
