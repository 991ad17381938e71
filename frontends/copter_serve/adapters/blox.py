"""A drop-in replacement of Blox's scheduling policies: ``schedule(job_dict, node_info, gpu_df)``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from copter.runtime.errors import InvalidDataError
from copter_frontends.vocabulary import Allocation, Cluster, GpuType, Job, Node
from copter_serve.allocation import AllocationPolicy, Rates

NODE, TYPE, JOBS = "Node_ID", "GPU_type", "JOB_IDS"
ONE_TYPE = "gpu"  # type of every GPU if Blox's table of GPUs has no types


class BloxScheduler:
    """Orders jobs so that Blox's placement starts the jobs of copter's plan first.

    Blox's loop calls ``schedule(job_state, cluster_state)``, from which its decorator extracts ``active_jobs``,
    ``server_map`` and ``gpu_df``; both forms are accepted.

    Parameters
    ----------
    args : object, optional
        Argument that Blox passes to its policies; not used.
    rates_of : callable (job id, job dict) -> rates, optional
        Returns {GPU type: {GPUs: speed}}; by default the job's ``throughputs`` if it has them, otherwise the requested
        GPUs, equally fast on every type.
    weight_of : callable (job id, job dict) -> float, optional
        Returns the job's weight; by default 1.
    """

    def __init__(
        self,
        args: object = None,
        rates_of: Callable[[Hashable, Mapping[str, Any]], Rates | None] | None = None,
        weight_of: Callable[[Hashable, Mapping[str, Any]], float] | None = None,
    ) -> None:
        self.metric_to_track = ["per_iter_time", "attained_service"]
        self.default_metric_value = [0, 0]
        self._rates_of, self._weight_of = rates_of or _told_rates, weight_of or _equal_weight
        self._calls = 0

    def schedule(
        self, job_dict: Any, node_info: Any, gpu_df: Any = None, global_placement_policy: str | None = None
    ) -> dict[str, Any]:
        """Decide a round.

        Parameters
        ----------
        job_dict : mapping of job id to dict
            Jobs with ``num_GPUs``, ``submit_time``, ``is_running`` and so on; or Blox's job state.
        node_info : mapping
            Blox's servers; or its cluster state.
        gpu_df : pandas.DataFrame
            A row for each GPU, with ``Node_ID``, ``JOB_IDS`` and, if there are several types, ``GPU_type``.
        global_placement_policy : str, optional
            Accepted because Blox may pass it, but not used: Blox's placement chooses the nodes.

        Returns
        -------
        dict
            ``job_order``, a list of (job id, job dict): first the jobs of the plan, running ones before others; and
            ``run_all_jobs``, which is False.
        """
        if gpu_df is None:
            job_dict, gpu_df = job_dict.active_jobs, node_info.gpu_df
        policy = self._policy(gpu_df)
        ids = {f"{job_id!r}": job_id for job_id in job_dict}
        kinds = tuple(policy.cluster.types) if policy is not None else ()
        for name, job_id in ids.items():
            if policy is not None:
                self._add(policy, name, job_id, job_dict[job_id], kinds)
        chosen = set()
        if policy is not None:
            self._adopt(policy, gpu_df, ids)
            self._calls += 1
            chosen = {ids[name] for name in policy.plan(float(self._calls)).allocations}

        def rank(item: tuple[Hashable, Mapping[str, Any]]) -> tuple[bool, bool, float]:
            job_id, job = item
            return job_id not in chosen, not job.get("is_running", False), float(job.get("submit_time", 0.0))

        return {"job_order": sorted(job_dict.items(), key=rank), "run_all_jobs": False}

    # Inside -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _policy(gpu_df: Any) -> AllocationPolicy | None:
        """Return a policy for the frame's GPUs, or None without GPUs; a type is a name with a number of GPUs per
        node.
        """
        counts: dict[tuple[str, str], int] = {}
        for node, kind in zip(_column(gpu_df, NODE), _types(gpu_df), strict=True):
            key = (f"{node!r}", str(kind))
            counts[key] = counts.get(key, 0) + 1
        if not counts:
            return None
        cluster = Cluster()
        for (node, kind), gpus in counts.items():
            name = f"{kind}/{gpus}"
            cluster.types[name] = GpuType(name, gpus)
            cluster.nodes[f"{node}/{kind}"] = Node(f"{node}/{kind}", name, gpus)
        return AllocationPolicy(cluster)

    def _add(
        self, policy: AllocationPolicy, name: str, job_id: Hashable, job: Mapping[str, Any], kinds: tuple[str, ...]
    ) -> None:
        gpus = int(job.get("num_GPUs", 1))
        if gpus < 1:
            raise InvalidDataError(f"job {job_id!r}: num_GPUs is {gpus}, must be 1 or more")
        told = self._rates_of(job_id, job)
        table = {}
        for kind in kinds:
            row = {gpus: 1.0} if told is None else told.get(kind.rpartition("/")[0], {})
            usable = {count: rate for count, rate in row.items() if count == gpus and rate > 0}
            if usable:
                table[kind] = usable
        if table:
            policy.add_job(Job(name, "blox", requested_gpus=gpus), table, self._weight_of(job_id, job))

    @staticmethod
    def _adopt(policy: AllocationPolicy, gpu_df: Any, ids: Mapping[str, Hashable]) -> None:
        """Pass the running jobs' current allocations to the policy."""
        shares: dict[str, dict[tuple[str, str], int]] = {}
        columns = (_column(gpu_df, NODE), _types(gpu_df), _column(gpu_df, JOBS))
        for node, kind, job in zip(*columns, strict=True):
            name = next((each for each in (f"{job!r}", f"{_whole(job)!r}") if each in ids), None)
            if name is not None and name in policy.entries:
                key = (f"{node!r}/{kind}", str(kind))
                shares.setdefault(name, {})[key] = shares.get(name, {}).get(key, 0) + 1
        for name, held in shares.items():
            kinds = {policy.cluster.nodes[node].gpu_type for node, _ in held}
            if len(kinds) == 1:
                nodes = tuple(sorted((node, gpus) for (node, _), gpus in held.items()))
                policy.hold(name, Allocation(kinds.pop(), sum(held.values()), nodes))


def _column(frame: Any, name: str) -> list[Any]:
    try:
        return list(frame[name].tolist())
    except KeyError:
        raise InvalidDataError(f"gpu_df has no column {name!r}; Blox's frame of GPUs does") from None


def _types(frame: Any) -> list[Any]:
    """Return the GPU type of each row."""
    return _column(frame, TYPE) if TYPE in frame.columns else [ONE_TYPE] * len(frame)


def _whole(value: Any) -> Any:
    """Return a job id as an int; a pandas column with missing values has made it a float."""
    return int(value) if isinstance(value, float) and value == value and value == int(value) else value


def _told_rates(job_id: Hashable, job: Mapping[str, Any]) -> Rates | None:
    told = job.get("throughputs")
    return None if told is None else {kind: {int(job["num_GPUs"]): float(rate)} for kind, rate in told.items()}


def _equal_weight(job_id: Hashable, job: Mapping[str, Any]) -> float:
    return 1.0
