"""Which rounds have a linear program: those in which the policy solved one, not those in which it has an old one."""

from __future__ import annotations

from collections import Counter

from copter_frontends.cli.options import SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.policies.baselines.fifo import FifoPolicy
from copter_frontends.policies.hare.task_policy import HareTaskPolicy
from copter_frontends.policies.sia import SiaPolicy
from copter_frontends.policy_kit import LpPolicy
from copter_frontends.simulator import Simulation
from copter_frontends.vocabulary import Cluster


def simulation(policy: str, *options: str) -> Simulation:
    arguments = [policy, "--gpus", "112", "--seed", "3", "--threads", "1", *options]
    asked = SimulateOptions.of(**simulate.make_context("simulate", arguments).params)
    return Run.read(asked).simulation


def programs(run: Simulation, rounds: int) -> tuple[list[str], list[int]]:
    """What each round says of its program, and in which rounds an observer saw one solved."""
    policy, solved = run.policy, list[int]()
    assert isinstance(policy, LpPolicy)
    policy.observers.append(lambda: solved.append(len(run.records)))
    return [run.step().program for _ in range(rounds)], solved


def test_within_a_lease_no_program_is_solved_and_an_old_one_does_not_count() -> None:
    run = simulation("chronus", "--hours", "4", "--load", "1.2", "--admission", "paper")
    told, solved = programs(run, 40)
    assert {at for at, each in enumerate(told) if each == "solved"} == set(solved)
    assert 0 < len(solved) <= 10  # a lease has four rounds
    later = [record for record in run.records if record.variables and record.program != "solved"]
    assert later  # rounds with the columns of an earlier round's program
    summary = run.result().summary()
    assert summary["rounds_with_lp"] == len(solved)
    assert summary["rounds_proven_without_lp"] == told.count("needless")


def test_a_plan_that_is_proven_needs_no_program() -> None:
    """Twelve rounds in which nothing waits; each lease begins with a proof, and rounds within it keep it."""
    told, solved = programs(simulation("chronus", "--hours", "1", "--jobs", "40"), 12)
    assert Counter(told) == {"needless": 12}
    assert solved == []


def test_hare_s_rounds_without_news_have_none() -> None:
    """The relaxation is solved where jobs have come or gone; the first rounds have no job.

    On 16 GPUs it is small, so that each round proves it needless or solves it; on 112 it is never solved.
    """
    run = simulation("hare", "--hours", "2", "--load", "1.2")
    assert isinstance(run.policy, HareTaskPolicy)
    run.policy.relaxation = "always"
    told, solved = programs(run, 24)
    assert told[0] == "none"
    assert {at for at, each in enumerate(told) if each == "solved"} == set(solved) != set()
    told, solved = programs(simulation("hare", "--gpus", "16", "--hours", "2", "--load", "1.2"), 24)
    assert "needless" in told
    assert len(solved) == told.count("solved")
    told, solved = programs(simulation("hare", "--hours", "2", "--load", "1.2"), 24)
    assert Counter(told) == {"none": 24}
    assert solved == []


def test_a_round_of_idle_gpus_has_a_program_where_a_job_waits() -> None:
    run = simulation("hops", "--hours", "2", "--load", "1.6")
    told, _ = programs(run, 60)
    for record, each in zip(run.records, told, strict=True):
        if each == "needless":  # a whole plan has a program, if only an empty one
            full = record.utilisation == 1.0
            assert full or record.queued_jobs == 0


def test_a_policy_counts_programs_only_if_it_has_some() -> None:
    cluster = Cluster.of({"t4": (1, 4)})
    plain, with_programs = FifoPolicy(cluster), SiaPolicy(cluster)
    assert (plain.variables, plain.programs_solved, plain.programs_needless) == (0, None, 0)
    assert (with_programs.programs_solved, with_programs.programs_needless) == (0, 0)
