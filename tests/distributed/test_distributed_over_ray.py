"""The same over Ray: actors of their own processes, killed for real. Skipped without Ray; `make test-ray` runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from both_sides import EXACT, Pair, feasible

import copter
import copter_distributed as distributed
from copter.testing import sia_like_model

ray = pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A head in processes of its own, so that coordinators can come and go."""
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    there = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 8, "object_store_memory": 200_000_000, "include_dashboard": False},
    )
    ray.init(address=there.address, namespace="copter", log_to_driver=False, logging_level="error")
    yield there.address
    ray.shutdown()
    there.shutdown()


def transport(name: str, **options: object) -> object:
    from copter_distributed.over_ray import RayTransport

    return RayTransport(name=name, processors=0.1, **options)  # type: ignore[arg-type]


def process_of(session: distributed.Session, shard: int) -> int:
    """Process of an actor."""
    actor = session._exchange.transport.actor(shard)
    while True:
        try:
            return int(ray.get(actor.__ray_call__.remote(lambda _: os.getpid())))
        except ray.exceptions.RayActorError:  # it is being started again
            time.sleep(0.1)


def test_rounds_over_actors_are_those_of_one_machine(tmp_path: Path) -> None:
    pair = Pair(1, shards=2, directory=str(tmp_path / "s"), transport=transport("rounds"), sync="never")
    for _ in range(12):
        pair.add()
    pair.agree()
    for _ in range(3):
        for _ in range(4):
            pair.edit()
        pair.agree()
    assert pair.many.shards[0].memory > 0
    with pytest.raises(copter.UnknownHandleError):
        pair.many.model.add_request("x", [1.0], {"nothing": [1.0]})
    joined = pair.many.join()
    pair.agree()
    pair.many.leave(0)
    pair.agree()
    assert set(pair.many.shards) == {1, joined}
    pair.many.close()
    session = distributed.Session(sia_like_model(30, 128), EXACT, shards=2, transport=transport("plans"))
    plan = session.solve_integer()
    assert plan.gap < 1e-2
    session.close()


def test_actors_share_the_processors_in_a_placement_group() -> None:
    from ray.util.placement_group import placement_group_table

    from copter_distributed.over_ray import RayTransport

    model = sia_like_model(20, 64, seed=1)
    session = distributed.Session(model, EXACT, shards=3, transport=RayTransport(name="placed", placement="PACK"))
    (group,) = [each for each in placement_group_table().values() if each["state"] == "CREATED"]
    assert group["strategy"] == "PACK"
    assert [bundle["CPU"] for bundle in group["bundles"].values()] == [1.0] * 3
    assert session.solve().status is copter.Status.OPTIMAL
    other = session.join()  # there is no bundle for it: it is placed by itself
    assert session.solve().status is copter.Status.OPTIMAL
    assert other in session.shards
    with pytest.raises(copter.runtime.errors.SettingsError, match="requests of another session"):
        distributed.Session(model, EXACT, shards=2, transport=transport("placed"))
    session.close()
    assert all(each["state"] == "REMOVED" for each in placement_group_table().values())


def test_actors_that_find_no_room_are_refused_in_a_line() -> None:
    from copter_distributed.over_ray import RayTransport

    model = sia_like_model(20, 64, seed=1)
    transport = RayTransport(name="large", processors=5.0, patience_s=1.0)
    with pytest.raises(copter.runtime.errors.SettingsError, match="no room for 2 actors of 5 processors each"):
        distributed.Session(model, EXACT, shards=2, transport=transport)
    with pytest.raises(copter.runtime.errors.SettingsError, match="placement is 'NEAR'"):
        RayTransport(placement="NEAR")
    with pytest.raises(copter.runtime.errors.SettingsError, match="processors is 0"):
        RayTransport(processors=0.0)


def kills(count: int, tmp_path: Path, seed: int) -> None:
    """So many actors die, at random instants of edits and solves."""
    pair = Pair(seed, shards=2, directory=str(tmp_path / "s"), transport=transport(f"kills-{seed}"), sync="never")
    rng = np.random.default_rng(seed)
    for _ in range(12):
        pair.add()
    pair.agree()
    for _ in range(count):
        victim = process_of(pair.many, int(rng.integers(2)))
        script = "import os, sys, time; time.sleep(float(sys.argv[2])); os.kill(int(sys.argv[1]), 9)"
        killer = subprocess.Popen([sys.executable, "-c", script, str(victim), str(rng.uniform(0.0, 0.08))])
        for _ in range(int(rng.integers(1, 5))):
            pair.edit()
        pair.agree()
        killer.wait()
        pair.agree()
    pair.agree()
    assert pair.many.lost >= count  # each was noticed, those too that were back before the next call
    pair.many.close()


