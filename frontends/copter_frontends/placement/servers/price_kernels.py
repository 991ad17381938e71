"""The greedy placement of CvxCluster: every task on the server with room where its needs cost least at the prices."""

from __future__ import annotations

import numba
import numpy as np

from copter_frontends.placement.servers.place_kernels import place_on_first


@numba.njit(cache=True)
def place_by_prices(board, shapes, jobs, servers, price, order, mark):  # type: ignore[no-untyped-def]
    """Place tasks in order; `price` has each of the servers' dimensions, the GPUs last. The others stay waiting."""
    dims = board.free.shape[1]
    shape, tried = -1, 0
    ranked = servers
    for task in order:
        if jobs.shape[task] != shape:
            shape, tried = jobs.shape[task], 0
            cost = price[:, dims] * (shapes.gpus[shape] * shapes.milli[shape])
            for d in range(dims):
                cost += price[:, d] * shapes.need[shape, d]
            ranked = servers[np.argsort(cost, kind="mergesort")]
        if tried < len(ranked):
            tried = place_on_first(board, shapes, jobs, task, ranked, tried, mark)
