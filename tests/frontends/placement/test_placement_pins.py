"""What pins, overlaps and evictions do, case by case, and what is said of a job for which they leave no room."""

from __future__ import annotations

import pytest

from copter_frontends.placement import PlacementError, Placer
from copter_frontends.placement.eviction import _cheapest
from copter_frontends.vocabulary import Allocation, Cluster


def on(*nodes: tuple[str, int]) -> Allocation:
    return Allocation("a", sum(gpus for _, gpus in nodes), nodes)


def placer(nodes: int, gpus_per_node: int = 8) -> Placer:
    return Placer(Cluster.of({"a": (nodes, gpus_per_node)}))


def sizes(previous: dict[str, Allocation]) -> dict[str, tuple[str, int]]:
    return {job: ("a", old.gpus) for job, old in previous.items()}


def test_a_job_without_room_beside_pins_is_left_out_and_the_others_are_placed() -> None:
    previous = {"p": on(("a-0", 5)), "q": on(("a-1", 5))}
    wanted = {**sizes(previous), "wide": ("a", 4), "small": ("a", 2)}
    allocations, moved, left_out = placer(2).place_what_fits(wanted, previous, ["p", "q"])
    assert left_out == ("wide",)
    assert list(allocations) == ["p", "q", "small"]
    assert not moved
    three = {**previous, "r": on(("a-2", 5))}
    wanted = {**sizes(three), "big": ("a", 8), "one": ("a", 1)}
    allocations, _, left_out = placer(3).place_what_fits(wanted, three, sorted(three))
    assert (list(allocations), left_out) == ([*three, "one"], ("big",))
    every, _, nobody = placer(3).place_what_fits({"x": ("a", 8)}, {}, [])
    assert (list(every), nobody) == (["x"], ())


def test_a_pin_that_cannot_be_kept_is_an_error_not_a_job_left_out() -> None:
    previous = {"p": on(("a-0", 6)), "q": on(("a-0", 6))}
    with pytest.raises(PlacementError, match="pinned before it"):
        placer(2).place_what_fits(sizes(previous), previous, ["p", "q"])
    with pytest.raises(PlacementError, match="'b'"):
        placer(2).place_what_fits({"x": ("b", 1)}, {}, [])


@pytest.mark.parametrize("again", [False, True], ids=["first", "from the last placement"])
@pytest.mark.parametrize(
    ("wanted", "previous", "message"),
    [
        ({}, {"p": on(("a-0", 2))}, "pinned but not wanted"),
        ({"p": ("a", 2)}, {}, "has no previous allocation"),
        ({"p": ("a", 4)}, {"p": on(("a-0", 2))}, "pinned to 2 GPUs of 'a' but wanted with 4"),
        ({"p": ("a", 2)}, {"p": on(("a-9", 2))}, "not among the cluster's"),
        ({"p": ("a", 2)}, {"p": on(("a-0", 1), ("a-1", 1))}, "not 2 GPUs on one node"),
    ],
)
def test_a_pin_without_sense_is_named(
    again: bool, wanted: dict[str, tuple[str, int]], previous: dict[str, Allocation], message: str
) -> None:
    made = placer(2)
    if again:
        made.place({"x": ("a", 1)}, {})
    with pytest.raises(PlacementError, match=message):
        made.place(wanted, previous, ["p"])


def test_where_previous_allocations_overlap_the_larger_jobs_stay() -> None:
    previous = {"b": on(("a-0", 2)), "a": on(("a-0", 2)), "z": on(("a-0", 4)), "y": on(("a-0", 4))}
    allocations, moved = placer(2).place(sizes(previous), previous)
    assert allocations["y"] is previous["y"]
    assert allocations["z"] is previous["z"]
    assert moved == {"a", "b"}
    made = placer(2)
    made.place({"b": ("a", 2)}, {"b": on(("a-0", 2))})  # the same from the placement before
    allocations, moved = made.place(sizes(previous), previous)
    assert moved == {"a", "b"}
    assert all(given.nodes[0][0] == "a-1" for job, given in allocations.items() if job in moved)


