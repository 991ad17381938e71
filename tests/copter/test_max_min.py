"""Max-min and lexicographic fairness: totals as by scipy's programs, bounds, edits, errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import copter

Floats = NDArray[np.float64]


class Jobs:
    """Jobs of several columns: rates (k, n), usage (k, m, n), a share of time of one each, caps of their totals."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.k, self.m, self.n = int(rng.integers(2, 8)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        self.rates = rng.uniform(0.3, 3.0, (self.k, self.n))
        self.usage = rng.uniform(0.1, 2.0, (self.k, self.m, self.n)) * (rng.random((self.k, self.m, self.n)) < 0.7)
        self.counts = rng.uniform(0.2, 1.0, self.m) * self.k / 2.0
        self.weights = rng.uniform(0.5, 2.0, self.k)
        self.most = np.minimum(rng.uniform(0.2, 3.0, self.k), self.rates.max(axis=1))

    def model(self) -> copter.Model:
        model = copter.Model(sense="max")
        for row, count in enumerate(self.counts.tolist()):
            model.add_resource(row, count)
        for job in range(self.k):
            time = copter.PrivateRows([1.0 / self.rates[job]], upper=1.0)
            usage = {row: self.usage[job, row] / self.rates[job] for row in range(self.m)}
            model.add_request(job, np.ones(self.n), usage, limit=1.0, private_rows=time)
        return model

    def asked(self, level: float) -> Floats:
        return np.minimum(level * self.weights, self.most)

    def highest(self) -> float:
        return float((self.most / self.weights).max())

    def by_scipy(self) -> Floats:
        """Totals, level by level: jobs that can have no more than the level at it are settled."""
        k, n = self.k, self.n
        over = np.hstack([self.usage[job] for job in range(k)])
        time = np.kron(np.eye(k), np.ones(n))
        total = np.zeros((k, k * n))
        for job in range(k):
            total[job, job * n : (job + 1) * n] = self.rates[job]
        fixed, rising = np.zeros(k), np.ones(k, dtype=bool)
        while rising.any():
            level = np.where(rising, self.weights, 0.0)[:, None]
            rows = np.vstack((np.c_[over, np.zeros(self.m)], np.c_[time, np.zeros(k)], np.c_[-total, level]))
            right = np.concatenate((self.counts, np.ones(k), np.where(rising, 0.0, -fixed + 1e-10)))
            most = float((self.most / self.weights)[rising].min())
            found = linprog(-np.eye(k * n + 1)[-1], rows, right, bounds=[(0, None)] * (k * n) + [(0, most)])
            floor = np.where(rising, -found.fun * self.weights, fixed)
            done = np.zeros(k, dtype=bool)
            for job in np.flatnonzero(rising):
                rows = np.vstack((over, time, -total))
                right = np.concatenate((self.counts, np.ones(k), -floor * (1 - 1e-9) + 1e-10))
                best = -linprog(-total[job], rows, right, bounds=(0, None)).fun
                done[job] = min(best, self.most[job]) <= floor[job] + 1e-6
            assert done.any()
            fixed[done], rising = floor[done], rising & ~done
        return fixed


@pytest.mark.parametrize("seed", range(20))
def test_totals_are_lexicographically_those_of_scipy(seed: int) -> None:
    jobs = Jobs(seed)
    fair = copter.MaxMin(copter.Session(jobs.model()), range(jobs.k), jobs.asked, jobs.highest())
    found, best = fair.run(), jobs.by_scipy()
    np.testing.assert_allclose(found, best, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(fair.served(), found, rtol=1e-6, atol=1e-9)  # the last program has them
    assert not fair.rising.any()
    assert bool((np.diff(fair.levels) >= 0.0).all())
    first = np.min(best / jobs.weights)
    assert fair.bound >= first * (1.0 - 1e-7)


def test_one_level_is_enough_for_the_least_and_its_bound_is_close() -> None:
    jobs = Jobs(3)
    session = copter.Session(jobs.model())
    one, two = (copter.MaxMin(session, range(jobs.k), jobs.asked, jobs.highest()) for _ in range(2))
    least = float((one.run(most_levels=1) / jobs.weights).min())
    assert least == pytest.approx(float((two.run() / jobs.weights).min()), rel=1e-7)
    assert least <= one.bound <= least * (1.0 + 1e-6)


def test_edits_between_runs_are_followed() -> None:
    jobs = Jobs(5)
    model = jobs.model()
    session = copter.Session(model)
    copter.MaxMin(session, range(jobs.k), jobs.asked, jobs.highest()).run()
    jobs.counts *= 0.5
    model.update_counts(list(range(jobs.m)), jobs.counts)
    found = copter.MaxMin(session, range(jobs.k), jobs.asked, jobs.highest()).run()
    np.testing.assert_allclose(found, jobs.by_scipy(), rtol=2e-6, atol=2e-6)


def test_nothing_asked_for_is_nothing() -> None:
    jobs = Jobs(1)
    fair = copter.MaxMin(copter.Session(jobs.model()), range(jobs.k), lambda level: np.zeros(jobs.k), 1.0)
    assert fair.run().tolist() == [0.0] * jobs.k
    assert fair.programs == 0


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"highest": np.nan}, copter.InvalidDataError, "highest is nan"),
        ({"highest": np.inf}, copter.InvalidDataError, "highest is inf"),
        ({"highest": -1.0}, copter.InvalidDataError, "zero or above"),
        ({"requests": ["nobody"]}, copter.UnknownHandleError, "nobody"),
        ({"asked": lambda level: np.ones(99)}, copter.DimensionError, "shape"),
        ({"asked": lambda level: np.full(2, np.nan)}, copter.InvalidDataError, "finite"),
        ({"asked": lambda level: np.full(2, -1.0)}, copter.InvalidDataError, "zero or above"),
    ],
)
def test_wrong_arguments_are_named_and_change_nothing(change: dict, error: type[Exception], says: str) -> None:
    model = copter.Model(sense="max")
    model.add_resource("gpu", 4)
    for job in "ab":
        model.add_request(job, [1.0], {"gpu": [1]}, limit=3.0)
    given = {"requests": ["a", "b"], "asked": lambda level: np.full(2, level), "highest": 3.0} | change
    with pytest.raises(error, match=says):
        copter.MaxMin(copter.Session(model), **given)
    assert [model.limit(job) for job in "ab"] == [3.0, 3.0]


def test_a_minimisation_is_refused() -> None:
    model = copter.Model(sense="min")
    model.add_resource("gpu", 4)
    with pytest.raises(copter.InvalidDataError, match="sense='max'"):
        copter.MaxMin(copter.Session(model), [], lambda level: np.zeros(0), 1.0)


def test_columns_that_do_not_count_as_one_are_refused() -> None:
    model = copter.Model(sense="max")
    model.add_resource("gpu", 4)
    model.add_request("a", [2.0], {"gpu": [1]})
    with pytest.raises(copter.InvalidDataError, match="must cost 1"):
        copter.MaxMin(copter.Session(model), ["a"], lambda level: np.full(1, level), 1.0)


def test_limits_come_back_if_what_is_asked_for_turns_wrong() -> None:
    model = copter.Model(sense="max")
    model.add_resource("gpu", 4)
    for job in "ab":
        model.add_request(job, [1.0], {"gpu": [1]}, limit=3.0)
    fair = copter.MaxMin(copter.Session(model), "ab", lambda level: np.full(2, level if level > 2.5 else np.nan), 3.0)
    with pytest.raises(copter.InvalidDataError, match="finite"):
        fair.run()
    assert [model.limit(job) for job in "ab"] == [3.0, 3.0]
