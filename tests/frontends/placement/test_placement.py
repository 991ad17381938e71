"""The placer's rules, one by one, on clusters small enough to check by eye."""

from __future__ import annotations

import copy

import pytest

from copter_frontends.placement import PlacementError, Placer
from copter_frontends.vocabulary import Allocation, Cluster, Node


def on(*nodes: tuple[str, int], gpu_type: str = "a") -> Allocation:
    return Allocation(gpu_type, sum(gpus for _, gpus in nodes), nodes)


def placer(nodes: int, gpus_per_node: int = 8) -> Placer:
    return Placer(Cluster.of({"a": (nodes, gpus_per_node)}))


def test_small_jobs_share_the_fullest_node_that_fits() -> None:
    wanted = {"new": ("a", 2), "x": ("a", 4), "y": ("a", 2)}
    previous = {"x": on(("a-1", 4)), "y": on(("a-2", 2))}
    allocations, moved = placer(3).place(wanted, previous)
    assert allocations["new"] == on(("a-1", 2))
    assert not moved


def test_unchanged_jobs_keep_the_very_same_object() -> None:
    previous = {"x": on(("a-1", 4)), "w": on(("a-0", 8), ("a-2", 8)), "one": on(("a-3", 8))}
    wanted = {job: ("a", old.gpus) for job, old in previous.items()}
    allocations, moved = placer(4).place(wanted, previous)
    assert all(allocations[job] is previous[job] for job in previous)
    assert list(allocations) == list(wanted)
    assert moved == frozenset()


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 4), (3, 1)])
def test_a_resized_job_keeps_as_many_of_its_nodes_as_it_can(before: int, after: int) -> None:
    mine = [("a-0", 8), ("a-2", 8), ("a-5", 8)][:before]
    previous = {"w": on(*mine)}
    wanted = {"big": ("a", 16), "w": ("a", 8 * after)}
    allocations, moved = placer(8).place(wanted, previous)
    assert len(set(allocations["w"].nodes) & set(mine)) == min(before, after)
    assert not set(allocations["w"].nodes) & set(allocations["big"].nodes)
    assert not moved


def test_a_job_that_grows_from_part_of_a_node_to_the_whole_stays_on_it() -> None:
    allocations, _ = placer(4).place({"w": ("a", 8)}, {"w": on(("a-2", 4))})
    assert allocations["w"] == on(("a-2", 8))


def test_a_whole_node_job_evicts_the_node_with_fewest_small_gpus() -> None:
    previous = {"p": on(("a-0", 4)), "q": on(("a-1", 2)), "r": on(("a-2", 4))}
    wanted = {**{job: ("a", old.gpus) for job, old in previous.items()}, "w": ("a", 8)}
    allocations, moved = placer(3).place(wanted, previous)
    assert allocations["w"] == on(("a-1", 8))
    assert moved == {"q"}
    assert allocations["q"].nodes[0][0] in {"a-0", "a-2"}


def test_on_equal_gpus_the_node_with_fewer_jobs_is_evicted() -> None:
    previous = {"p1": on(("a-0", 2)), "p2": on(("a-0", 2)), "q": on(("a-1", 4))}
    wanted = {**{job: ("a", old.gpus) for job, old in previous.items()}, "w": ("a", 8)}
    allocations, moved = placer(2).place(wanted, previous)
    assert moved == {"q"}
    assert allocations["q"] == on(("a-0", 4))


def test_a_small_job_evicts_only_as_much_as_it_needs() -> None:
    previous = {"p": on(("a-0", 2)), "q": on(("a-0", 1)), "r": on(("a-1", 2)), "s": on(("a-1", 1))}
    wanted = {**{job: ("a", old.gpus) for job, old in previous.items()}, "new": ("a", 2)}
    allocations, moved = placer(2, 4).place(wanted, previous)  # one GPU is free on either node
    assert len(moved) == 1
    assert moved <= {"q", "s"}
    assert allocations["new"].gpus == 2


