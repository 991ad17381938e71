"""Nodes and jobs of Slurm's documents, as far as a controller needs them: from its commands, or from slurmrestd.

Old releases write plain numbers and strings, new ones objects and lists; both are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from copter_serve.views import ViewError
from copter_serve.views.slurm_text import expanded, number

GRES = re.compile(r"^(?:gres[/:])?gpu(?::([^:(=\d][^:(=]*|\d+g[^:(=]*))?(?:[:=](\d+))?(?:\(|$)")
UNUSABLE = ("DOWN", "DRAIN", "FAIL", "MAINT", "UNKNOWN", "POWER", "NOT_RESPONDING", "NO_RESPOND", "REBOOT", "INVALID")
RUNS = {"RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED"}  # states in which a job holds nodes
FREE_TO_START = {"", "None", "BeginTime", "Resources", "Priority"}  # reasons that a start by the controller ends
LONG_S = 365 * 86400.0  # time limit of a job without one


@dataclass(slots=True)
class NodeNow:
    """A node at one moment.

    Attributes
    ----------
    name : str
    has, free : dict of str to float
        Amounts by resource: "cpu", "mem" in MB, and each GPU type ("gpu" for GPUs without a type).
    features, partitions : frozenset of str
    usable : bool
        Whether Slurm may start jobs on it.
    """

    name: str
    has: dict[str, float]
    free: dict[str, float]
    features: frozenset[str]
    partitions: frozenset[str]
    usable: bool

    @property
    def gpu_types(self) -> list[str]:
        """The types of its GPUs."""
        return [name for name in self.has if name not in ("cpu", "mem")]


@dataclass(slots=True)
class JobNow:
    """A job at one moment; times are Unix seconds on the cluster's clock.

    Attributes
    ----------
    id, user, partition, comment, reason, qos, account, reservation : str
    state : str
        "PENDING", or a state in which it holds nodes.
    came_s, begins_s, started_s : float
        Submission, the time before which Slurm does not start it, and its start; 0 where there is none.
    limit_s : float
        Time limit.
    priority : float
    node_count, cpus : int
        Smallest number of nodes; CPUs in all.
    memory_mb : float
        A node's share.
    gpus : int
        GPUs a node.
    gpu_type : str
        Empty if any type will do.
    features : str
        The constraint as Slurm writes it.
    required, excluded, nodes : tuple of str
        Node names; `nodes` are those it holds.
    exclusive : bool
    beyond : str
        What it asks that the controller does not model; such a job is left to Slurm. Empty if nothing.
    """

    id: str
    user: str
    partition: str
    comment: str
    state: str
    reason: str
    came_s: float
    begins_s: float
    started_s: float
    limit_s: float
    priority: float
    node_count: int
    cpus: int
    memory_mb: float
    gpus: int
    gpu_type: str
    features: str = ""
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    exclusive: bool = False
    qos: str = ""
    account: str = ""
    reservation: str = ""
    beyond: str = ""

    @property
    def waits(self) -> bool:
        """Whether it has not started."""
        return self.state == "PENDING"


@dataclass(slots=True)
class ClusterNow:
    """All nodes and unfinished jobs at one moment; `skipped` has a line for each document that could not be read."""

    nodes: dict[str, NodeNow]
    jobs: dict[str, JobNow]
    now_s: float
    finished: dict[str, tuple[str, float, float]] = field(default_factory=dict)  # state, start and end by job
    skipped: list[str] = field(default_factory=list)


def gres_of(text: Any) -> dict[str, float]:
    """Return GPUs by type in a list such as "gpu:a100:4(S:0-1),gpu:t4:2" or "gres/gpu:2"; "gpu" is any type."""
    found: dict[str, float] = {}
    for each in re.split(r",(?![^(]*\))", str(text or "")):
        if match := GRES.match(each.strip()):
            name = match[1] or "gpu"
            found[name] = found.get(name, 0.0) + float(match[2] or 1)
    return found


def _states(value: Any) -> set[str]:
    return {str(each).upper() for each in (value if isinstance(value, list) else [value])}


def _names(value: Any) -> tuple[str, ...]:
    """Return the names of a host list, or of a list of them."""
    texts = value if isinstance(value, list) else re.split(r",(?![^\[]*\])", str(value or ""))
    return tuple(name for text in texts if str(text) not in ("", "None") for name in expanded(str(text)))


def _words(value: Any) -> frozenset[str]:
    return frozenset(value if isinstance(value, list) else [each for each in str(value or "").split(",") if each])


def node_now(document: Mapping[str, Any]) -> NodeNow:
    """Return a node of `sinfo --json` (22.05), `scontrol show node --json` or slurmrestd's /nodes."""
    if not isinstance(document.get("name"), str):
        raise ViewError("a node has no name: give what `scontrol show node --json` or slurmrestd's /nodes prints")
    gpus, used = gres_of(document.get("gres")), gres_of(document.get("gres_used"))
    has = {"cpu": number(document.get("cpus")) or 0.0, "mem": number(document.get("real_memory")) or 0.0, **gpus}
    taken = {
        "cpu": number(document.get("alloc_cpus")) or 0.0,
        "mem": number(document.get("alloc_memory")) or 0.0,
        **used,
    }
    states = _states(document.get("state")) | _states(document.get("state_flags") or [])
    return NodeNow(
        document["name"], has, {name: amount - taken.get(name, 0.0) for name, amount in has.items()},
        _words(document.get("active_features") or document.get("features")), _words(document.get("partitions")),
        not any(state.startswith(UNUSABLE) or state == "RESERVED" for state in states),
    )  # fmt: skip


