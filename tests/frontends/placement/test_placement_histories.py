"""Random clusters and histories: what must hold of every placement, against an independent count of free slots."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.placement import PlacementError, Placer, settling
from copter_frontends.vocabulary import Allocation, Cluster

Wanted = dict[str, tuple[str, int]]


def check_placement(
    cluster: Cluster,
    wanted: Wanted,
    previous: Mapping[str, Allocation],
    allocations: Mapping[str, Allocation],
    moved: Collection[str],
) -> None:
    """Rules of thesis 3.3.3, and the exact set of moves."""
    used: Counter[str] = Counter()
    assert allocations.keys() == wanted.keys()
    for job, allocation in allocations.items():
        assert (allocation.gpu_type, allocation.gpus) == wanted[job]
        assert list(allocation.nodes) == sorted(allocation.nodes)
        size = cluster.type_of(allocation.gpu_type).gpus_per_node
        whole, part = divmod(allocation.gpus, size)
        assert [gpus for _, gpus in allocation.nodes] == [size] * whole + [part] * (part > 0)
        assert whole == 0 or part == 0
        assert len({node for node, _ in allocation.nodes}) == len(allocation.nodes)
        for node, gpus in allocation.nodes:
            assert cluster.nodes[node].gpu_type == allocation.gpu_type
            used[node] += gpus
        old = previous.get(job)
        if old is not None and (old.gpu_type, old.gpus) == wanted[job]:
            assert (job in moved) == (old.nodes != allocation.nodes)
            assert job in moved or allocation is old
        else:
            assert job not in moved
    assert all(gpus <= cluster.nodes[node].gpus for node, gpus in used.items())


def fits_around(cluster: Cluster, wanted: Wanted, previous: Mapping[str, Allocation], fixed: Collection[str]) -> bool:
    """Whether all jobs fit with the fixed ones where they were, by counting slots (sizes are powers of two)."""
    free = {node.id: node.gpus for node in cluster.nodes.values()}
    for job in fixed:
        for node, gpus in previous[job].nodes:
            free[node] -= gpus
    rest: dict[str, Counter[int]] = defaultdict(Counter)
    for job, (gpu_type, gpus) in wanted.items():
        if job not in fixed:
            rest[gpu_type][gpus] += 1
    for gpu_type, sizes in rest.items():
        size = cluster.type_of(gpu_type).gpus_per_node
        left = sorted(free[node.id] for node in cluster.nodes_of(gpu_type))
        needed = sum(gpus // size * count for gpus, count in sizes.items() if gpus >= size)
        if left.count(size) < needed:
            return False
        left = left[: len(left) - needed]  # entirely free nodes are the last
        parts = {gpus: count for gpus, count in sizes.items() if gpus < size}
        for slot in parts:
            taken = sum(gpus // slot * count for gpus, count in parts.items() if gpus >= slot)
            if sum(gpus // slot for gpus in left) < taken:
                return False
    return True


def sizes_of(cluster: Cluster, gpu_type: str) -> list[int]:
    size = cluster.type_of(gpu_type).gpus_per_node
    parts = [2**k for k in range(size.bit_length()) if 2**k < size]
    return [*parts, *parts, *(size * n for n in (1, 1, 2, 3))]


def next_wanted(rng: random.Random, cluster: Cluster, wanted: Wanted, first_id: int) -> Wanted:
    """A fifth of the jobs leave, a fifth change, new ones come until the types are (nearly) full."""
    after: Wanted = {}
    room = {name: cluster.capacity(name) for name in cluster.types}

    def ask(job: str, gpu_type: str, gpus: int) -> None:
        if gpus <= room[gpu_type]:
            room[gpu_type] -= gpus
            after[job] = (gpu_type, gpus)

    for job, (gpu_type, gpus) in wanted.items():
        luck = rng.random()
        if luck < 0.6:
            ask(job, gpu_type, gpus)
        elif luck < 0.8:
            other = rng.choice(list(cluster.types))
            ask(job, other, rng.choice(sizes_of(cluster, other)))
    for n in range(rng.randrange(3 * len(cluster.nodes))):
        gpu_type = rng.choice(list(cluster.types))
        ask(f"job-{first_id + n}", gpu_type, rng.choice(sizes_of(cluster, gpu_type)))
    return after


clusters = st.dictionaries(
    st.sampled_from(["a100", "t4", "rtx"]),
    st.tuples(st.integers(1, 7), st.sampled_from([1, 2, 4, 8, 16])),
    min_size=1,
    max_size=3,
)


@settings(max_examples=120, deadline=None)
@given(clusters, st.integers(0, 2**32))
def test_a_placement_is_always_found_and_moves_only_what_must(counts: dict[str, tuple[int, int]], seed: int) -> None:
    rng, cluster = random.Random(seed), Cluster.of(counts)
    placer, wanted, previous = Placer(cluster), Wanted(), dict[str, Allocation]()
    for round_ in range(12):
        wanted = next_wanted(rng, cluster, wanted, 1000 * round_)
        allocations, moved = placer.place(wanted, previous)
        check_placement(cluster, wanted, previous, allocations, moved)
        unchanged = [job for job, old in previous.items() if wanted.get(job) == (old.gpu_type, old.gpus)]
        for gpu_type in cluster.types:
            of_type = {job: want for job, want in wanted.items() if want[0] == gpu_type}
            stays = [job for job in unchanged if job in of_type]
            forced = not fits_around(cluster, of_type, previous, stays)
            assert any(job in of_type for job in moved) == forced
        previous = allocations


@settings(max_examples=60, deadline=None)
@given(clusters, st.integers(0, 2**32))
def test_evicting_smaller_jobs_is_enough_for_powers_of_two(counts: dict[str, tuple[int, int]], seed: int) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("packed a whole type again although eviction is enough")

    rng, cluster = random.Random(seed), Cluster.of(counts)
    placer, wanted, previous = Placer(cluster), Wanted(), dict[str, Allocation]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settling, "_repack", refuse)
        for round_ in range(10):
            wanted = next_wanted(rng, cluster, wanted, 1000 * round_)
            allocations, moved = placer.place(wanted, previous)
            check_placement(cluster, wanted, previous, allocations, moved)
            previous = allocations


@settings(max_examples=60, deadline=None)
@given(clusters, st.integers(0, 2**32))
def test_the_order_of_the_mappings_and_earlier_calls_do_not_matter(
    counts: dict[str, tuple[int, int]], seed: int
) -> None:
    rng, cluster = random.Random(seed), Cluster.of(counts)
    placer, wanted, previous = Placer(cluster), Wanted(), dict[str, Allocation]()
    for round_ in range(4):
        wanted = next_wanted(rng, cluster, wanted, 1000 * round_)
        answer = placer.place(wanted, previous)
        shuffled = dict(rng.sample(sorted(wanted.items()), len(wanted)))
        assert Placer(cluster).place(shuffled, dict(rng.sample(sorted(previous.items()), len(previous)))) == answer
        previous = answer[0]


@settings(max_examples=120, deadline=None)
@given(clusters, st.integers(0, 2**32))
def test_pins_are_kept_and_refused_only_when_nothing_fits_around_them(
    counts: dict[str, tuple[int, int]], seed: int
) -> None:
    rng, cluster = random.Random(seed), Cluster.of(counts)
    placer, wanted, previous = Placer(cluster), Wanted(), dict[str, Allocation]()
    for round_ in range(6):
        wanted = next_wanted(rng, cluster, wanted, 1000 * round_)
        same = [job for job, old in previous.items() if wanted.get(job) == (old.gpu_type, old.gpus)]
        pinned = rng.sample(same, rng.randint(0, len(same)))
        if fits_around(cluster, wanted, previous, pinned):
            allocations, moved = placer.place(wanted, previous, pinned)
            assert all(allocations[job] is previous[job] for job in pinned)
        else:
            with pytest.raises(PlacementError, match="pinned jobs"):
                placer.place(wanted, previous, pinned)
            allocations, moved = placer.place(wanted, previous)
        check_placement(cluster, wanted, previous, allocations, moved)
        previous = allocations


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.sampled_from([4, 8]), st.integers(0, 2**32))
def test_jobs_survive_the_loss_and_return_of_nodes(nodes: int, size: int, seed: int) -> None:
    rng, cluster = random.Random(seed), Cluster.of({"a100": (nodes, size)})
    placer, wanted, previous = Placer(cluster), Wanted(), dict[str, Allocation]()
    for round_ in range(8):
        lost = rng.sample(sorted(cluster.nodes), rng.randrange(len(cluster.nodes)))
        cluster.remove_nodes(lost)
        cluster.add_nodes("a100", rng.randrange(len(lost) + 1))
        wanted = next_wanted(rng, cluster, wanted, 1000 * round_)
        allocations, moved = placer.place(wanted, previous)
        check_placement(cluster, wanted, previous, allocations, moved)
        homeless = {
            job
            for job, old in previous.items()
            if wanted.get(job) == (old.gpu_type, old.gpus) and any(node not in cluster.nodes for node, _ in old.nodes)
        }
        assert homeless <= moved
        previous = allocations


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 6), st.sampled_from([3, 5, 6, 7, 10, 12]), st.integers(0, 2**32))
def test_nodes_of_other_sizes_place_whatever_fits(nodes: int, size: int, seed: int) -> None:
    rng, cluster = random.Random(seed), Cluster.of({"a100": (nodes, size)})
    placer, wanted, previous = Placer(cluster), Wanted(), dict[str, Allocation]()
    for round_ in range(6):
        asked = next_wanted(rng, cluster, wanted, 1000 * round_)
        if fits_around(cluster, asked, {}, ()):
            wanted = asked
            allocations, moved = placer.place(wanted, previous)
            check_placement(cluster, wanted, previous, allocations, moved)
            previous = allocations
        else:
            with pytest.raises(PlacementError, match="free together"):
                placer.place(asked, previous)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 6), st.integers(2, 12), st.integers(0, 2**32))
def test_any_sizes_below_a_node_are_placed_or_refused_never_misplaced(nodes: int, size: int, seed: int) -> None:
    rng, cluster = random.Random(seed), Cluster.of({"a100": (nodes, size)})
    placer, previous, refusals = Placer(cluster), dict[str, Allocation](), list[str]()
    for round_ in range(8):
        wanted = {job: (old.gpu_type, old.gpus) for job, old in previous.items() if rng.random() < 0.7}
        room = nodes * size - sum(gpus for _, gpus in wanted.values())
        for n in range(2 * nodes):
            gpus = rng.randint(1, size)
            if gpus <= room:
                wanted[f"job-{round_}-{n}"], room = ("a100", gpus), room - gpus
        try:
            allocations, moved = placer.place(wanted, previous)
        except PlacementError as refusal:
            refusals.append(str(refusal))
            continue
        check_placement(cluster, wanted, previous, allocations, moved)
        previous = allocations
    assert all("free together" in refusal for refusal in refusals)
