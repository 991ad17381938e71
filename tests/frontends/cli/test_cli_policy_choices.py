"""Options that one policy has: Hops's lambda, sigma, priority, beta and profiling, Chronus's admission, Hadar's."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from copter_frontends.cli import cli
from copter_frontends.cli.options import OWN_OPTIONS, SimulateOptions
from copter_frontends.cli.run import Run
from copter_frontends.cli.simulate import simulate
from copter_frontends.policies.hops import ProfilingQueue


def policy_of(name: str, *arguments: str) -> Any:
    given = simulate.make_context("simulate", [name, "--gpus", "56", "--jobs", "4", "--hours", "1", *arguments])
    simulation = Run.read(SimulateOptions.of(**given.params)).simulation
    return simulation.policy


def test_hops_gets_its_own_parameters() -> None:
    plain = policy_of("hops")
    assert (plain.fairness, plain.book.rules.threshold, plain.standings.queue.priority) == (1.0, 1.4, "lr")
    own = policy_of("hops", "--fairness", "0.5", "--sensitivity", "2", "--priority", "las", "--stay-bonus", "0")
    assert (own.fairness, own.book.rules.threshold, own.standings.queue.priority) == (0.5, 2.0, "las")
    assert (plain.formulation.stay_bonus, own.formulation.stay_bonus) == (0.1, 0.0)


def test_chronus_admits_as_its_paper_does_if_asked() -> None:
    assert policy_of("chronus").selector.demand is not None
    assert policy_of("chronus", "--admission", "selective").selector.demand is not None
    assert policy_of("chronus", "--admission", "paper").selector.demand is None


@pytest.mark.parametrize("name", ["hadar", "hadar-online"])
def test_hadar_without_speeds_learns_them(name: str) -> None:
    assert policy_of(name).learns is False
    assert policy_of(name, "--unmeasured").learns is True


@pytest.mark.parametrize("option", ["fairness", "sensitivity", "priority", "stay_bonus", "unmeasured", "admission"])
def test_another_policy_refuses_them(option: str) -> None:
    value = {"unmeasured": [], "priority": ["las"], "admission": ["paper"]}.get(option, ["1"])
    found = CliRunner().invoke(cli, ["simulate", "sia", "--gpus", "56", f"--{option.replace('_', '-')}", *value])
    assert found.exit_code == 2
    assert f"the policy 'sia' has none; it is for {OWN_OPTIONS[option][0]}" in found.output


def test_hops_profiles_the_jobs_of_its_own_clusters_first() -> None:
    given = ["hops", "--cluster", "hops-64", "--jobs", "6", "--seed", "3", "--fairness", "0.5", "--profiling"]
    simulation = Run.read(SimulateOptions.of(**simulate.make_context("simulate", list(given)).params)).simulation
    queue: Any = simulation.policy
    assert isinstance(queue, ProfilingQueue)
    assert (queue.fairness, queue.learns) == (0.5, True)
    result = simulation.run()
    assert max(queue.probing) >= 3, "a GPU of every type"
    assert result.summary()["jobs_completed"] == 6
    plain = Run.read(SimulateOptions.of(**simulate.make_context("simulate", given[:-1]).params)).simulation
    assert plain.run().summary()["avg_jct_h"] < result.summary()["avg_jct_h"], "profiling takes time"


def test_what_hops_measures_is_not_saved_and_that_is_said_before_the_run() -> None:
    given = ["simulate", "hops", "--cluster", "hops-64", "--profiling", "--save", "no/such/folder/run"]
    found = CliRunner().invoke(cli, given)
    assert found.exit_code == 2
    assert "not part of a saved run" in found.output


def test_hops_cannot_profile_jobs_of_which_no_iteration_is_known() -> None:
    found = CliRunner().invoke(cli, ["simulate", "hops", "--gpus", "56", "--jobs", "4", "--profiling"])
    assert found.exit_code == 2
    assert "--cluster hops-64 or hops-512" in found.output
