"""What a policy holds, as a value: equal for two policies that know the same jobs, nodes, pins, service and LP."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import astuple, fields
from typing import Any

import numpy as np

from copter import Model
from copter_frontends.allocation import AllocationPolicy
from copter_frontends.baselines.pop import PopPolicy
from copter_frontends.chronus import ChronusPolicy
from copter_frontends.hadar import HadarPolicy
from copter_frontends.hare.gang_policy import GangPolicy
from copter_frontends.hare.task_policy import HareTaskPolicy
from copter_frontends.hops import HopsPolicy
from copter_frontends.policy_kit import NodeInventory, RoundPolicy
from copter_frontends.sia import SiaPolicy
from copter_frontends.vocabulary import Cluster, SchedulingPolicy


def policy_state(policy: SchedulingPolicy) -> Hashable:
    """The state of any policy of this project; TypeError for others, so that none is compared by nothing."""
    if isinstance(policy, PopPolicy):
        return tuple(policy_state(part) for part in policy.parts)
    if isinstance(policy, SiaPolicy):
        return _sia(policy)
    if isinstance(policy, HadarPolicy):
        return _hadar(policy)
    if isinstance(policy, RoundPolicy):
        own: Hashable = ()
        if isinstance(policy, HopsPolicy):
            own = _hops(policy)
        elif isinstance(policy, ChronusPolicy):
            own = (
                tuple(sorted((job_id, _plain(record)) for job_id, record in policy.book.records.items())),
                tuple(sorted(policy.lease.records)),
                tuple(sorted(policy.modes.measured)),
            )
        elif isinstance(policy, HareTaskPolicy):
            own = tuple(sorted(policy.weights.items()))
        elif isinstance(policy, GangPolicy):
            own = tuple(sorted(policy.book.weights.items()))
        return (
            _sorted(policy.jobs),
            _sorted(policy.held),
            _sorted(policy.pins),
            tuple(sorted((job_id, astuple(had)) for job_id, had in policy.service.items())),
            nodes_state(policy.nodes),
            own,
        )
    if isinstance(policy, AllocationPolicy):
        return _allocation(policy)
    raise TypeError(f"say in tests/frontends/policy_state.py what a {type(policy).__name__} holds")


def model_state(model: Model) -> Hashable:
    """A model's program, whatever the order in which its requests came."""
    requests = sorted(model.requests, key=str)
    return (
        tuple(sorted((name, model.count(name)) for name in model.resources)),
        tuple((name, model.cost(name).tobytes(), model.limit(name), model.fixed(name)) for name in requests),
    )


def nodes_state(nodes: NodeInventory) -> Hashable:
    """Free GPUs of every node."""
    return tuple((kind, tuple(sorted(nodes.free_by_node(kind).items()))) for kind in nodes.types)


def _sorted(values: dict[str, Any]) -> Hashable:
    return tuple(sorted(values.items(), key=lambda item: item[0]))


def _plain(record: Any) -> str:
    """Fields of a record as text; arrays and nested values by their own text."""
    return ", ".join(f"{each.name}={getattr(record, each.name)!r}" for each in fields(record))


def _cluster(cluster: Cluster) -> Hashable:
    return tuple(sorted((node.id, node.gpu_type, node.gpus) for node in cluster.nodes.values()))


def _sia(policy: SiaPolicy) -> Hashable:
    jobs = policy.formulation.jobs
    known = []
    for job_id in sorted(jobs):
        state = jobs[job_id]
        known.append(
            (state.job, state.progress, state.restarts, state.column, state.pinned, state.most_gpus, str(state.hints))
        )
    return tuple(known), _sorted(policy.held), _sorted(policy.pins), _cluster(policy.cluster)


def _hadar(policy: HadarPolicy) -> Hashable:
    book = policy.book
    order = sorted(range(len(book)), key=lambda row: book.jobs[row].id)
    arrays = (book.gpus, book.rates, book.held, book.total, book.progress, book.pinned, book.spread, book.restart_s)
    return (
        tuple(book.jobs[row].id for row in order),
        tuple(np.asarray(array)[order].tobytes() for array in arrays),
        tuple(policy.formulation.capacity.tolist()),
        _sorted(policy.held),
        _sorted(policy.pins),
        nodes_state(policy.servers.nodes),
        _sorted(policy.stragglers.found),
    )


def _allocation(policy: AllocationPolicy) -> Hashable:
    entries = sorted(policy.entries.items())
    known = tuple((name, each.job, each.weight, each.options, each.speedup.tobytes()) for name, each in entries)
    capacity = tuple((kind, policy.model.count(kind)) for kind in policy.cluster.types)
    return known, capacity, _sorted(policy.held), _sorted(policy.pins), _cluster(policy.cluster)


def _hops(policy: HopsPolicy) -> Hashable:
    offers = sorted((job, each.key, each.gain.tobytes()) for job, each in policy.book.offers.items())
    return tuple(offers), tuple(sorted(policy.book.age_s.items())), policy.groups.key
