"""The greedy placement of CvxCluster: every task on the server with room where its needs cost least at the prices."""

from __future__ import annotations

import numba
import numpy as np

from copter_frontends.policies.servers.place_kernels import mark_group, put
from copter_frontends.policies.servers.score_kernels import best_place
from copter_frontends.policies.servers.state_kernels import room


@numba.njit(cache=True)
def place_by_prices(board, shapes, jobs, price, order, mark):  # type: ignore[no-untyped-def]
    """Place tasks in order; `price` has each server's dimensions, the GPUs last. The others stay waiting."""
    dims = board.free.shape[1]
    shape, tried = -1, 0
    servers = np.zeros(0, dtype=np.int64)
    for task in order:
        if jobs.shape[task] != shape:
            shape, tried = jobs.shape[task], 0
            cost = price[:, dims] * (shapes.gpus[shape] * shapes.milli[shape])
            for d in range(dims):
                cost += price[:, d] * shapes.need[shape, d]
            servers = np.argsort(cost)
        need, gpus, milli = shapes.need[shape], shapes.gpus[shape], shapes.milli[shape]
        stamp, passed = 0, True
        if jobs.group[task] >= 0:
            mark[-1] += 1
            stamp = mark[-1]
            mark_group(jobs, jobs.group[task], mark, stamp)
        for at in range(tried, len(servers)):
            server = servers[at]
            fits = board.status[server] == 0 and shapes.allowed[shape, board.kind[server]]
            if fits and room(need, gpus, milli, board.free[server], board.gpu[server]) > 0:
                if stamp > 0 and mark[server] == stamp:
                    passed = False
                    continue
                state = board.state[server]
                board.choice[state, shapes.like[shape]] = best_place(shapes, shape, board.state_gpu[state])
                put(board, shapes, jobs, task, server)
                break
            if passed:
                tried = at + 1
