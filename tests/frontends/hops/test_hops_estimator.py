"""The throughput estimator: formulas (1)-(5), the three layers, what it learns, and bad input (HP3-HP8)."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.hops import (
    DataLoading,
    IterationTimes,
    Links,
    LoadingState,
    ThroughputDatabase,
    ThroughputDatabaseError,
    ThroughputError,
    ThroughputEstimator,
    fit_loading,
)
from copter_frontends.policies.hops.server_speeds import AVERAGE_WEIGHT
from copter_frontends.vocabulary import InvalidJobError, Job

LINKS = Links(within_server=1e9, between_servers=1e8)
JOB = Job("job", "resnet", work_samples=1e6)


def parts(pattern: int = 1, loading: DataLoading | None = None, backward_s: float = 0.2) -> IterationTimes:
    return IterationTimes(
        forward_s=0.1,
        backward_s=backward_s,
        update_s=0.03,
        loading=loading or DataLoading.steady(0.05, wait_s=0.01),
        parameters=2.5e7,
        batch_per_gpu=32.0,
        links=LINKS,
        pattern=pattern,  # type: ignore[arg-type]
    )


def test_both_patterns_by_hand() -> None:
    ring = 2.5e7 / 1e9 * 3 / 4
    hidden = max(0.2 + 0.2 * ring, ring)
    assert parts(1).seconds(4, 1) == pytest.approx(max(0.05, hidden + 0.03) + 0.1 + 0.01)
    assert parts(2).seconds(4, 1) == pytest.approx(0.05 + hidden + 0.03 + 0.1 + 0.01)


def test_the_network_takes_over_between_servers() -> None:
    assert LINKS.communication_s(2.5e7, 8, 2) == pytest.approx(0.25)
    assert LINKS.communication_s(2.5e7, 8, 1) == pytest.approx(0.025 * 7 / 8)
    assert parts().seconds(8, 2) == pytest.approx(max(0.2 + 0.05, 0.25) + 0.03 + 0.1 + 0.01)


def test_one_gpu_neither_communicates_nor_waits() -> None:
    assert parts().seconds(1, 1) == pytest.approx(0.2 + 0.03 + 0.1)
    assert parts().throughput(1, 1) == pytest.approx(32.0 / 0.33)


def test_the_expectation_is_over_both_states() -> None:
    loading = DataLoading(LoadingState(0.01), LoadingState(0.5, 0.0, 0.1), cached_share=0.75)
    fast, slow = parts(1, DataLoading.steady(0.01)), parts(1, DataLoading.steady(0.5, 0.1))
    expected = 0.75 * fast.seconds(4, 1) + 0.25 * slow.seconds(4, 1)
    assert parts(1, loading).seconds(4, 1) == pytest.approx(expected)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 1.0), st.floats(0.0, 0.3), st.floats(0.01, 1.0), st.integers(0, 99))
def test_the_mean_of_a_maximum_is_that_of_a_sample(mean: float, deviation: float, other: float, seed: int) -> None:
    drawn = np.random.default_rng(seed).normal(mean, deviation, 40_000)
    found = LoadingState(mean, deviation).mean_of_larger_s(other)
    assert found == pytest.approx(float(np.maximum(drawn, other).mean()), abs=0.01)


def test_two_states_are_told_apart() -> None:
    truth = DataLoading(LoadingState(0.02, 0.003), LoadingState(0.3, 0.03), cached_share=0.7)
    found = fit_loading(truth.draw(4000, np.random.default_rng(0)))
    assert found.cached_share == pytest.approx(0.7, abs=0.03)
    assert found.cached.mean_s == pytest.approx(0.02, rel=0.05)
    assert found.slow.mean_s == pytest.approx(0.3, rel=0.05)
    assert found.slow.deviation_s == pytest.approx(0.03, rel=0.15)


def test_one_state_stays_one() -> None:
    found = fit_loading(np.random.default_rng(0).normal(0.1, 0.01, 500))
    assert found.cached == found.slow
    assert found.mean_s == pytest.approx(0.1, rel=0.02)


APART = 0.5 / (1.0 + AVERAGE_WEIGHT)  # of the logarithm of two servers' ratio, seen once each: HP9 by hand


def test_layers_are_read_from_the_top() -> None:
    estimator = ThroughputEstimator()
    estimator.profile(JOB, {"v100": parts()})
    theory = parts().throughput(2, 1)
    assert estimator.per_gpu(JOB, "v100", "a", 2, 1) == pytest.approx(theory)
    estimator.observe(JOB, "v100", {"a": 2}, 120.0)
    estimator.observe(JOB, "v100", {"b": 2}, 80.0)
    assert estimator.per_gpu(JOB, "v100", "a", 2, 1) == pytest.approx(60.0)
    assert estimator.per_gpu(JOB, "v100", "b", 2, 1) == pytest.approx(40.0)
    fast, slow = 1.5**APART, 1.5**-APART
    assert estimator.per_gpu(JOB, "v100", "c", 2, 1) == pytest.approx(100.0 / (fast + slow)), "an average server"
    assert estimator.per_gpu(JOB, "v100", "c", 4, 1) == pytest.approx(parts().throughput(4, 1))
    assert estimator.per_gpu(JOB, "v100", "a", 4, 1) == pytest.approx(fast * parts().throughput(4, 1))
    assert estimator.per_gpu(JOB, "k80", "z", 1, 1) == 0.0


def test_the_slowest_server_sets_the_pace() -> None:
    estimator = ThroughputEstimator()
    for server, rate in (("a", 60.0), ("b", 40.0)):
        estimator.observe(JOB, "v100", {server: 1}, rate)
    estimator.profile(JOB, {"v100": parts()})
    slow = 1.5**-APART * parts().throughput(5, 2)
    assert estimator.throughput(JOB, "v100", {"a": 3, "b": 2}) == pytest.approx(5 * slow)


def test_accuracy_rises_as_observations_arrive() -> None:
    """Synthetic truth: theory is wrong by job and configuration, servers differ by up to 15%."""
    rng = np.random.default_rng(1)
    servers = {f"s{i}": rng.uniform(0.85, 1.15) for i in range(8)}
    jobs = [Job(f"j{i}", f"app{i}", work_samples=1.0) for i in range(6)]
    bias = {(job.id, gpus): rng.uniform(0.7, 1.3) for job in jobs for gpus in (1, 2, 4)}
    estimator = ThroughputEstimator()
    for job in jobs:
        estimator.profile(job, {"v100": parts()})

    def truth(job: Job, server: str, gpus: int) -> float:
        return parts().throughput(gpus, 1) * gpus * servers[server] * bias[job.id, gpus]

    def error() -> float:
        return float(
            np.mean(
                [
                    abs(estimator.throughput(job, "v100", {server: gpus}) / truth(job, server, gpus) - 1.0)
                    for job in jobs
                    for server in servers
                    for gpus in (1, 2, 4)
                ]
            )
        )

    errors = [error()]
    for observations in (20, 80, 400):
        for _ in range(observations):
            job, server = jobs[rng.integers(6)], f"s{rng.integers(8)}"
            gpus = int(rng.choice([1, 2, 4]))
            estimator.observe(job, "v100", {server: gpus}, truth(job, server, gpus) * rng.normal(1.0, 0.02))
        errors.append(error())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.03 < 0.1 < errors[0]


def test_a_database_survives_being_closed_and_a_broken_write(tmp_path: Path) -> None:
    path = tmp_path / "hops.sqlite"
    database = ThroughputDatabase(path)
    database.set_theory("resnet", "v100", parts(2, DataLoading(LoadingState(0.1, 0.01), LoadingState(0.4), 0.6)))
    database.record("resnet", "v100", ("a",), 2, 50.0)
    with pytest.raises(ThroughputError, match="nan"):
        database.record("resnet", "v100", ("a",), 2, math.nan)
    with pytest.raises(ThroughputError, match=r"measured 0\.0"):
        database.record("resnet", "v100", ("a",), 2, 0.0)
    database.close()
    again = ThroughputDatabase(path)
    assert again.on_server("resnet", "v100", "a", 2, 1) == 50.0
    assert again.observations("resnet") == 1
    found = again.theory("resnet", "v100")
    assert found == parts(2, DataLoading(LoadingState(0.1, 0.01), LoadingState(0.4), 0.6))
    again.forget("resnet")
    assert again.theory("resnet", "v100") is None
    again.close()


def test_an_unfinished_transaction_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "hops.sqlite"
    database = ThroughputDatabase(path)
    database.record("resnet", "v100", ("a",), 2, 50.0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE measured SET per_gpu = 1.0")
    other.close()  # as when a process dies in the middle
    assert ThroughputDatabase(path).on_server("resnet", "v100", "a", 2, 1) == 50.0


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be read as one" * 40, None])
def test_damaged_files_are_refused_and_left_alone(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "hops.sqlite"
    if content is None:
        database = ThroughputDatabase(path)
        for i in range(300):
            database.record(f"job-{i}", "v100", ("a", "b"), 2, 50.0)
        database.close()
        whole = path.read_bytes()
        content = whole[:4096] + bytes(len(whole) - 4096)
    path.write_bytes(content)
    with pytest.raises(ThroughputDatabaseError, match=r"hops\.sqlite"):
        ThroughputDatabase(path)
    assert path.read_bytes() == content


def test_foreign_and_newer_files_are_refused(tmp_path: Path) -> None:
    for name, statement, word in (
        ("foreign.sqlite", "CREATE TABLE other (x)", "no throughput database"),
        ("newer.sqlite", "PRAGMA user_version=99", "newer"),
    ):
        sqlite3.connect(tmp_path / name).execute(statement).connection.commit()
        with pytest.raises(ThroughputDatabaseError, match=word):
            ThroughputDatabase(tmp_path / name)
    with pytest.raises(ThroughputDatabaseError, match="absent"):
        ThroughputDatabase(tmp_path / "absent" / "hops.sqlite")


def test_bad_times_and_placements_are_refused() -> None:
    with pytest.raises(ThroughputError, match="backward_s is nan"):
        parts(backward_s=math.nan)
    with pytest.raises(ThroughputError, match="pattern"):
        parts(pattern=3)
    with pytest.raises(ThroughputError, match="between_servers"):
        Links(1.0, 0.0)
    with pytest.raises(ThroughputError, match="at least one"):
        fit_loading([])
    with pytest.raises(ThroughputError, match="placement"):
        ThroughputEstimator().observe(JOB, "v100", {}, 10.0)
    with pytest.raises(InvalidJobError, match="work"):
        ThroughputEstimator().work(Job("job", "resnet"))
