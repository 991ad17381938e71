"""The shim's steps one by one: what is dropped, scaled and filled, and in which order."""

from __future__ import annotations

import copy
from typing import Any

import numba
import numpy as np
import pytest
from traffic_cases import judge_exactly

from copter_frontends.traffic import Network, Paths, feasible_flows, make_paths, shim
from copter_frontends.traffic.shim import KEEP


def two_links(*capacity: float) -> Paths:
    """A pair on each of two links, one path each."""
    network = Network.from_links(list("abcd"), [(0, 1, capacity[0]), (2, 3, capacity[1])], directed=True)
    return make_paths(network, [[0, 1], [2, 3]])


def two_ways() -> Paths:
    """One pair with a path by b and one by c; the links of the first carry 4, those of the second 2."""
    network = Network.from_links(list("abcd"), [(0, 1, 4.0), (1, 3, 4.0), (0, 2, 2.0), (2, 3, 2.0)], directed=True)
    return make_paths(network, [[0, 3]], "shortest")


def shaped(flows: list[float], demands: list[float], paths: Paths, **named: Any) -> list[float]:
    """Feasible flows of these."""
    capacity = paths.network.capacity
    found = feasible_flows(paths, np.array(flows), np.array(demands), capacity, **named)
    judge_exactly(paths, found, np.array(demands), capacity)
    return found.tolist()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -3.0])
def test_flows_that_are_no_number_or_negative_are_zero(wrong: float) -> None:
    given = np.array([wrong, 0.5])
    found = feasible_flows(two_ways(), given, np.array([3.0]), two_ways().network.capacity, refill=False)
    assert found.tolist() == [0.0, 0.5]
    np.testing.assert_array_equal(given, [wrong, 0.5])


def test_paths_over_links_without_capacity_carry_nothing() -> None:
    paths = two_ways()
    capacity = np.where(np.arange(4) == 0, 0.0, paths.network.capacity)
    found = feasible_flows(paths, np.array([1.0, 1.0]), np.array([3.0]), capacity, refill=False)
    assert found.tolist() == [0.0, 1.0]
    found = feasible_flows(paths, np.array([9.0, 1.5]), np.array([2.0]), capacity, refill=False)
    assert found.tolist() == [0.0, 1.5]  # and count for nothing where the demand is shared out


def test_what_is_left_is_filled_if_nothing_else_is_said() -> None:
    assert shaped([0.0, 0.0], [5.0], two_ways()) == pytest.approx([4.0, 1.0])
    assert shaped([0.0, 0.0], [5.0], two_ways(), refill=False) == [0.0, 0.0]
    assert shaped([1.0, 1.5], [3.0], two_ways()) == pytest.approx([1.5, 1.5])


@pytest.mark.parametrize(
    ("demands", "capacity", "flow", "stays"),
    [
        ([5.0, 1.0], (4.0, 1.0), 3.5e-12, False),  # less than 1e-12 of the capacity of 4
        ([5.0, 1.0], (4.0, 1.0), 4.5e-12, True),
        ([5.0, 1.0], (8.0, 1.0), 4.5e-12, False),  # less than 1e-12 of the demand of 5
        ([5.0, 1.0], (8.0, 1.0), 5.5e-12, True),
        ([1e-3, 0.0], (4.0, 4.0), 1e-14, True),
        ([4.0, 0.0], (1e-3, 1e-3), 1e-14, True),
    ],
)
def test_flows_that_are_not_worth_an_entry(
    demands: list[float], capacity: tuple[float, float], flow: float, stays: bool
) -> None:
    assert shaped([flow, 0.0], demands, two_links(*capacity), refill=False) == [flow if stays else 0.0, 0.0]


@pytest.mark.parametrize(
    ("order", "said"), [(None, [1.0, 5.0]), ([0, 1], [3.0, 3.0]), ([1, 0], [1.0, 5.0]), ([0], [3.0, 0.0])]
)
def test_the_largest_demands_are_filled_first_or_in_the_order_given(order: list[int] | None, said: list[float]) -> None:
    """Two pairs share a link of 6."""
    network = Network.from_links(list("abcd"), [(0, 2, 9.0), (1, 2, 9.0), (2, 3, 6.0)], directed=True)
    paths = make_paths(network, [[0, 3], [1, 3]])
    given = None if order is None else np.array(order)
    assert shaped([0.0, 0.0], [3.0, 5.0], paths, order=given) == pytest.approx(said)
    assert shaped([3.0, 0.0], [3.0, 5.0], paths, order=given) == pytest.approx([3.0, 3.0 * (order != [0])])


