"""The controller on documents that were recorded from a real Slurm, and its policy on small clusters."""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from copter_serve.slurm_controller.controller import Controller, Options
from copter_serve.slurm_controller.doors import Change, Commands, Door, RefusedError
from copter_serve.slurm_controller.horizon import needs
from copter_serve.slurm_controller.limits import Limit, limits_of
from copter_serve.slurm_controller.outside import blocked_nodes, partitions_of
from copter_serve.slurm_controller.policy import Planned, Policy, Rules, allowed
from copter_serve.slurm_controller.profiles import Profile, ProfileError, asked_before, asking, of_file, parsed
from copter_serve.slurm_controller.reading import ClusterNow, JobNow, NodeNow, cluster_now, gres_of
from copter_serve.views import ViewError
from copter_serve.views.documents import BlindError
from copter_serve.views.slurm import slurm_view

RECORDED = Path(__file__).resolve().parents[2] / "slurm" / "recorded"
SITUATIONS = sorted(path.parent for path in RECORDED.glob("*/*/started.json"))
NEVER = ("BadConstraints", "Dependency", "JobHeld", "PartitionDown", "PartitionInactive", "ReqNodeNotAvail")


def documents(folder: Path, when: str) -> tuple[list[Any], list[Any]]:
    """Return the recorded jobs and nodes."""
    jobs = json.loads((folder / f"{when}_squeue.json").read_text())["jobs"]
    old = folder / f"{when}_nodes.json"
    nodes = json.loads((old if old.exists() else folder / f"{when}_sinfo.json").read_text())["nodes"]
    return jobs, nodes