def job_now(document: Mapping[str, Any]) -> JobNow | None:
    """Return a job that waits or holds nodes; None for one that has ended."""
    states = _states(document.get("job_state"))
    state = next(iter(states & RUNS), "PENDING" if "PENDING" in states else "")
    if not state:
        return None
    if document.get("job_id") is None or number(document.get("submit_time")) is None:
        raise ViewError("job_id or submit_time is missing")
    count = max(1, int(number(document.get("node_count")) or 1))
    cpus = max(1, int(number(document.get("cpus")) or 1))
    asked = gres_of(document.get("tres_per_node"))
    beyond = _beyond(document, asked)
    for name, tasks in (("tres_per_job", 1.0), ("tres_per_task", number(document.get("tasks")) or 1.0)):
        asked = asked or {kind: amount * tasks / count for kind, amount in gres_of(document.get(name)).items()}
    kind, gpus = next(iter(asked.items()), ("gpu", 0.0))
    held = number(document.get("memory_per_node"))
    if held is None:
        held = (number(document.get("memory_per_cpu")) or 0.0) * cpus / count
    limit = document.get("time_limit")
    minutes = number(limit)
    shared = document.get("shared")
    return JobNow(
        str(document["job_id"]), str(document.get("user_name") or ""), str(document.get("partition") or ""),
        str(document.get("comment") or ""), state, str(document.get("state_reason") or ""),
        number(document.get("submit_time")) or 0.0, number(document.get("eligible_time")) or 0.0,
        number(document.get("start_time")) or 0.0 if state != "PENDING" else 0.0,
        LONG_S if not minutes else 60.0 * minutes, number(document.get("priority")) or 0.0, count, cpus, held,
        int(gpus), "" if kind == "gpu" else kind, str(document.get("features") or ""),
        _names(document.get("required_nodes")), _names(document.get("excluded_nodes")),
        _names(document.get("nodes")) if state != "PENDING" else (),
        "none" in _states_lower(shared) or "true" in _states_lower(document.get("exclusive")),
        str(document.get("qos") or ""), str(document.get("account") or ""), str(document.get("resv_name") or ""),
        beyond,
    )  # fmt: skip


def _states_lower(value: Any) -> set[str]:
    return {str(each).lower() for each in (value if isinstance(value, list) else [value]) if each is not None}


def _beyond(document: Mapping[str, Any], asked: Mapping[str, float]) -> str:
    """Return what a job asks that the controller does not model."""
    texts = ("licenses", "burst_buffer", "array_task_string", "dependency", "tres_per_socket", "mcs_label")
    found = [name for name in texts if str(document.get(name) or "") not in ("", "None")]
    if number(document.get("het_job_id")):
        found.append("het_job_id")
    if document.get("contiguous") or number(document.get("core_spec")):
        found.append("contiguous or core_spec")
    told = [str(document.get(name) or "") for name in ("tres_per_node", "tres_per_job", "tres_per_task")]
    other = [each for text in told for each in text.split(",") if each and "gpu" not in each and "cpu" not in each]
    if other:
        found.append(f"{other[0]}")
    if len(asked) > 1:
        found.append("two GPU types")
    if "," in str(document.get("partition") or ""):
        found.append("several partitions")
    return ", ".join(found)


def cluster_now(jobs: list[Any], nodes: list[Any], now_s: float) -> ClusterNow:
    """Return the cluster of two lists of documents.

    Parameters
    ----------
    jobs, nodes : list of objects
    now_s : float
        Unix time of the cluster's clock.
    """
    found = ClusterNow({}, {}, now_s)
    for each in nodes:
        node = node_now(each)
        found.nodes[node.name] = node
    for each in jobs:
        try:
            job = job_now(each)
        except (ViewError, AttributeError, ValueError) as error:
            found.skipped.append(
                f"Slurm job {each.get('job_id') if isinstance(each, dict) else '?'}: {error}: left out"
            )
            continue
        if job is not None:
            found.jobs[job.id] = job
        elif number(each.get("start_time")):
            state = next(iter(sorted(_states(each.get("job_state")))), "")
            began, ended = number(each.get("start_time")) or 0.0, number(each.get("end_time")) or 0.0
            found.finished[str(each.get("job_id"))] = (state, began, ended)
    return found
