"""Cells come to one LP's optimum within a certified gap; equal parts do not."""

from __future__ import annotations

import numpy as np
import pytest

import copter
from copter.runtime.errors import InvalidDataError
from copter_distributed.cells import Cells


def split(
    seed: int, cells: int, resources: int, sense: str, per_cell: int = 30
) -> tuple[copter.Model, list[copter.Model]]:
    """One model, and the same requests over cells that differ in what they want most."""
    rng = np.random.default_rng(seed)
    whole, parts = copter.Model(sense), [copter.Model(sense) for _ in range(cells)]
    sign = 1.0 if sense == "max" else -1.0
    for model in (whole, *parts):
        for k in range(resources):
            model.add_resources(k, 20.0)
    for at, part in enumerate(parts):
        taste = rng.uniform(0.2, 3.0, resources)
        for job in range(per_cell):
            size = rng.uniform(0.5, 4.0, 3 * resources)
            kind = np.tile(np.arange(resources), 3)
            cost = sign * taste[kind] * size ** rng.uniform(0.4, 0.9)
            usage = {k: np.where(kind == k, size, 0.0) for k in range(resources)}
            for model in (whole, part):
                model.add_request((at, job), cost, usage)
    return whole, parts


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("resources", [1, 4])
def test_cells_come_within_a_thousandth_of_the_one_program(sense: str, resources: int) -> None:
    whole, parts = split(resources, 5, resources, sense)
    optimum = copter.Session(whole).solve().objective
    cells = Cells(parts, dict.fromkeys(range(resources), 20.0))
    trip = cells.solve(most_trips=60)
    scale = 1.0 + abs(optimum)
    assert trip.gap <= 1e-3
    assert abs(trip.objective - optimum) <= 2.1e-3 * scale
    sign = 1.0 if sense == "max" else -1.0
    for each in cells.trips:
        assert sign * (each.bound - optimum) >= -1e-6 * scale
        assert sign * (optimum - each.objective) >= -1e-6 * scale
    assert sign * (trip.objective - cells.trips[0].objective) > 1e-3 * scale  # equal parts lose more than that
    solutions = cells.finish()
    used = np.zeros(resources)
    for solution, part in zip(solutions, parts, strict=True):
        lp = part.to_linear_program()
        used += (lp.A @ solution.x)[:resources]
    assert (used <= 20.0 + 1e-5).all()
    assert sum(solution.objective for solution in solutions) == pytest.approx(trip.objective, rel=1e-4)


def test_resources_of_a_cells_own_are_kept_to() -> None:
    whole, parts = split(3, 3, 2, "max")
    for at, part in enumerate(parts):
        for model in (whole, part):
            model.add_resources(("own", at), 3.0)
            for job in range(5):
                model.add_request((at, "local", job), [2.0, 1.0], {("own", at): [1.5, 0.4], 0: [1.0, 0.2]})
    optimum = copter.Session(whole).solve().objective
    trip = Cells(parts, {0: 20.0, 1: 20.0}).solve()
    assert trip.gap <= 1e-3
    assert trip.objective == pytest.approx(optimum, rel=2.1e-3)


def test_wrong_cells_are_refused() -> None:
    _, parts = split(1, 2, 1, "max")
    with pytest.raises(InvalidDataError):
        Cells([parts[0], copter.Model("min")], {0: 20.0})
    parts[0].set_count(0, 20.0, 1.0)
    with pytest.raises(InvalidDataError):
        Cells(parts, {0: 20.0})


def test_first_shares_are_checked_and_used() -> None:
    whole, parts = split(2, 2, 1, "max")
    for wrong, said in (
        ([[10.0]], "must have 2 shares"),
        ([[15.0], [15.0]], "no more than the counts"),
        ([[-1.0], [5.0]], "zero or more"),
    ):
        with pytest.raises(InvalidDataError, match=said):
            Cells(parts, {0: 20.0}, capacity=[np.array(each) for each in wrong])
    with pytest.raises(InvalidDataError, match="the count of 0 is inf"):
        Cells(parts, {0: np.inf})
    with pytest.raises(InvalidDataError, match="at least one"):
        Cells([], {0: 20.0})
    cells = Cells(parts, {0: 20.0}, capacity=[np.array([19.0]), np.array([1.0])])
    cells.trip()
    assert cells.trips[0].objective < copter.Session(whole).solve().objective
    assert cells.solve().gap <= 1e-3