def test_a_job_of_a_whole_node_keeps_it_and_one_of_several_all_of_them() -> None:
    previous = {"one": on(("a-2", 8)), "two": on(("a-0", 8), ("a-3", 8))}
    wanted = {**sizes(previous), "new": ("a", 8)}
    allocations, moved = placer(4).place(wanted, previous)
    assert (allocations["one"], allocations["two"]) == (previous["one"], previous["two"])
    assert allocations["new"] == on(("a-1", 8))
    assert not moved


def test_jobs_on_irregular_nodes_are_placed_anew() -> None:
    previous = {"two": on(("a-0", 8), ("a-1", 4), ("a-2", 4)), "gone": on(("a-7", 8), ("a-8", 8))}
    allocations, moved = placer(5).place(sizes(previous), previous)
    assert all(gpus == 8 for given in allocations.values() for _, gpus in given.nodes)
    assert [len(given.nodes) for given in allocations.values()] == [2, 2]
    assert moved == {"two", "gone"}


@pytest.mark.parametrize(
    ("jobs", "below", "lacking", "cheapest"),
    [
        ({"a": 4, "b": 2, "c": 1}, 8, 4, (4, ["a"])),
        ({"a": 4, "b": 2, "c": 1}, 8, 3, (3, ["b", "c"])),
        ({"a": 4, "b": 2, "c": 2}, 4, 3, (4, ["b", "c"])),
        ({"a": 4, "b": 2, "c": 1}, 8, 7, (7, ["a", "b", "c"])),
        ({"a": 4, "b": 2, "c": 1}, 8, 8, None),
        ({"a": 4}, 4, 1, None),
        ({"a": 5, "b": 2, "c": 2, "d": 1}, 8, 6, (6, ["a", "d"])),
        ({"a": 7, "b": 3, "c": 2}, 8, 6, (7, ["a"])),
        ({"a": 6, "b": 2, "c": 1, "d": 1}, 8, 5, (6, ["a"])),
        ({"a": 6, "b": 3}, 8, 4, (6, ["a"])),
    ],
)
def test_the_cheapest_jobs_to_evict(
    jobs: dict[str, int], below: int, lacking: int, cheapest: tuple[int, list[str]] | None
) -> None:
    assert _cheapest(jobs, below, lacking) == cheapest


def test_what_is_left_beside_pins_is_said_with_their_names() -> None:
    previous = {f"p{i}": on((f"a-{i}", 1)) for i in range(6)}
    wanted = {**sizes(previous), "one": ("a", 8), "three": ("a", 24)}
    with pytest.raises(PlacementError) as caught:
        placer(8).place(wanted, previous, sorted(previous))
    assert caught.value.job_id == "three"
    assert "wants 24 GPUs of 'a' as 3 whole nodes, but only 2 are left" in str(caught.value)
    assert "'p4' and 1 more" in str(caught.value)
    wanted = {**sizes(previous), "two": ("a", 16)}
    allocations, _ = placer(8).place(wanted, previous, sorted(previous))  # just enough
    assert {name for name, _ in allocations["two"].nodes} == {"a-6", "a-7"}


def test_only_as_many_nodes_are_cleared_as_are_lacking() -> None:
    previous = {f"s{i}": on((f"a-{i}", 1 + i)) for i in range(3)}
    wanted = {**sizes(previous), "w": ("a", 16)}
    allocations, moved = placer(4).place(wanted, previous)
    assert moved == {"s0"}
    assert {name for name, _ in allocations["w"].nodes} == {"a-0", "a-3"}
    with pytest.raises(
        PlacementError, match=r"as 3 whole nodes, but only 2 are left without pinned jobs \('s1', 's2'\)"
    ):
        placer(4).place({**sizes(previous), "w": ("a", 24)}, previous, ["s1", "s2"])