def test_fewest_gpus_are_evicted_even_if_another_node_lacks_less() -> None:
    previous = {
        "pin": on(("a-0", 1)),
        "x": on(("a-0", 4)),
        "y": on(("a-0", 4)),
        "big": on(("a-1", 8)),
        "z": on(("a-1", 2)),
    }
    wanted = {**{job: ("a", old.gpus) for job, old in previous.items()}, "new": ("a", 8)}
    allocations, moved = placer(2, 16).place(wanted, previous, pinned=["pin"])
    assert moved == {"z"}  # a-0 lacks one GPU but would have to lose four
    assert allocations["new"] == on(("a-1", 8))


def test_jobs_of_vanished_nodes_are_moved() -> None:
    cluster = Cluster.of({"a": (3, 8)})
    it = Placer(cluster)
    wanted = {"x": ("a", 4), "w": ("a", 16)}
    previous = {"x": on(("a-0", 4)), "w": on(("a-1", 8), ("a-2", 8))}
    assert it.place(wanted, previous)[1] == frozenset()
    cluster.remove_nodes(["a-2"])
    cluster.add_nodes("a", 1)
    allocations, moved = it.place(wanted, previous)
    assert moved == {"w"}
    assert allocations["x"] is previous["x"]
    assert allocations["w"] == on(("a-1", 8), ("a-3", 8))


def test_a_change_of_type_or_count_is_no_move() -> None:
    it = Placer(Cluster.of({"a": (2, 8), "b": (2, 4)}))
    previous = {"x": on(("a-0", 4)), "y": on(("a-0", 4))}
    allocations, moved = it.place({"x": ("b", 4), "y": ("a", 2)}, previous)
    assert allocations["x"].gpu_type == "b"
    assert not moved


def test_overlapping_or_irregular_previous_allocations_are_mended() -> None:
    previous = {
        "big": on(("a-0", 8), ("a-1", 8)),
        "late": on(("a-1", 4)),  # overlaps a larger job
        "split": on(("a-2", 1), ("a-3", 1)),
        "twice": Allocation("a", 16, (("a-3", 8), ("a-3", 8))),
        "nowhere": Allocation("a", 1),
    }
    wanted = {job: ("a", old.gpus) for job, old in previous.items()}
    allocations, moved = placer(5).place(wanted, previous)
    assert allocations["big"] is previous["big"]
    assert moved == {"late", "split", "twice", "nowhere"}
    assert placer(5).place(dict(reversed(wanted.items())), previous) == (allocations, moved)


def test_pinned_jobs_keep_their_nodes_and_others_move_around_them() -> None:
    previous = {"p": on(("a-0", 1)), "q": on(("a-1", 4))}
    wanted = {"p": ("a", 1), "q": ("a", 4), "w": ("a", 8)}
    allocations, moved = placer(2).place(wanted, previous, pinned=["p"])
    assert allocations["p"] is previous["p"]
    assert allocations["w"] == on(("a-1", 8))
    assert moved == {"q"}


