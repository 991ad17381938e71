"""Each edit at three sizes of model, compared with the same edit in highspy, method for method.

An edit that cannot be repeated is timed with the one that takes it back. `benchmarks/edit_crossover.py` times the pairs
and prints from which size on which is faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from copter.highs.lp import highs_lp, silent_highs

from .problems import SIZES, TYPES, Rounds

try:
    import highspy
except ImportError:
    highspy = None

BATCH = 10  # requests


class Copter:
    """Edits of the model; each is undone or repeatable, so that it can be timed many times."""

    params = SIZES
    param_names = ("requests",)

    def setup(self, requests: int) -> None:
        """A solved model, and a request like its others."""
        self.rounds = Rounds(requests)
        self.model, self.template = self.rounds.model, self.rounds.template
        self.cost = self.model.cost("job-0")
        self.usage = {
            resource: np.where(np.arange(len(self.cost)) % 3 == k, 1.0, 0.0)
            for k, resource in enumerate(self.model.resources)
        }
        self.sparse = self.model.to_linear_program().A[: len(self.usage), : len(self.cost)].tocsr()
        self.resources, self.ids = list(self.model.resources), list(self.model.requests)
        self.count = self.model.count("type-0")
        self.batch = [f"new-{number}" for number in range(BATCH)]
        self.batch_costs = np.tile(self.cost, (BATCH, 1))

    def time_add_and_remove_request(self, requests: int) -> None:
        """A request that shares the template comes and goes."""
        self.model.add_request("new", self.cost, template=self.template)
        self.model.remove_request("new")

    def time_add_and_remove_own_usage(self, requests: int) -> None:
        """A request with a pattern of its own comes and goes."""
        self.model.add_request("new", self.cost, self.usage)
        self.model.remove_request("new")

    def time_add_and_remove_batch(self, requests: int) -> None:
        """Ten requests come and go at once."""
        with self.model.batch():
            self.model.add_requests(self.batch, self.batch_costs, template=self.template)
            self.model.remove_requests(self.batch)

    def time_drop_and_restore_resource(self, requests: int) -> None:
        """A row goes with all its entries, and comes back."""
        self.model.remove_resource("type-0")
        self.model.add_resource("type-0", self.count)
        self.model.update_template(self.template, self.sparse, self.resources)

    def time_update_column_cost(self, requests: int) -> None:
        """One column's cost."""
        self.model.update_column_cost("job-2", 3, 0.5)

    def time_update_usage(self, requests: int) -> None:
        """One request's coefficients."""
        self.model.update_usage("job-3", self.sparse, resources=self.resources)

    def time_update_all_usage(self, requests: int) -> None:
        """All requests' coefficients: one template's."""
        self.model.update_template(self.template, self.sparse, self.resources)

    def time_update_limit(self, requests: int) -> None:
        """One request's limit."""
        self.model.update_limit("job-4", 1.0)

    def time_update_bounds(self, requests: int) -> None:
        """One request's bounds."""
        self.model.update_bounds("job-4", 0.0, 1.0)

    def time_update_integrality(self, requests: int) -> None:
        """Whether one request must be whole."""
        self.model.update_integrality("job-5", True)

    def time_add_and_remove_resources(self, requests: int) -> None:
        """Units come and go."""
        self.model.add_resource("type-0", 8)
        self.model.remove_units("type-0", 8)

    def time_update_cost(self, requests: int) -> None:
        """One request's costs."""
        self.model.update_cost("job-1", self.cost)

    def time_rescale_cost(self, requests: int) -> None:
        """One request's scale over its costs."""
        self.model.rescale_cost("job-1", 0.9)

    def time_rescale_all(self, requests: int) -> None:
        """All requests' scales: linear in the requests, not in the variables."""
        self.model.rescale_costs(self.ids, 0.9)

    def time_fix_and_unfix(self, requests: int) -> None:
        """A request held on one column, and let go."""
        self.model.fix("job-1", 0)
        self.model.unfix("job-1")

    def track_nonzeros_per_second(self, requests: int) -> float:
        """Nonzeros handed over a second by adding requests that share a template."""
        from time import perf_counter

        started = perf_counter()
        for number in range(20):
            self.model.add_request(number, self.cost, template=self.template)
        seconds = perf_counter() - started
        for number in range(20):
            self.model.remove_request(number)
        return 20 * 2 * len(self.cost) / seconds