def test_actors_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    kills(3, tmp_path, 11)


@pytest.mark.long
def test_fifty_actors_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    kills(50, tmp_path, 12)


COORDINATOR = """
import os, pathlib, sys
import numpy as np
import ray
from copter import Settings
import copter_distributed as distributed
from copter_distributed.over_ray import RayTransport

address, directory, log, seed = sys.argv[1:]
ray.init(address=address, namespace="copter", log_to_driver=False, logging_level="error")
rng = np.random.default_rng(int(seed))
transport = RayTransport(name="mortal", processors=0.1, detached=True)
session = distributed.Session.load(directory, Settings(tolerance=1e-9), transport)
with open(log, "a") as out:
    print("ready", file=out, flush=True)
    for number in range(10_000):
        names = [f"{seed}-{number}-{k}" for k in range(3)]
        costs = rng.uniform(0.1, 2.0, (3, 4))
        print("try", *names, *costs.ravel().tolist(), file=out, flush=True)
        with session.model.batch():
            for name, cost in zip(names, costs):
                session.model.add_request(name, cost, {"r": np.arange(1.0, 5.0)})
        print("done", file=out, flush=True)
        solution = session.solve()
        print("solved", solution.objective, solution.bound, file=out, flush=True)
        if number % 3 == 2:
            session.save()
"""


def coordinators(count: int, tmp_path: Path, address: str) -> None:
    """So many coordinators are killed while they edit and solve; what they acknowledged is there, and whole."""
    directory, log = str(tmp_path / "s"), tmp_path / "log"
    model = copter.Model("max")
    model.add_resources("r", 20.0)
    first = distributed.Session(
        model, EXACT, shards=2, directory=directory, transport=transport("mortal", detached=True), sync="never"
    )
    first.close(end_shards=False)
    rng = np.random.default_rng(3)
    for number in range(count):
        begun = log.read_text().count("ready") if log.exists() else 0
        process = subprocess.Popen(
            [sys.executable, "-c", COORDINATOR, address, directory, str(log), str(number)],
            cwd=HERE.parents[2], env={**os.environ, "PYTHONPATH": str(HERE.parents[2])},
        )  # fmt: skip
        while not (log.exists() and log.read_text().count("ready") > begun):
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(float(rng.uniform(0.05, 0.6)))
        process.send_signal(signal.SIGKILL)
        process.wait()
    lines = [line.split() for line in log.read_text().splitlines()]
    again = distributed.Session.load(directory, EXACT, transport("mortal", detached=True))
    here = set(again.model.requests)
    twin = copter.Model("max")
    twin.add_resources("r", 20.0)
    for at, (what, *values) in enumerate(lines):
        if what != "try":
            continue
        names = values[:3]
        acknowledged = at + 1 < len(lines) and lines[at + 1][0] == "done"
        present = [name in here for name in names]
        assert all(present) or (not acknowledged and not any(present))
        if all(present):
            for name, cost in zip(names, np.array(values[3:], dtype=float).reshape(3, 4), strict=True):
                twin.add_request(name, cost, {"r": np.arange(1.0, 5.0)})
    solution = again.solve()
    assert solution.objective == pytest.approx(copter.Session(twin, EXACT).solve().objective, rel=1e-9)
    feasible(twin, solution)
    for what, *values in lines:
        if what == "solved":
            assert float(values[1]) >= float(values[0]) - 1e-9
    again.close()


def test_coordinators_that_are_killed_lose_nothing(tmp_path: Path, cluster: str) -> None:
    coordinators(2, tmp_path, cluster)


@pytest.mark.long
def test_ten_coordinators_that_are_killed_lose_nothing(tmp_path: Path, cluster: str) -> None:
    coordinators(10, tmp_path, cluster)


def test_a_slow_actor_counts_with_its_last_answer(tmp_path: Path) -> None:
    model = sia_like_model(40, 128, seed=4)
    session = distributed.Session(model, EXACT, shards=2, transport=transport("slow"))
    session.solve()
    process = process_of(session, 1)
    os.kill(process, signal.SIGSTOP)
    try:
        started = time.monotonic()
        solution = session.solve(deadline_s=1.0)
        assert time.monotonic() - started < 20.0
        assert np.isfinite(solution.bound)
        assert solution.bound >= solution.objective - 1e-9
        feasible(model, solution)
    finally:
        os.kill(process, signal.SIGCONT)
    assert session.solve().status is copter.Status.OPTIMAL
    session.close()
