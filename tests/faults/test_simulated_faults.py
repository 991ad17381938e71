"""The service under simulated faults: a sample of worlds, the seeds that once broke a promise, and replay."""

from __future__ import annotations

from collections import Counter

import pytest

for module in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(module, reason="the extra 'serve' is not installed")

from tests.faults.service_world import run_world  # noqa: E402 (after the skip)

BROKE = {
    20: "a node came back as another type, and its jobs stayed in the plan",
    45: "a refused delta was back after a loss of power: the cut of a failed write was not synced",
    387: "a record written in two parts was taken for damage",
    1: "a disk that failed at a start was a bare OSError",
    89: "a snapshot made while a delta waited kept jobs on a node that had gone",
    432: "changes of a plan that the journal did not have were read back: a node was given out twice",
    2000592: "a scheduler began while a plan was on its way to the disk, and changed another plan than that",
    1001379: "two senders of one delta, whose first attempt was taken back, both had it done",
    500315: "a delta that was done before a crash was refused when it was sent again while the service stopped",
}


@pytest.mark.parametrize("seed", BROKE)
def test_seeds_that_broke_a_promise(seed: int) -> None:
    run_world(seed, 300, Counter())


def test_a_sample_of_worlds() -> None:
    counts: Counter[str] = Counter()
    for seed in range(5_000, 5_020):
        run_world(seed, 300, counts)
    for met in ("power lost", "service killed", "killed inside a disk call", "syncs that failed", "second starts"):
        assert counts[met], met
    assert counts["deltas acknowledged"] > 1_000


def test_a_seed_replays() -> None:
    first, again = Counter[str](), Counter[str]()
    assert run_world(77, 200, first) == run_world(77, 200, again)
    assert first == again