class Highs:
    """The same edits through highspy's arrays."""

    params = SIZES
    param_names = ("requests",)

    def setup(self, requests: int) -> None:
        """The same model in HiGHS."""
        if highspy is None:
            from asv_runner.benchmarks.mark import SkipNotImplemented

            raise SkipNotImplemented("highspy is not installed")
        lp = Rounds(requests).model.to_linear_program()
        self.data = highs_lp(lp)
        self.highs: Any = silent_highs()
        self.highs.passModel(self.data)
        self.k, self.rows, self.total = lp.shape[1] // requests, lp.shape[0], lp.shape[1]
        block = lp.A[:, : self.k].tocsc()
        self.cost, self.upper = lp.c[: self.k].copy(), np.ones(self.k)
        index = block.indices.astype(np.int32)
        self.start, self.index = (
            block.indptr[:-1].astype(np.int32),
            np.where(index < 3, index, self.rows).astype(np.int32),
        )
        self.value, self.all_costs, self.capacity = block.data, lp.c.copy(), float(lp.row_upper[0])
        self.own = np.arange(self.k, dtype=np.int32)
        self.new = np.arange(self.total, self.total + self.k, dtype=np.int32)
        self.everything = np.arange(self.total, dtype=np.int32)
        self.none, self.zero = np.zeros(0, dtype=np.int32), np.zeros(self.k)
        self.limit_row, self.whole = TYPES, [highspy.HighsVarType.kInteger] * self.k
        rows = lp.A.tocsr()
        self.dropped, self.first = self.rows - 1, rows[[0], :]
        self.at = [
            (int(block.indices[j]), int(col))
            for col in range(self.k)
            for j in range(block.indptr[col], block.indptr[col + 1])
        ]

    def time_add_and_remove_request(self, requests: int) -> None:
        """A request's row and columns come and go."""
        self.highs.addRows(1, np.array([-np.inf]), np.ones(1), 0, self.none, self.none, np.zeros(0))
        count = len(self.value)
        self.highs.addCols(self.k, self.cost, self.zero, self.upper, count, self.start, self.index, self.value)
        self.highs.deleteCols(self.k, self.new)
        self.highs.deleteRows(1, np.array([self.rows], dtype=np.int32))

    def time_add_and_remove_own_usage(self, requests: int) -> None:
        """The same: HiGHS keeps no templates."""
        self.time_add_and_remove_request(requests)

    def time_add_and_remove_batch(self, requests: int) -> None:
        """Ten requests' rows and columns come and go at once."""
        rows, k = BATCH, BATCH * self.k
        self.highs.addRows(
            rows, np.full(rows, -np.inf), np.ones(rows), 0, np.zeros(rows, dtype=np.int32), self.none, np.zeros(0)
        )
        count, limits = len(self.value), np.repeat(np.arange(rows), len(self.value))
        start = (self.start + count * np.arange(rows)[:, None]).ravel().astype(np.int32)
        index = np.tile(self.index, rows) + np.where(np.tile(self.index, rows) == self.rows, limits, 0)
        self.highs.addCols(
            k, np.tile(self.cost, rows), np.zeros(k), np.ones(k), rows * count, start, index.astype(np.int32),
            np.tile(self.value, rows),
        )  # fmt: skip
        self.highs.deleteCols(k, np.arange(self.total, self.total + k, dtype=np.int32))
        self.highs.deleteRows(rows, np.arange(self.rows, self.rows + rows, dtype=np.int32))

    def time_drop_and_restore_resource(self, requests: int) -> None:
        """The last row goes with all its entries, and one with a resource's comes in its place."""
        self.highs.deleteRows(1, np.array([self.dropped], dtype=np.int32))
        start = np.zeros(1, dtype=np.int32)
        first = self.first
        self.highs.addRows(
            1,
            np.array([-np.inf]),
            np.array([self.capacity]),
            first.nnz,
            start,
            first.indices.astype(np.int32),
            first.data,
        )

    def time_rescale_cost(self, requests: int) -> None:
        """One request's costs: HiGHS keeps no scale."""
        self.highs.changeColsCost(self.k, self.own, 0.9 * self.cost)

    def time_update_column_cost(self, requests: int) -> None:
        """One column's cost."""
        self.highs.changeColCost(3, 0.5)

    def time_update_usage(self, requests: int) -> None:
        """One request's coefficients, one by one, as the interface has it."""
        for (row, column), value in zip(self.at, self.value, strict=True):
            self.highs.changeCoeff(row, column, value)

    def time_update_all_usage(self, requests: int) -> None:
        """All requests' coefficients: the model passed anew."""
        self.highs.passModel(self.data)

    def time_update_limit(self, requests: int) -> None:
        """One request's limit."""
        self.highs.changeRowBounds(self.limit_row, -np.inf, 1.0)

    def time_update_bounds(self, requests: int) -> None:
        """One request's bounds."""
        self.highs.changeColsBounds(self.k, self.own, self.zero, self.upper)

    def time_update_integrality(self, requests: int) -> None:
        """Whether one request must be whole."""
        self.highs.changeColsIntegrality(self.k, self.own, self.whole)

    def time_add_and_remove_resources(self, requests: int) -> None:
        """A row's bound, there and back."""
        self.highs.changeRowBounds(0, -np.inf, self.capacity + 8)
        self.highs.changeRowBounds(0, -np.inf, self.capacity)

    def time_update_cost(self, requests: int) -> None:
        """One request's costs."""
        self.highs.changeColsCost(self.k, self.own, self.cost)

    def time_rescale_all(self, requests: int) -> None:
        """All costs."""
        self.highs.changeColsCost(self.total, self.everything, self.all_costs)

    def time_fix_and_unfix(self, requests: int) -> None:
        """A request's bounds, there and back."""
        self.highs.changeColsBounds(self.k, self.own, self.zero, self.zero)
        self.highs.changeColsBounds(self.k, self.own, self.zero, self.upper)

    def track_nonzeros_per_second(self, requests: int) -> float:
        """Nonzeros handed over a second by adding and removing a request (HiGHS keeps no template)."""
        from time import perf_counter

        started = perf_counter()
        for _ in range(20):
            self.time_add_and_remove_request(requests)
        return 20 * len(self.value) / (perf_counter() - started)


Copter.track_nonzeros_per_second.unit = Highs.track_nonzeros_per_second.unit = "nonzeros/s"
