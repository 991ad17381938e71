"""What a plan must keep, and the optimum of a policy's linear program from scratch."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from copter import Model, Solution
from copter_frontends.vocabulary import Allocation, Cluster, Plan


@runtime_checkable
class HasLp(Protocol):
    """A policy whose rounds solve one LP of the engine's."""

    formulation: Any
    last_solution: Solution | None


def optimum(model: Model) -> float:
    """Optimum of a model's program by HiGHS, from scratch."""
    lp = model.to_linear_program()
    if not len(lp.c):
        return float(lp.offset)
    sign = -1.0 if lp.sense == "max" else 1.0
    upper, lower = np.isfinite(lp.row_upper), np.isfinite(lp.row_lower)
    rows = sp.vstack([lp.A.tocsr()[upper], -lp.A.tocsr()[lower]])
    result = linprog(
        sign * lp.c,
        A_ub=rows,
        b_ub=np.concatenate([lp.row_upper[upper], -lp.row_lower[lower]]),
        bounds=np.column_stack([lp.col_lower, lp.col_upper]),
    )
    assert result.status == 0, result.message
    return sign * float(result.fun) + float(lp.offset)


def check_plan(plan: Plan, cluster: Cluster) -> None:
    """Assert that a plan can be carried out: every node and type within its capacity, every count adding up."""
    used: dict[str, int] = {}
    for job_id, allocation in plan.allocations.items():
        assert allocation.gpus >= 1, f"{job_id} has no GPUs"
        assert sum(gpus for _, gpus in allocation.nodes) == allocation.gpus, f"{job_id}: {allocation}"
        assert list(allocation.nodes) == sorted(allocation.nodes), f"{job_id}: nodes are not sorted"
        assert len({node for node, _ in allocation.nodes}) == len(allocation.nodes), f"{job_id}: a node twice"
        by_type = dict.fromkeys(allocation.by_type, 0)
        for node, gpus in allocation.nodes:
            assert cluster.nodes[node].gpu_type in by_type, f"{job_id}: {node} is of another type"
            assert gpus >= 1, f"{job_id}: {gpus} GPUs of {node}"
            used[node] = used.get(node, 0) + gpus
            by_type[cluster.nodes[node].gpu_type] += gpus
        assert by_type == allocation.by_type, f"{job_id}: {allocation}"
    for node, gpus in used.items():
        assert gpus <= cluster.nodes[node].gpus, f"{node} is over-committed: {gpus} of {cluster.nodes[node].gpus}"


def check_lists(plan: Plan, before: dict[str, Allocation]) -> None:
    """Assert that start, stop and move are what changed since `before` (jobs removed since then left out)."""
    now = plan.allocations
    assert set(plan.start) == {job for job in now if job not in before}
    assert set(plan.stop) == {job for job in before if job not in now}
    assert set(plan.move) == {job for job in now if job in before and before[job] != now[job]}
