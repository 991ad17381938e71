"""The loop of the interior-point methods, against a method that is told what it finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from copter.methods.path_following import BACK_OFF, CORRECTIONS, STALL, follow


@dataclass(frozen=True)
class Point:
    """A measured point."""

    worst: float
    mu: float = 1.0


class Told:
    """Measures what it is told, and notes what it is asked."""

    def __init__(self, worst: list[float], lengths: list[tuple[float, float]], pairs: int = 1) -> None:
        self.worst, self.lengths, self.pairs, self.iterations = iter(worst), iter(lengths), pairs, 0
        self.asked: list[str] = []
        self.moved: list[tuple[float, float]] = []

    def measure(self) -> Point:
        return Point(next(self.worst))

    def figures(self, measured: Point) -> NDArray[np.float64]:
        return np.array([measured.worst])

    def look(self, measured: Point) -> bool:
        return measured.worst == 0.5

    def predict(self) -> float:
        return 0.5

    def centre(self, target: float, share: float) -> tuple[float, float]:
        assert target == share == pytest.approx(0.125)
        return next(self.lengths)

    def correct(self, target: float, ahead: float, behind: float) -> tuple[float, float]:
        self.asked.append("correct")
        return next(self.lengths)

    def take_back(self) -> None:
        self.asked.append("take back")

    def move(self, ahead: float, behind: float) -> None:
        self.moved.append((ahead, behind))


def run(method: Told, goal: float = 1e-8, most: int = 50) -> tuple[Point, bool]:
    return follow(method, goal, most, lambda iteration, measured: measured.worst == 0.25)


def test_it_ends_at_the_goal_at_the_limit_and_where_it_is_told_to() -> None:
    long = [(1.0, 1.0)] * 50
    method = Told([1.0, 0.1, 1e-9], long)
    assert (run(method), method.iterations) == ((Point(1e-9), False), 2)
    method = Told([1.0 / (i + 1) ** 3 for i in range(60)], long)
    assert (run(method, most=5)[1], method.iterations) == (False, 5)
    method = Told([1.0, 0.25], long)
    assert (run(method), method.iterations) == ((Point(0.25), True), 1)
    method = Told([1.0, 0.5], long)
    assert (run(method), method.iterations) == ((Point(0.5), False), 1)


def test_slow_progress_is_progress_but_none_is_a_stall() -> None:
    long = [(1.0, 1.0)] * 60
    slow = Told([0.95**i for i in range(60)], long)
    run(slow, most=30)
    assert slow.iterations == 30
    stuck = Told([1.0, *[0.95] * 30], long)
    run(stuck)
    assert stuck.iterations == STALL


def test_no_step_is_taken_from_a_point_that_is_no_number() -> None:
    method = Told([np.nan], [])
    assert not run(method)[1]
    assert method.moved == []


def test_a_correction_stays_where_it_lengthens_the_step() -> None:
    method = Told([1.0, 1e-9], [(0.5, 0.5), (0.6, 0.5), (0.7, 0.55)])
    run(method)
    assert method.asked == ["correct"] * CORRECTIONS
    assert method.moved == [(BACK_OFF * 0.7, BACK_OFF * 0.55)]


@pytest.mark.parametrize("other", [(0.505, 0.505), (0.9, 0.4)])
def test_one_that_does_not_or_costs_the_other_length_is_taken_back(other: tuple[float, float]) -> None:
    method = Told([1.0, 1e-9], [(0.5, 0.5), other])
    run(method)
    assert method.asked == ["correct", "take back"]
    assert method.moved == [(BACK_OFF * 0.5, BACK_OFF * 0.5)]


def test_without_a_boundary_the_step_is_whole() -> None:
    method = Told([1.0, 1e-9], [(1.0, 1.0)], pairs=0)
    run(method)
    assert method.moved == [(1.0, 1.0)]


class Worse(Told):
    """A method whose affine step ends at products far beyond the present ones."""

    def predict(self) -> float:
        return 1e300

    def centre(self, target: float, share: float) -> tuple[float, float]:
        assert (target, share) == (1.0, 1.0)
        return next(self.lengths)


def test_products_beyond_all_measure_ask_for_a_centring_step() -> None:
    method = Worse([1.0, 1e-9], [(1.0, 1.0)])
    assert (run(method), method.moved) == ((Point(1e-9), False), [(BACK_OFF, BACK_OFF)])
