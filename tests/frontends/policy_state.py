"""What a policy holds, as a value: equal for two policies that know the same jobs, nodes, pins, service and LP."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from typing import Any

import numpy as np

from copter import Model
from copter_frontends.policies.chronus import ChronusPolicy
from copter_frontends.policies.hadar import HadarPolicy
from copter_frontends.policies.hare.gang_policy import GangPolicy
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.hops import HopsPolicy
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policy_kit import BookedService, NodeInventory, RoundPolicy
from copter_frontends.vocabulary import Cluster, SchedulingPolicy
from copter_papers.opponents.pop import PopPolicy
from copter_serve.allocation import AllocationPolicy

KEEP_LP = (SiaPolicy, HadarPolicy, HopsPolicy, AllocationPolicy)  # those that edit one LP from round to round


def policy_state(policy: SchedulingPolicy, program: bool = True) -> Hashable:
    """The state of any policy of this project, with the LP that it keeps where `program` says so.

    TypeError for policies that are not known here, so that none is compared by nothing.
    """
    if isinstance(policy, PopPolicy):
        return tuple(policy_state(part, program) for part in policy.parts)
    lp = model_state(policy.model) if program and isinstance(policy, KEEP_LP) else ()
    return _known_state(policy), lp


def _known_state(policy: SchedulingPolicy) -> Hashable:
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
                tuple(sorted(policy.profiling.jobs)),
            )
        elif isinstance(policy, HareTaskPolicy):
            own = tuple(sorted(policy.weights.items()))
        elif isinstance(policy, GangPolicy):
            own = tuple(sorted(policy.book.weights.items()))
        return (
            _sorted(policy.jobs),
            _sorted(policy.held),
            _sorted(policy.pins),
            tuple(
                sorted(
                    (job_id, had.executed_s, had.gpu_s, had.progress, had.waits_from_s)
                    for job_id, had in policy.service.items()
                )
            ),
            nodes_state(policy.nodes),
            own,
        )
    if isinstance(policy, AllocationPolicy):
        return _allocation(policy)
    raise TypeError(f"say in tests/frontends/policy_state.py what a {type(policy).__name__} holds")


def _had(service: BookedService) -> tuple[float, ...]:
    return service.executed_s, service.gpu_s, service.progress, service.waits_from_s


def model_state(model: Model) -> Hashable:
    """A model's program, whatever the order in which its requests and resources came."""
    program, order = model.to_linear_program(), {name: at for at, name in enumerate(model.resources)}
    rows = [order[name] for name in sorted(model.resources, key=str)]
    usage, first, columns = program.A.tocsr()[rows].toarray(), 0, {}
    for name in model.requests:
        columns[name] = slice(first, first := first + len(model.cost(name)))
    return (
        program.sense,
        program.offset,
        tuple((name, model.count(name)) for name in sorted(model.resources, key=str)),
        tuple(
            (
                name,
                model.limit(name),
                model.fixed(name),
                *(each[..., columns[name]].tobytes() for each in (program.c, program.col_upper, usage)),
            )
            for name in sorted(model.requests, key=str)
        ),
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
            (
                state.job,
                state.progress,
                int(jobs.numbers["restarts"][state.row]),
                state.column,
                state.pinned,
                state.most_gpus,
                str(state.hints),
            )
        )
    turns = sorted((job_id, _plain(service)) for job_id, service in policy.turns._service.items())
    return (
        tuple(known),
        _sorted(policy.held),
        _sorted(policy.pins),
        _cluster(policy.cluster),
        tuple(turns),
        _sorted(policy.reservations.jobs),
    )


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
