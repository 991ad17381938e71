"""A placer that remembers its last placement places as one that has never placed anything."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from copter_frontends.placement import PlacementError, Placer
from copter_frontends.vocabulary import Allocation, Cluster

SIZES = {"k": (1, 2, 3, 4, 8), "long": (1, 2, 4, 8, 16, 24)}


def drawn(rng: np.random.Generator, free: dict[str, int]) -> tuple[str, int] | None:
    """A size that fits, and is taken off."""
    kind = str(rng.choice(list(SIZES)))
    gpus = int(rng.choice(SIZES[kind]))
    if gpus > free[kind]:
        return None
    free[kind] -= gpus
    return kind, gpus


def placed_anew(
    cluster: Cluster, wanted: dict[str, tuple[str, int]], held: dict[str, Allocation], pins: list[str]
) -> tuple[tuple[dict[str, Allocation], frozenset[str]] | None, str]:
    """What a placer without memory returns, or what it complains of."""
    try:
        return Placer(cluster).place(wanted, held, pins), ""
    except PlacementError as error:
        return None, str(error)


@pytest.mark.parametrize("seed", range(12))
def test_a_placement_depends_on_its_arguments_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cluster = Cluster.of({"k": (12, 4), "long": (8, 8)})
    placer, held, wanted = Placer(cluster), dict[str, Allocation](), dict[str, tuple[str, int]]()
    refused = 0
    for step in range(40):
        for job in [job for job in wanted if rng.random() < 0.15]:
            del wanted[job]
            if rng.random() < 0.5:
                held.pop(job, None)
        free = {"k": 48, "long": 64}
        for kind, gpus in wanted.values():
            free[kind] -= gpus
        for at in range(6):
            new = drawn(rng, free)
            if new is not None:
                wanted[f"j{step}-{at}" if rng.random() < 0.8 or not wanted else str(rng.choice(list(wanted)))] = new
        pins = [job for job in wanted if job in held and rng.random() < 0.1]
        for job in pins:
            wanted[job] = (held[job].gpu_type, held[job].gpus)
        if seed % 3 == 0 and step % 9 == 8:
            cluster.add_nodes("long", 1)
        if seed % 4 == 1 and step % 7 == 6:
            placer = pickle.loads(pickle.dumps(placer))
            placer.cluster = cluster
        expected, complaint = placed_anew(cluster, wanted, held, pins)
        if expected is None:
            with pytest.raises(PlacementError, match=re.escape(complaint)):
                placer.place(wanted, held, pins)
            refused += 1
            for job in list(wanted)[: len(wanted) // 2]:
                del wanted[job]
            continue
        result = placer.place(wanted, held, pins)
        assert result == expected
        assert list(result[0]) == list(wanted)
        held = dict(result[0])
        if rng.random() < 0.3:  # somebody else moves a job: an equal allocation that is another object, or none
            job = str(rng.choice(list(held)))
            held[job] = Allocation(held[job].gpu_type, held[job].gpus, held[job].nodes)
    assert refused < 35


@pytest.mark.parametrize("seed", range(12))
def test_changes_are_placed_as_all_jobs_are(seed: int) -> None:
    """Each step may be refused: then the refused job is left out, as a policy does, and the step goes on."""
    rng = np.random.default_rng(seed)
    cluster = Cluster.of({"k": (12, 4), "long": (8, 8)})
    placer, held, wanted = Placer(cluster), dict[str, Allocation](), dict[str, tuple[str, int]]()
    last, patched = dict(held), 0
    before = dict(wanted)
    for step in range(40):
        for job in [job for job in wanted if rng.random() < 0.15]:
            del wanted[job]
            if rng.random() < 0.5:
                held.pop(job, None)
        free = {"k": 48, "long": 64}
        for kind, gpus in wanted.values():
            free[kind] -= gpus
        for at in range(6):
            new = drawn(rng, free)
            if new is not None:
                wanted[f"j{step}-{at}" if rng.random() < 0.8 or not wanted else str(rng.choice(list(wanted)))] = new
        pins = [job for job in wanted if job in held and rng.random() < 0.1]
        for job in pins:
            wanted[job] = (held[job].gpu_type, held[job].gpus)
        if step % 9 == 8:
            cluster.add_nodes("long", 1)
        changed = {
            job
            for job in {*before, *wanted, *held, *last}
            if before.get(job) != wanted.get(job) or last.get(job) is not held.get(job)
        }
        while True:
            expected, complaint = placed_anew(cluster, wanted, held, pins)
            refusal: PlacementError | None = None
            try:
                found = placer.place_changes({job: wanted.get(job) for job in changed}, held, pins)
                patched += found is not None
                if found is None:
                    found = placer.place(wanted, held, pins)[0], set(wanted) | set(held)
            except PlacementError as error:
                refusal = error
            if refusal is None:
                break
            assert str(refusal) == complaint
            assert refusal.job_id is not None
            wanted.pop(refusal.job_id)
            changed.add(refusal.job_id)
            pins = [job for job in pins if job in wanted]
        assert expected is not None
        result, touched = found
        assert result == expected[0]
        for job in result.keys() | held.keys():
            assert job in touched or result.get(job) is held.get(job)
        held, last, before = result, dict(result), dict(wanted)
        if rng.random() < 0.3:  # somebody else moves a job: an equal allocation that is another object
            job = str(rng.choice(list(held)))
            held[job] = Allocation(held[job].gpu_type, held[job].gpus, held[job].nodes)
    assert patched > 10, "else nothing was tested"
