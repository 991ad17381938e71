"""An exact checker that shares nothing with the kernels: it adds up what runs on every server, in whole numbers."""

from __future__ import annotations

import numpy as np

from copter_frontends.placement.servers.board import FAILED, WHOLE_GPU
from copter_frontends.placement.servers.fleet import Fleet


def faults(fleet: Fleet) -> list[str]:
    """Return what is wrong with the tasks' servers: room in every dimension and GPU, selectors, groups, failed servers.

    An empty list proves that the present placement is feasible. Cost: one pass over all tasks.
    """
    jobs, shapes, board = fleet.jobs, fleet.shapes, fleet.board
    task = np.flatnonzero(jobs.server[: fleet.tasks] >= 0)
    server, shape, bits = jobs.server[task], jobs.shape[task], jobs.bits[task]
    found: list[str] = []
    amounts = np.array([each.amounts for each in fleet.types], dtype=np.int64)
    gpus = np.array([each.gpus for each in fleet.types], dtype=np.int64)
    for d in range(amounts.shape[1]):
        used = np.zeros(fleet.servers, dtype=np.int64)
        np.add.at(used, server, shapes.need[shape, d])
        _tell(found, np.flatnonzero(used > amounts[board.kind, d]), f"more than all of dimension {d} is used on server")
        _tell(
            found, np.flatnonzero(used + board.free[:, d] != amounts[board.kind, d]), f"dimension {d} is miscounted on"
        )
    for g in range(board.gpu.shape[1]):
        has = (bits >> g) & 1 == 1
        used = np.zeros(fleet.servers, dtype=np.int64)
        np.add.at(used, server[has], shapes.milli[shape[has]])
        _tell(
            found,
            np.flatnonzero(used > WHOLE_GPU * (gpus[board.kind] > g)),
            f"GPU {g} is used more than once on server",
        )
    count = np.zeros(len(task), dtype=np.int64)
    for g in range(board.gpu.shape[1]):
        count += (bits >> g) & 1
    _tell(found, task[count != shapes.gpus[shape]], "another number of GPUs than asked for has task")
    _tell(found, task[~shapes.allowed[shape, board.kind[server]]], "on a type that its selector excludes is task")
    _tell(found, task[board.status[server] == FAILED], "on a failed server is task")
    group = jobs.group[task]
    own = group >= 0
    where = np.where(jobs.zonal[group[own]] == 1, fleet.servers + jobs.zone[server[own]], server[own])
    pair, many = np.unique(np.column_stack((group[own], where)), axis=0, return_counts=True)
    over = int(np.maximum(many - jobs.most[pair[:, 0]], 0).sum())
    if over:
        found.append(f"{over} tasks share a server or a zone with more of their group than may be")
    return found


def _tell(found: list[str], wrong: np.ndarray, what: str) -> None:
    if len(wrong):
        found.append(f"{what} {int(wrong[0])} ({len(wrong)} such)")
