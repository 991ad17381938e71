"""The service under simulated faults: a sample of worlds, the seeds that once broke a promise, and replay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

for module in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(module, reason="the extra 'serve' is not installed")

from tests.faults import simulate  # noqa: E402 (after the skip)
from tests.faults.service_world import run_world  # noqa: E402
from tests.faults.shard_world import run_shards  # noqa: E402

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
    run_world(seed, 300, Counter(), astray=False)


@pytest.mark.parametrize("seed", [1_001_660, 1_013_797, 1_014_371, 1_016_962, 1_007_547, 1_016_260])
def test_seeds_of_the_long_run_that_broke_a_promise(seed: int) -> None:
    simulate.run(seed, simulate.STEPS, Counter())


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


def test_a_sample_of_worlds_over_shards() -> None:
    counts: Counter[str] = Counter()
    for seed in range(8_000, 8_012):
        run_shards(seed, 100, counts)
    for met in (
        "power lost", "coordinators killed", "shards killed", "messages that came twice", "second coordinators",
        "messages that came late and were refused", "replaced coordinators refused", "shards that joined or left",
    ):  # fmt: skip
        assert counts[met], met
    assert counts["batches acknowledged"] > 500


def test_a_seed_over_shards_replays() -> None:
    first, again = Counter[str](), Counter[str]()
    assert run_shards(78, 60, first) == run_shards(78, 60, again)
    assert first == again


def test_a_run_goes_on_from_its_counts_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "STEPS", 20)
    counts = tmp_path / "counts.json"
    for steps in (40, 60):
        monkeypatch.setattr("sys.argv", ["simulate", "--steps", str(steps), "--seed", "19", "--counts", str(counts)])
        assert simulate.main() == 0
    known = simulate.json.loads(counts.read_text())
    assert (known["next_seed"], known["counts"]["steps"], known["counts"]["shards: steps"]) == (22, 60, 20)
    page = simulate.page_of(known)
    assert "60 steps in 3 worlds from seed 19 on, 20 of them over shards;\npromises broken: 0." in page
