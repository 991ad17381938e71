"""The controller and the shadow on a real Slurm of fake nodes: make test-slurm."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest

from copter_serve.slurm_controller.controller import Controller, Options
from copter_serve.slurm_controller.doors import Change, Commands, Rest
from tests.slurm.fake_cluster import LIVE, FakeCluster, why_not

if os.environ.get("COPTER_SLURM") != "1":
    pytest.skip("a real Slurm: make test-slurm", allow_module_level=True)
if why := why_not():
    pytest.skip(why, allow_module_level=True)

LUA = Path(__file__).resolve().parents[2] / "frontends" / "deploy" / "slurm" / "job_submit.lua"
LEASE_S = 10
MEMORY = "DefMemPerCPU=100"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    """A cluster of two nodes of 4 a100 and two of 2 t4; this process's environment leads to it."""
    with FakeCluster(extra=MEMORY, more={"NODE_TIMEOUT": "6"}) as made:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, made.env[name])
        yield made


def command(cluster: FakeCluster, *words: str, out: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start a `copter slurm` command."""
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "copter_frontends.cli", "slurm", *words], env=cluster.env, text=True,
        stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run(cluster: FakeCluster, *more: str, out: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start the controller, with quick steps and short leases."""
    lock = str(cluster.folder / "lock")
    options = ("--every", "0.3", "--lease", str(LEASE_S), "--give-up", "4", "--lock", lock)
    return command(cluster, "run", *options, *more, out=out)


def stopped(process: subprocess.Popen[str]) -> str:
    """End a command by SIGTERM; return what it printed."""
    process.terminate()
    return process.communicate(timeout=30)[0]


def submit(
    cluster: FakeCluster, *options: str, comment: str = "copter: app=x", begin: int = LEASE_S, seconds: float = 2.0
) -> str:
    """Submit a job under the controller."""
    begins = [f"--begin=now+{begin}"] if begin else []
    return cluster.submit("-n1", "-t", "5", *begins, f"--comment={comment}", *options, seconds=seconds)


def field(cluster: FakeCluster, job: str, name: str) -> str:
    """Return a field of `scontrol show job`."""
    found = re.search(rf"\b{name}=(\S*)", cluster.run("scontrol", "show", "job", job))
    return found[1] if found else ""


def all_ended(cluster: FakeCluster, jobs: Sequence[str], seconds: float = 60.0) -> None:
    """Wait until jobs have completed; each ran once."""
    cluster.until(lambda: all(cluster.states()[job][0] == "COMPLETED" for job in jobs), f"{jobs} to complete", seconds)
    assert {field(cluster, job, "Restarts") for job in jobs} == {"0"}


def test_jobs_start_long_before_their_lease_and_grow_where_they_may(cluster: FakeCluster) -> None:
    fixed = [submit(cluster, "--gres=gpu:1", begin=300) for _ in range(4)]
    fast = submit(cluster, "--gres=gpu:1", comment="copter: app=y seconds=60 speed=a100:5,t4:1", begin=300)
    grows = submit(cluster, "--gres=gpu:a100:1", comment="copter: app=z sizes=1-4 seconds=60 rate=0.9", begin=300)
    other = cluster.submit("-n1", "--gres=gpu:1", "--begin=now+300")
    process = run(cluster)
    try:
        all_ended(cluster, [*fixed, fast, grows])
    finally:
        told = stopped(process)
    assert field(cluster, fast, "NodeList").startswith("n"), told
    assert field(cluster, grows, "TresPerNode").endswith("gpu:a100:4"), told
    assert cluster.states()[other][0] == "PENDING"  # did not opt in


def test_a_dead_controller_holds_no_job(cluster: FakeCluster) -> None:
    blocker = cluster.submit("-n1", "--gres=gpu:a100:4", "-w", "n1", "-t", "5", seconds=8)
    process = run(cluster)
    job = submit(cluster, "--gres=gpu:a100:4", "-w", "n1", begin=0)  # waits for the blocker
    cluster.until(lambda: cluster.states()[job][1] == "BeginTime", "the lease")
    process.kill()
    process.wait()
    began = time.time()
    cluster.until(lambda: cluster.states()[job][0] != "PENDING", "Slurm to start the job itself", LEASE_S + 15.0)
    assert time.time() - began < LEASE_S + 15.0
    all_ended(cluster, [blocker, job])


def test_a_controller_killed_again_and_again_loses_nothing(cluster: FakeCluster) -> None:
    jobs = [submit(cluster, f"--gres=gpu:{1 + at % 2}", begin=60) for at in range(14)]
    for _ in range(3):
        process = run(cluster)
        time.sleep(2.5)
        process.kill()
        process.wait()
    process = run(cluster)
    try:
        all_ended(cluster, jobs, 90.0)
    finally:
        stopped(process)
    assert not any(
        " asked=" in field(cluster, job, "Comment") and cluster.states()[job][0] == "PENDING" for job in jobs
    )


def test_a_start_that_a_dead_controller_asked_for_is_taken_back(cluster: FakeCluster) -> None:
    job = submit(cluster, "--gres=gpu:1", begin=300)
    cluster.run("scontrol", "update", f"JobId={job}", "ReqNodeList=t2", "TresPerNode=gres:gpu:4",
                "Comment=copter: app=x asked=1",                "StartTime=now")  # fmt: skip
    cluster.until(lambda: cluster.states()[job][1] not in ("None", "BeginTime"), "Slurm to see that t2 has no four")
    process = run(cluster)
    try:
        all_ended(cluster, [job])
    finally:
        told = stopped(process)
    assert "gives up" in told


def test_a_second_controller_is_refused_and_two_at_once_do_no_harm(cluster: FakeCluster) -> None:
    process = run(cluster)
    try:
        time.sleep(2.0)
        second = run(cluster)
        assert "another controller holds it" in second.communicate(timeout=30)[0]
        assert second.returncode == 2
        third = run(cluster, "--lock", str(cluster.folder / "other"))
        try:
            all_ended(cluster, [submit(cluster, "--gres=gpu:1", begin=60) for _ in range(12)])
        finally:
            stopped(third)
    finally:
        stopped(process)


def test_slurmctld_is_killed_and_comes_back(cluster: FakeCluster) -> None:
    log = cluster.folder / "told"
    with log.open("w") as out:
        process = run(cluster, "--alive", str(cluster.folder / "alive"), out=out)
    try:
        cluster.until((cluster.folder / "alive").exists, "the controller's first step", 60.0)
        jobs = [submit(cluster, "--gres=gpu:2", begin=60, seconds=15) for _ in range(8)]  # six have room
        cluster.until(lambda: [each[0] for each in cluster.states().values()].count("RUNNING") == 6, "six to run")
        time.sleep(6.0)  # slurmctld writes down what it started every five seconds, and forgets the rest
        cluster.down("slurmctld", kill=True)
        # Slurm's commands try again for a while, so that a slurmctld that is back soon is not missed at all
        cluster.until(lambda: "cannot go on at the moment" in log.read_text(), "the controller to miss it", 60.0)
        cluster.up("slurmctld")
        all_ended(cluster, jobs, 90.0)
        cluster.until(lambda: "Slurm answers again" in log.read_text(), "the controller to go on", 60.0)
    finally:
        stopped(process)


def test_slurmctld_is_killed_in_the_moment_of_a_start(cluster: FakeCluster) -> None:
    process = run(cluster, "--alive", str(cluster.folder / "alive"))
    try:
        cluster.until((cluster.folder / "alive").exists, "the controller's first step", 60.0)
        jobs = [submit(cluster, "--gres=gpu:2", begin=60) for _ in range(8)]
        cluster.until(lambda: "RUNNING" in [each[0] for each in cluster.states().values()], "a start")
        cluster.down("slurmctld", kill=True)
        time.sleep(2.0)
        cluster.up("slurmctld")

        # Slurm may have forgotten a submission. A start that it forgot it makes again, and the node refuses to run a
        # job twice: then Slurm holds the job for its operator.
        def settled(job: str) -> bool:
            state, reason, _ = cluster.states().get(job, ("COMPLETED", "", ""))
            return state == "COMPLETED" or "held" in reason

        cluster.until(lambda: all(settled(job) for job in jobs), "all to complete or to be held by Slurm", 90.0)
        held = [job for job in jobs if job in cluster.states() and cluster.states()[job][0] == "PENDING"]
        time.sleep(5.0)
    finally:
        told = stopped(process)
    assert all(f"job {job} is left to Slurm: is held" in told for job in held), told


def test_a_node_is_lost_under_a_start(cluster: FakeCluster) -> None:
    cluster.down("n1", kill=True)
    jobs = [submit(cluster, "--gres=gpu:a100:2", begin=60) for _ in range(3)]
    process = run(cluster)
    try:
        cluster.until(
            lambda: all(cluster.states()[job][0] == "COMPLETED" for job in jobs), "all to run on the other node", 120.0
        )
    finally:
        told = stopped(process)
    assert {field(cluster, job, "NodeList") for job in jobs} == {"n2"}, told


class Cancelling(Commands):
    """Cancels a job after the plan was made and before its update is sent."""

    def __init__(self, cluster: FakeCluster, job: str) -> None:
        super().__init__()
        self.cluster, self.job = cluster, job

    def update(self, job: str, change: Change) -> None:
        """Cancel first."""
        if job == self.job:
            self.cluster.run("scancel", job)
        super().update(job, change)


def test_a_job_cancelled_meanwhile_stops_no_other(cluster: FakeCluster) -> None:
    jobs = [submit(cluster, "--gres=gpu:1", begin=60) for _ in range(3)]
    controller = Controller(Cancelling(cluster, jobs[1]), Options(lease_s=LEASE_S))
    step = controller.step()
    assert step.started == 2
    assert "not done" in next(line for line in step.lines if line.startswith(f"job {jobs[1]} "))
    all_ended(cluster, [jobs[0], jobs[2]])
    assert jobs[1] not in controller.step().left


@pytest.mark.parametrize("ahead_s", [3600.0, -3600.0])
def test_a_clock_that_is_wrong_does_not_move_leases(cluster: FakeCluster, ahead_s: float) -> None:
    blocker = cluster.submit("-n1", "--gres=gpu:a100:4", "-w", "n1", "-t", "5", seconds=60)
    cluster.running(blocker)
    waits = submit(cluster, "--gres=gpu:a100:4", "-w", "n1", begin=0)
    starts = submit(cluster, "--gres=gpu:a100:4", "-w", "n2", begin=300)
    controller = Controller(Commands(clock=lambda: time.time() + ahead_s), Options(lease_s=LEASE_S))
    step = controller.step()
    assert (step.started, step.renewed) == (1, 1), step.lines
    cluster.running(starts)
    begins = Commands().read().jobs[waits].begins_s
    assert 0.0 < begins - time.time() <= LEASE_S + 3.0


def test_dry_run_changes_nothing(cluster: FakeCluster) -> None:
    job = submit(cluster, "--gres=gpu:1", begin=300)

    def shown() -> list[str]:  # what an update could change; Slurm itself changes its estimates
        names = ("JobState", "EligibleTime", "ReqNodeList", "ExcNodeList", "TresPerNode", "Comment", "Priority")
        return [field(cluster, job, name) for name in names]

    before = shown()
    process = run(cluster, "--dry-run", "--steps", "2")
    told = process.communicate(timeout=30)[0]
    assert process.returncode == 0
    assert f"would: job {job} starts on" in told
    assert shown() == before


def test_a_start_that_slurm_cannot_make_is_given_up_and_planned_anew(cluster: FakeCluster) -> None:
    job = submit(cluster, "--gres=gpu:1", begin=300)
    door = Commands()
    door.start(job, ["t1"], "4", "copter: app=x asked=1")  # a node of two
    controller = Controller(door, Options(lease_s=LEASE_S, give_up_s=1.0))
    lines: list[str] = []
    end = time.monotonic() + 20.0
    while cluster.states()[job][0] == "PENDING" and time.monotonic() < end:
        lines += controller.step().lines
        time.sleep(0.5)
    assert any("gives up" in line for line in lines)
    all_ended(cluster, [job])


def test_reservations_closed_partitions_and_held_jobs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = "PartitionName=all Nodes=ALL Default=YES State=UP\nPartitionName=shut Nodes=t[1-2] State=DOWN"
    with FakeCluster(partitions=parts, extra=MEMORY) as cluster:
        monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
        monkeypatch.setenv("PATH", cluster.env["PATH"])
        cluster.run("scontrol", "create", "reservation", "ReservationName=r", "Nodes=n1", "Users=root", "StartTime=now",
                    "Duration=60")  # fmt: skip
        shut = submit(cluster, "-p", "shut", "--gres=gpu:1", begin=300)
        held = submit(cluster, "-H", "--gres=gpu:1", begin=300)
        after = submit(cluster, f"--dependency=afterok:{held}", "--gres=gpu:1", begin=300)
        two = [submit(cluster, "--gres=gpu:a100:4", begin=300, seconds=30) for _ in range(2)]
        step = Controller(Commands(), Options(lease_s=LEASE_S)).step()
        started = {re.findall(r"job (\d+) starts on (\S+)", line)[0] for line in step.lines if "starts on" in line}
        assert started in ({(two[0], "n2")}, {(two[1], "n2")})
        assert {shut, held, after} <= step.left.keys()


def test_rest_reads_starts_and_renews_with_a_token() -> None:
    with FakeCluster(extra=MEMORY, rest=True) as cluster:
        blocker = cluster.submit("-n1", "--gres=gpu:a100:4", "-w", "n1", "-t", "5", seconds=60)
        cluster.running(blocker)
        starts = submit(cluster, "--gres=gpu:a100:2", begin=300)
        grows = submit(cluster, "--gres=gpu:t4:1", comment="copter: sizes=2 seconds=9", begin=300)
        waits = submit(cluster, "--gres=gpu:a100:4", "-w", "n1", begin=0)
        controller = Controller(Rest(cluster.address, "root", cluster.token), Options(lease_s=LEASE_S))
        step = controller.step()
        assert (step.started, step.renewed) == (2, 1), step.lines
        all_ended(cluster, [starts, grows])
        assert field(cluster, starts, "NodeList") == "n2"
        assert field(cluster, grows, "TresPerNode").endswith("gpu:t4:2")
        assert cluster.states()[waits][1] == "BeginTime"


def test_a_user_without_rights_may_start_only_his_own_jobs() -> None:
    with FakeCluster(extra=MEMORY, rest=True) as cluster:
        other = submit(cluster, "--gres=gpu:1", begin=300)
        own = cluster.submit("-n1", "-t", "5", "--begin=now+300", "--comment=copter: app=x", seconds=2, as_user="65534")
        controller = Controller(
            Rest(cluster.address, "nobody", lambda: cluster.token("nobody")), Options(lease_s=LEASE_S)
        )
        step = controller.step()
        assert step.started == 1, step.lines
        all_ended(cluster, [own])
        assert cluster.states()[other][0] == "PENDING"


def test_job_submit_lua_gives_leases_only_while_the_controller_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeCluster(extra=MEMORY) as cluster:
        monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
        monkeypatch.setenv("PATH", cluster.env["PATH"])
        alive = cluster.folder / "alive"
        (cluster.state / "job_submit.lua").write_text(LUA.read_text().replace("/run/copter-slurm.alive", str(alive)))
        conf = cluster.state / "slurm.conf"
        conf.write_text(conf.read_text().replace(LIVE, f"{LIVE}\nJobSubmitPlugins=lua"))
        cluster.down("slurmctld")
        cluster.up("slurmctld")
        first = submit(cluster, "--gres=gpu:1", begin=0)
        cluster.until(lambda: cluster.states()[first][0] in ("RUNNING", "COMPLETED"), "a job without a controller")
        process = run(cluster, "--alive", str(alive))
        try:
            cluster.until(alive.exists, "the controller's first step")
            cluster.run("scontrol", "update", "NodeName=n1,n2,t1,t2", "State=DRAIN", "Reason=x")
            second = submit(cluster, "--gres=gpu:1", begin=0)
            plain = submit(cluster, "--gres=gpu:1", begin=0, comment="mine")
            waits = Commands().read().jobs
            assert waits[second].begins_s - time.time() > 60.0
            assert waits[plain].begins_s - time.time() < 5.0
            cluster.run("scontrol", "update", "NodeName=n1,n2,t1,t2", "State=RESUME")
            all_ended(cluster, [second, plain])
        finally:
            stopped(process)


def test_the_shadow_watches_live_over_commands_and_rest(tmp_path: Path) -> None:
    with FakeCluster(extra=MEMORY, rest=True) as cluster:
        cluster.running(cluster.submit("-n1", "--gres=gpu:a100:4", "-t", "5"))
        token = tmp_path / "token"
        token.write_text(cluster.token())
        for at, ways in enumerate(([], ["--rest", cluster.address, "--token-file", str(token)])):
            tape = str(tmp_path / f"{at}.tape")
            process = command(cluster, "shadow", "--rounds", "2", "--every", "0.5", "--json", "--tape", tape, *ways)
            told = process.communicate(timeout=60)[0]
            assert process.returncode == 0, told
            found = json.loads(told.strip().splitlines()[-1])
            assert (found["rounds"], found["now"]["used"], found["now"]["quota"]) == (2, 4.0, 12.0)


def test_two_clusters_run_beside_each_other() -> None:
    with FakeCluster(extra=MEMORY) as one, FakeCluster(extra=MEMORY) as two:
        job = one.submit("-n1")
        one.running(job)
        assert two.states() == {}


@pytest.mark.skipif(bool(why_not(accounts=True)), reason=why_not(accounts=True) or "accounts are there")
def test_limits_of_quality_of_service_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeCluster(extra=MEMORY, accounts=True) as cluster:
        monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
        monkeypatch.setenv("PATH", cluster.env["PATH"])
        for words in (
            ("add", "account", "lab"), ("add", "user", "root", "account=lab"),
            ("add", "qos", "few", "grptres=gres/gpu=3"),
            ("modify", "user", "root", "set", "qos+=few"),
        ):  # fmt: skip
            cluster.run("sacctmgr", "-i", *words)
        cluster.until(
            lambda: "few" in cluster.run("sacctmgr", "-nP", "show", "assoc", "format=qos"), "the quality of service"
        )
        jobs = [submit(cluster, "--qos=few", "-A", "lab", "--gres=gpu:1", begin=300, seconds=30) for _ in range(5)]
        step = Controller(Commands(), Options(lease_s=LEASE_S)).step()
        assert step.started == 3, step.lines
        cluster.until(lambda: sum(cluster.states()[job][0] == "RUNNING" for job in jobs) == 3, "three to run")