def test_sums_of_many_are_exact_after_they_were_filled() -> None:
    """Two thousand pairs ask for 1 + 2^-44 of a link of 2000: what is left of it is rounded up a thousand times."""
    n = 2000
    links = [(node, n, 9.0) for node in range(n)] + [(n, n + 1, float(n))]
    network = Network.from_links([str(node) for node in range(n + 2)], links, directed=True)
    paths = make_paths(network, [[node, n + 1] for node in range(n)])
    found = shaped([0.0] * n, [1.0 + 2.0**-44] * n, paths)
    assert sum(found) == pytest.approx(n)


def test_what_is_over_is_scaled_to_just_below() -> None:
    assert shaped([8.0, 1.0], [50.0], two_ways(), refill=False) == pytest.approx([4.0, 1.0], rel=1e-13)
    assert shaped([4.0, 2.0], [3.0], two_ways(), refill=False) == pytest.approx([2.0, 1.0], rel=1e-13)
    assert shaped([3.0, 2.0], [2.5, 2.5], two_links(9.0, 1.0), refill=False) == pytest.approx([2.5, 1.0], rel=1e-13)
    assert shaped([2.0, 3.0], [2.5, 2.5], two_links(1.0, 9.0), refill=False) == pytest.approx([1.0, 2.5], rel=1e-13)


@pytest.mark.parametrize("more", [0.0, 2.0**-50])
def test_a_demand_or_link_is_never_used_up(more: float) -> None:
    """Sixteen roundings stay free: flows that meet it exactly, or are over by four, are scaled."""
    for demand, capacity in ((1.0, 9.0), (9.0, 1.0)):
        found = shaped([1.0 + more, 0.0], [demand, 9.0], two_links(capacity, 9.0), refill=False)
        assert KEEP * KEEP * (1.0 - 4e-16) <= found[0] <= KEEP < 1.0
    assert pytest.approx(1.0, abs=1e-14) == KEEP


def test_flows_that_just_fit_are_as_they_were() -> None:
    for demand, capacity in ((1.0, 9.0), (9.0, 1.0)):
        assert shaped([KEEP, 0.0], [demand, 0.0], two_links(capacity, 9.0), refill=False) == [KEEP, 0.0]


def test_flows_so_small_that_no_product_brings_them_down_are_dropped() -> None:
    """Three of the least number there is, over a link or a demand of two: two thirds of it are rounded up."""
    least = 5e-324
    links = [(0, 3, least * 9), (1, 3, least * 9), (2, 3, least * 9), (3, 4, least * 2), (5, 6, least * 2)]
    paths = make_paths(
        Network.from_links(list("abcdefg"), links, directed=True), [[0, 4], [1, 4], [2, 4], [5, 6]]
    )  # fmt: skip
    flows, demands = [least, least, least, least * 2], [least * 9] * 3 + [least * 2]
    assert shaped(flows, demands, paths, refill=False) == [0.0, 0.0, 0.0, least * 2]
    ways = [(0, via, least * 9) for via in (1, 2, 3)] + [(via, 4, least * 9) for via in (1, 2, 3)]
    one = make_paths(Network.from_links(list("abcdefg"), [*ways, (5, 6, least * 2)], directed=True), [[0, 4], [5, 6]])
    assert shaped([least] * 3 + [least * 2], [least * 2] * 2, one, refill=False) == [0.0, 0.0, 0.0, least * 2]


def test_preparing_calls_every_kernel_as_a_plan_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same types, so that each is compiled by then."""
    called: list[tuple[str, Any]] = []
    for name in ("compensated", "dead_paths", "fill", "scale_to_fit"):
        kernel = getattr(shim, name)

        def recorded(*given: Any, _name: str = name, _kernel: Any = kernel) -> Any:
            called.append((_name, tuple(numba.typeof(each) for each in given)))
            return _kernel(*given)

        monkeypatch.setattr(shim, name, recorded)
    for paths in (two_ways(), make_paths(two_ways().network, np.zeros((0, 2)))):
        shim.prepare(paths)
        prepared = copy.copy(called)
        called.clear()
        assert {name for name, _ in prepared} == {"compensated", "dead_paths", "fill", "scale_to_fit"}
        feasible_flows(paths, np.full(paths.n_paths, 9.0), np.full(paths.n_pairs, 3.0), paths.network.capacity)
        assert set(called) <= set(prepared)
        called.clear()