@pytest.mark.parametrize("folder", SITUATIONS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_plans_on_recorded_documents_fit_and_start_nothing_that_cannot(folder: Path) -> None:
    cluster = cluster_now(*documents(folder, "before"), 0.0)
    assert not cluster.skipped
    assert cluster.nodes
    started = json.loads((folder / "started.json").read_text())
    free = {name: dict(node.free) for name, node in cluster.nodes.items()}
    assert all(amount >= 0.0 for node in free.values() for amount in node.values())
    partitions_of((folder / "before_partitions.txt").read_text(), cluster)
    plan = Policy().plan(cluster, {name: Profile(job.user) for name, job in cluster.jobs.items() if job.waits})
    for start in plan.starts:
        for name in start.nodes:
            for resource, amount in needs(start.job, start).items():
                free[name][resource] -= amount
                assert free[name][resource] >= 0.0
        assert not started["waiting"].get(start.job.id, "").startswith(NEVER)


def node(name: str, kind: str = "a100", gpus: int = 4) -> NodeNow:
    has = {"cpu": 8.0, "mem": 8000.0, kind: float(gpus)}
    return NodeNow(name, has, dict(has), frozenset({kind}), frozenset({"all"}), True)


def job(name: str, gpus: int, came_s: float = 0.0, **more: Any) -> JobNow:
    told: dict[str, Any] = {"partition": "all", "comment": "copter:", "state": "PENDING", "reason": "BeginTime"}
    told |= {"begins_s": 0.0, "started_s": 0.0, "limit_s": 3600.0, "priority": 1.0, "node_count": 1, "cpus": 1}
    told |= {"memory_mb": 10.0, "gpu_type": ""} | more
    return JobNow(id=name, user="u", came_s=came_s, gpus=gpus, **told)


def cluster(nodes: list[NodeNow], jobs: list[JobNow], now_s: float = 0.0) -> ClusterNow:
    return ClusterNow({each.name: each for each in nodes}, {each.id: each for each in jobs}, now_s)


def test_each_job_goes_where_it_gains_most() -> None:
    gains, alike = (
        Profile(app, seconds=60.0, speeds={"a100": speed, "t4": 1.0}) for app, speed in (("g", 6.0), ("s", 1.1))
    )
    now = cluster([node("n1", gpus=1), node("t1", "t4", 1)], [job("1", 1), job("2", 1)])
    plan = Policy().plan(now, {"1": alike, "2": gains})
    assert {start.job.id: start.nodes for start in plan.starts} == {"1": ("t1",), "2": ("n1",)}


def test_a_job_of_several_sizes_is_wide_alone_and_narrow_in_a_queue() -> None:
    told = Profile("m", (1, 2, 4), 100.0, 0.8)
    alone = Policy().plan(cluster([node("n1")], [job("1", 1)]), {"1": told})
    assert [start.gpus for start in alone.starts] == [4]
    names = [str(at) for at in range(12)]
    queued = Policy().plan(cluster([node("n1")], [job(name, 1) for name in names]), dict.fromkeys(names, told))
    assert [start.gpus for start in queued.starts] == [1, 1, 1, 1]


@pytest.mark.parametrize("sizes", [(), (1, 2)], ids=["timetable", "program"])
def test_nodes_are_kept_free_for_an_old_large_job_so_that_its_wait_is_bounded(sizes: tuple[int, ...]) -> None:
    """With small jobs that arrive without end, the large job starts within its patience and one run of a small job."""
    policy, rules = Policy(Rules(patience=2.0)), Rules(patience=2.0)
    run_s, clock, running, arrivals = 10.0, 0.0, dict[str, tuple[float, JobNow]](), 0
    large = job("large", 4)
    waiting = {"large": large}
    while "large" in waiting:
        assert clock <= rules.patience * run_s + run_s + 2.0
        for name in [name for name, (end, _) in running.items() if end <= clock]:
            del running[name]
        while sum(each.id != "large" for each in waiting.values()) < 3:
            arrivals += 1
            waiting[f"s{arrivals}"] = job(f"s{arrivals}", 1, clock)
        now = cluster([node("n1")], [*waiting.values(), *(each for _, each in running.values())], clock)
        now.nodes["n1"].free["a100"] -= sum(each.gpus for _, each in running.values())
        profiles = {name: Profile("a", sizes, run_s, 0.3) for name in (*waiting, *running)} | {
            "large": Profile("a", seconds=run_s)
        }
        for start in policy.plan(now, profiles).starts:
            begun = waiting.pop(start.job.id)
            begun.state, begun.nodes, begun.started_s, begun.gpus = "RUNNING", ("n1",), clock, start.gpus
            running[start.job.id] = (clock + start.seconds, begun)
        clock += 1.0
    assert clock > rules.patience * run_s


Holds = list[tuple[str, float, float, int]]  # node, start and end in seconds from now, GPUs


def room(holds: Holds, name: str, since: float, seconds: float) -> float:
    """Return the GPUs of a node of eight that are free all the time."""
    at = [since, *(start for node, start, _, _ in holds if node == name and since < start < since + seconds - 1e-6)]
    return 8 - max(
        sum(gpus for node, start, end, gpus in holds if node == name and start <= t < end - 1e-6) for t in at
    )


def some_cluster(dice: random.Random, most: int) -> tuple[ClusterNow, dict[str, Profile], Holds, list[JobNow]]:
    """Return a cluster at random with its profiles, what its running jobs hold, and the waiting ones."""
    nodes, holds, running, told = [node(f"n{at}", gpus=8) for at in range(3)], Holds(), [], {}
    for each in nodes:
        while dice.random() < 0.7 and each.free["a100"] > 0.0:
            gpus, left, name = (
                dice.randrange(1, int(each.free["a100"]) + 1),
                dice.uniform(5.0, 60.0),
                f"r{len(running)}",
            )
            running.append(job(name, gpus, state="RUNNING", nodes=(each.name,)))
            told[name] = Profile(name, seconds=left)
            each.free["a100"] -= gpus
            holds.append((each.name, 0.0, left, gpus))
    waiting = [job(str(at), dice.choice((1, 2, 3, 4, 6, 8))) for at in range(dice.randrange(1, most))]
    told |= {each.id: Profile(f"a{each.id}", seconds=dice.uniform(5.0, 90.0)) for each in waiting}
    return cluster(nodes, [*waiting, *running]), told, holds, waiting


def places_of(plan: Planned) -> dict[str, tuple[str, float, float, int]]:
    """Return each planned job's node, start and end from now, and GPUs."""
    found = {each.job.id: (each.nodes[0], 0.0, each.seconds, each.gpus) for each in plan.starts}
    for each in plan.later:
        found[each.wish.job.id] = (each.nodes[0], each.in_s, each.in_s + each.way.seconds, each.way.gpus)
    return found


def test_gpus_are_idle_only_where_a_waiting_job_could_not_complete_sooner_than_planned() -> None:
    """Every job has a place that no other touches, and an earlier one is free for none beside the others' places."""
    dice = random.Random(3)
    for _ in range(40):
        now, told, holds, jobs = some_cluster(dice, 12)
        places = places_of(Policy().plan(now, told))
        assert places.keys() == {each.id for each in jobs}
        for each in jobs:
            own, start, end, gpus = places[each.id]
            others = [*holds, *(place for name, place in places.items() if name != each.id)]
            assert room(others, own, start, end - start) >= gpus == each.gpus
            for name in now.nodes:
                for sooner in (0.0, *(held[2] for held in others if held[2] < start - 1e-6)):
                    assert start == 0.0 or room(others, name, sooner, end - start) < gpus


def test_a_timetables_sum_of_completions_is_least_among_the_orders_of_few_jobs() -> None:
    dice, least = random.Random(5), 0
    for _ in range(40):
        now, told, holds, jobs = some_cluster(dice, 6)
        sums = []
        for order in itertools.permutations(jobs):
            taken, total = list(holds), 0.0
            for each in order:
                seconds = told[each.id].seconds
                times = sorted({0.0, *(held[2] for held in taken)})
                time, name = next(
                    (t, name) for t in times for name in now.nodes if room(taken, name, t, seconds) >= each.gpus
                )
                taken.append((name, time, time + seconds, each.gpus))
                total += time + seconds
            sums.append(total)
        planned = sum(place[2] for place in places_of(Policy().plan(now, told)).values())
        least += planned <= min(sums) + 1e-6
        assert planned <= 1.05 * min(sums)
    assert least >= 36


def test_a_job_of_two_nodes_gets_both_at_once_and_short_jobs_run_before() -> None:
    nodes = [node("n1"), node("n2"), node("n3")]
    running = [job("r", 4, state="RUNNING", nodes=("n1",)), job("q", 4, state="RUNNING", nodes=("n3",))]
    wide, short, long = job("w", 4, node_count=2), job("s", 4), job("l", 4, excluded=("n3",))
    nodes[0].free["a100"] = nodes[2].free["a100"] = 0.0
    seconds = {"r": 20.0, "q": 100.0, "w": 5.0, "s": 15.0, "l": 40.0}
    told = {name: Profile(name, seconds=each) for name, each in seconds.items()}
    now = cluster(nodes, [*running, wide, short, long])
    plan = Policy().plan(now, told)
    assert [(start.job.id, start.nodes) for start in plan.starts] == [("s", ("n2",))]
    assert [(each.wish.job.id, sorted(each.nodes), each.in_s) for each in plan.later] == [
        ("w", ["n1", "n2"], 20.0), ("l", sorted(plan.later[1].nodes), 25.0)
    ]  # fmt: skip


def test_limits_and_reservations_are_kept_over_time() -> None:
    """What a limit stops is planned for the end of what holds it; a reserved node takes what ends before."""
    running = job("r", 1, qos="few", state="RUNNING", nodes=("n1",))
    few, free, long = job("few", 1, qos="few"), job("free", 1), job("long", 1)
    told = {"r": Profile("r", seconds=30.0), "few": Profile("f", seconds=5.0)}
    told |= {"free": Profile("g", seconds=9.0), "long": Profile("h", seconds=50.0)}
    nodes = [node("n1", gpus=2), node("n2", gpus=4)]
    nodes[0].free["a100"] = 1.0
    now = cluster(nodes, [running, few, free, long])
    plan = Policy().plan(now, told, [Limit("few", "gpu", 1.0, "few")], {"n2": 10.0})
    assert {start.job.id: start.nodes for start in plan.starts} == {"free": ("n2",), "long": ("n1",)}
    assert [(each.wish.job.id, each.nodes, each.in_s) for each in plan.later] == [("few", ("n1",), 30.0)]


def test_the_same_queue_has_the_same_timetable() -> None:
    found = [places_of(Policy().plan(*some_cluster(random.Random(7), 30)[:2])) for _ in range(2)]
    assert found[0] == found[1]


def test_a_job_that_would_run_far_longer_on_idle_gpus_waits_for_its_own() -> None:
    told = Profile("g", seconds=60.0, speeds={"a100": 6.0, "t4": 1.0})
    jobs = [job(str(at), 1) for at in range(3)]
    now = cluster([node("n1", gpus=1), node("t1", "t4", 4)], jobs)
    plan = Policy().plan(now, {each.id: told for each in jobs})
    assert [start.nodes for start in plan.starts] == [("n1",)]
    mild = Profile("g", seconds=60.0, speeds={"a100": 1.2, "t4": 1.0})
    plan = Policy().plan(cluster([node("n1", gpus=1), node("t1", "t4", 4)], jobs), {each.id: mild for each in jobs})
    assert sorted(start.nodes for start in plan.starts) == [("n1",), ("t1",), ("t1",)]


def test_limits_are_kept_and_counted_once() -> None:
    jobs = [job(str(at), 1, qos="few") for at in range(5)]
    running = job("r", 1, qos="few", state="RUNNING", nodes=("n1",))
    limits = limits_of("few|gres/gpu=3||gres/gpu=2|\nmany||||\n", [*jobs, running])
    assert Limit("qos few gpu", "gpu", 3.0, "few") in limits
    now = cluster([node("n1")], [*jobs, running])
    now.nodes["n1"].free["a100"] = 3.0
    plan = Policy().plan(now, {each.id: Profile("a", seconds=9.0) for each in jobs}, limits)
    assert len(plan.starts) == 1  # the user may have two, and has one


class Scripted(Door):
    """A Slurm in memory that refuses some jobs."""

    def __init__(self, now: ClusterNow, refused: tuple[str, ...] = ()) -> None:
        super().__init__(lambda: 100.0)
        self.now, self.refuses, self.updates = now, refused, list[tuple[str, Change]]()
        self.tables = dict[str, str]()

    def documents(self) -> tuple[list[Any], list[Any]]:
        return [], []

    def read(self) -> ClusterNow:
        return self.now

    def update(self, job: str, change: Change) -> None:
        if job in self.refuses:
            raise RefusedError("no")
        self.updates.append((job, change))

    def server_s(self) -> float | None:
        return 4000.0

    def text(self, *words: str) -> str:
        return self.tables.get(words[0], "")


def test_one_refused_update_stops_no_other_and_times_are_the_clusters() -> None:
    door = Scripted(cluster([node("n1"), node("n2")], [job(name, 1) for name in "123"], 4000.0), ("2",))
    step = Controller(door, Options(lease_s=60)).step()
    assert step.started == 2
    assert {name for name, _ in door.updates} == {"1", "3"}
    assert all(change.begin_s == 4000 and str(change.comment).endswith(" asked=1") for _, change in door.updates)


def test_a_start_that_was_asked_for_counts_in_limits_before_it_runs() -> None:
    door = Scripted(cluster([node("n1")], [job(name, 1, qos="few") for name in "12"], 4000.0))
    door.tables = {"scontrol": "AccountingStorageType = accounting_storage/slurmdbd", "sacctmgr": "few|gres/gpu=1|||\n"}
    controller = Controller(door, Options(lease_s=60))
    assert controller.step().started == 1
    door.now = cluster([node("n1")], [job(name, 1, qos="few") for name in "12"], 4001.0)
    assert controller.step().started == 0
    assert controller.asked.keys() == {door.updates[0][0]}


def test_a_job_that_slurm_puts_back_in_line_gets_its_own_nodes_back() -> None:
    """A node is lost under a start: Slurm puts the job back with the start's nodes, where it would wait for ever."""
    own = job("1", 1)
    door = Scripted(cluster([node("n1"), node("n2")], [own], 4000.0))
    controller = Controller(door, Options(lease_s=60))
    assert controller.step().started == 1
    lost = job("1", 1, state="RUNNING", comment="copter: asked=1", nodes=("n1",), required=("n1",), started_s=4000.0)
    door.now = cluster([node("n1"), node("n2")], [lost], 4001.0)
    controller.step()
    left = node("n2")
    again = job("1", 1, comment="copter: asked=1", required=("n1",), reason="ReqNodeNotAvail, UnavailableNodes:n1")
    door.now, door.updates = cluster([left], [again], 4002.0), []
    step = controller.step()
    assert door.updates[0] == ("1", Change(4060, (), "1", "copter:"))
    assert [line for line in step.lines if "starts on n2" in line], step.lines
    assert door.updates[1][1].nodes == ("n2",)
    door.now = cluster([left], [job("1", 1, comment="copter: asked=1", required=("n2",))], 4003.0)
    controller.asked.clear()  # as after the job ran and was put back once more
    assert controller.close().lines == ["job 1 is Slurm's again"]
    assert door.updates[-1] == ("1", Change(4000, (), "1", "copter:"))


def test_a_users_begin_time_is_kept_where_only_the_partition_opts_in() -> None:
    later = job("1", 1, comment="", begins_s=9000.0)
    door = Scripted(cluster([node("n1")], [later], 4000.0))
    step = Controller(door, Options(frozenset({"all"}), lease_s=60)).step()
    assert step.left == {"1": "begins later, as its user asked"}
    assert door.updates == []


def test_comments_and_files_of_profiles() -> None:
    told = parsed("copter: app=a sizes=1-8 rate=0.9 speed=a100:3,t4:1", {})
    assert told == Profile("a", (1, 2, 4, 8), pytest.approx(math.nan, nan_ok=True), 0.9, {"a100": 3.0, "t4": 1.0})
    assert parsed("mine") is None
    known = of_file({"a": {"seconds": 60, "speed": {"t4": 0.5}}}, "f")
    assert parsed("copter: app=a rate=0.5", known) == Profile("a", (), 60.0, 0.5, {"t4": 0.5})
    for wrong in ("copter: rate=0", "copter: sizes=8-1", "copter: what=1", "copter: seconds"):
        with pytest.raises(ProfileError):
            parsed(wrong)
    assert asked_before(asking("", 2)) == ("", 2)
    assert asked_before(asking("copter: app=a", 2)) == ("copter: app=a", 2)
    assert asked_before("copter: app=a") is None


def test_words_of_slurm() -> None:
    assert gres_of("gpu:a100:4(S:0-1),gpu:t4:2") == {"a100": 4.0, "t4": 2.0}
    assert gres_of("gres:gpu:2") == {"gpu": 2.0}
    assert gres_of("gres/gpu:1g.5gb:7") == {"1g.5gb": 7.0}
    assert allowed("a&b|c", frozenset({"c"}))
    assert not allowed("[a|b]", frozenset({"a"}))
    times = "StartTime=2026-01-01T00:00:00 EndTime=2036-01-01T00:00:00"
    text = f"ReservationName=r {times} Duration=x\n   Nodes=n[1-2],t1 NodeCnt=3"
    assert blocked_nodes(text, 1.8e9) == {"n1": 0.0, "n2": 0.0, "t1": 0.0}


GONE = {"errors": [{"description": "Failed while looking for jobs", "error_number": -1}], "jobs": []}


def test_a_slurm_without_slurmctld_is_not_an_empty_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With slurmctld gone, 22.05's squeue prints this after 19 seconds and exits with 0."""
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(Commands, "_run", lambda self, *words: json.dumps(GONE))
    with pytest.raises(BlindError, match="squeue: Failed while looking for jobs"):
        Commands(lambda: 0.0).read()
    for name, found in (("squeue", GONE), ("sinfo", {"errors": [], "nodes": []})):
        (tmp_path / name).write_text(json.dumps(found))
    with pytest.raises(ViewError, match="squeue: Slurm says in it: Failed while looking for jobs"):
        slurm_view(str(tmp_path / "squeue"), str(tmp_path / "sinfo"))
    (tmp_path / "squeue").write_text(json.dumps({"errors": [], "jobs": []}))
    (tmp_path / "sinfo").write_text(json.dumps({"errors": [{"error": "Unspecified error", "errno": -1}], "nodes": []}))
    with pytest.raises(ViewError, match="sinfo: Slurm says in it: Unspecified error"):
        slurm_view(str(tmp_path / "squeue"), str(tmp_path / "sinfo"))