def test_sizes_that_do_not_divide_each_other_are_packed_anew_when_need_be() -> None:
    previous = {"p": on(("a-0", 4)), "q": on(("a-0", 3)), "r": on(("a-1", 4)), "s": on(("a-1", 3))}
    wanted = {**{job: ("a", old.gpus) for job, old in previous.items()}, "new": ("a", 2)}
    allocations, moved = placer(2).place(wanted, previous)  # 4 + 4 and 3 + 3 + 2 is the only way
    home = {job: allocation.nodes[0][0] for job, allocation in allocations.items()}
    assert home["p"] == home["r"] != home["q"] == home["s"] == home["new"]
    assert moved == {job for job in previous if allocations[job] is not previous[job]}
    assert len(moved) == 2


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"j": ("v100", 1)}, "job 'j': unknown GPU type 'v100'; the cluster has: a"),
        ({"j": ("a", 12)}, "job 'j': wants 12 GPUs.*whole nodes: 8 or 16 GPUs"),
        ({"j": ("a", 0)}, "job 'j': wants 0 GPUs.*must be >= 1"),
        ({"j": ("a", -8)}, "job 'j': wants -8 GPUs"),
        ({"j": ("a", 1.5)}, "whole number of GPUs"),
        ({"j": ("a", "2")}, "whole number of GPUs"),
        ({"j": ("a",)}, "must be a tuple"),
        ({"j": ["a", 1]}, "tuple"),
        ({"j": ("a", 8), "k": ("a", 16)}, "'a' is over-committed: the jobs want 24 GPUs and its 2 nodes have 16"),
        ({"z": ("b", 1), "c": ("a", 9), "d": ("x", 1)}, "job 'c'"),
    ],
)
def test_impossible_wants_are_refused(wanted: dict[str, tuple[str, int]], words: str) -> None:
    it, before = placer(2), copy.deepcopy(wanted)
    with pytest.raises(PlacementError, match=words):
        it.place(wanted, {})
    assert wanted == before
    assert it.place({"x": ("a", 4)}, {})[0] == {"x": on(("a-0", 4))}


@pytest.mark.parametrize(
    ("wanted", "previous", "pinned", "words"),
    [
        ({}, {"p": on(("a-0", 1))}, ["p"], "'p' is pinned but not wanted"),
        ({"p": ("a", 1)}, {}, ["p"], "'p' is pinned but has no previous"),
        ({"p": ("a", 2)}, {"p": on(("a-0", 1))}, ["p"], "'p' is pinned to 1 GPUs of 'a' but wanted with 2"),
        ({"p": ("a", 1)}, {"p": on(("gone", 1))}, ["p"], "'p' is pinned to nodes that are not.*gone"),
        ({"p": ("a", 2)}, {"p": on(("a-0", 1), ("a-1", 1))}, ["p"], "'p' is pinned to .* which are not 2 GPUs on one"),
        (
            {"p": ("a", 8), "q": ("a", 8)},
            {"p": on(("a-0", 8)), "q": on(("a-0", 8))},
            ["p", "q"],
            "'q' is pinned to nodes .* that the jobs pinned before it",
        ),
        (
            {"p": ("a", 1), "q": ("a", 1), "v": ("a", 8)},
            {"p": on(("a-0", 1)), "q": on(("a-1", 1))},
            ["p", "q"],
            "'v': wants 8 GPUs.* but only 0 are left without pinned jobs .'p', 'q'.",
        ),
        (
            {"p": ("a", 5), "q": ("a", 5), "v": ("a", 4)},
            {"p": on(("a-0", 5)), "q": on(("a-1", 5))},
            ["p", "q"],
            "'v': no node of type 'a' has 4 GPUs free together.*'p', 'q'",
        ),
    ],
)
def test_pins_that_cannot_be_kept_are_refused(
    wanted: dict[str, tuple[str, int]], previous: dict[str, Allocation], pinned: list[str], words: str
) -> None:
    before = copy.deepcopy((wanted, previous))
    with pytest.raises(PlacementError, match=words):
        placer(2).place(wanted, previous, pinned)
    assert (wanted, previous) == before


def test_a_packing_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PlacementError, match=r"no node of type 'a' has 4 GPUs free together"):
        placer(2, 6).place(dict.fromkeys("xyz", ("a", 4)), {})


def test_nodes_of_another_size_are_refused() -> None:
    cluster = Cluster.of({"a": (1, 8)})
    cluster.nodes["odd"] = Node("odd", "a", 4)
    with pytest.raises(PlacementError, match="'odd' has 4 GPUs of type 'a', which is of 8 GPUs per node"):
        Placer(cluster).place({}, {})
    cluster.nodes["odd"] = Node("odd", "z", 4)
    with pytest.raises(PlacementError, match="'odd' has 4 GPUs of type 'z', which is unknown"):
        Placer(cluster).place({}, {})


def test_nothing_wanted_is_nothing_placed() -> None:
    assert placer(2).place({}, {"x": on(("a-0", 4))}) == ({}, frozenset())
