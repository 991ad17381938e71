"""``--method`` reaches the sessions of a policy, and what has none refuses it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from copter.runtime.settings import METHODS
from copter_frontends.cli import cli
from copter_frontends.policies.registry.names import METHOD_CHOICES, METHOD_NAMES, POLICY_NAMES
from copter_frontends.policies.registry.policies import POLICIES

DAY = ("--gpus", "56", "--jobs", "3000", "--rounds", "8", "--warmup-rounds", "20", "--threads", "1")


def test_the_command_line_offers_every_method_and_no_other() -> None:
    assert METHOD_CHOICES == METHODS
    assert set(METHOD_NAMES) <= set(POLICY_NAMES) == set(POLICIES)


@pytest.mark.parametrize("method", ["price_descent", "basis"])
def test_a_simulation_by_a_named_method_has_the_rounds_solved_by_it(method: str, tmp_path) -> None:
    tape = tmp_path / "day.tape"
    found = CliRunner().invoke(cli, ["simulate", "sia", *DAY, "--method", method, "--tape", str(tape), "--json"])
    assert found.exit_code == 0, found.output
    played = CliRunner().invoke(cli, ["replay", str(tape), "--threads", "1", "--json"])
    assert played.exit_code == 0, played.output
    (copter,) = json.loads(played.stdout.strip().splitlines()[-1])["solvers"]
    assert copter["methods"][method] > 0
    assert set(copter["methods"]) <= {"kept", method, "interior"}


def test_a_policy_without_a_session_refuses_a_method() -> None:
    found = CliRunner().invoke(cli, ["simulate", "chronus", *DAY, "--method", "blocks"])
    assert found.exit_code == 2
    assert "--method: the policy 'chronus' chooses its own; sia, hadar," in found.output


def test_solve_takes_a_method_and_says_which_can_where_it_cannot() -> None:
    found = CliRunner().invoke(cli, ["solve", "sample", "--method", "interior", "--json"])
    assert found.exit_code == 0
    assert json.loads(found.stdout.strip().splitlines()[-1])["status"] == "optimal"
    refused = CliRunner().invoke(cli, ["solve", "sample", "--method", "basis"])
    assert refused.exit_code == 2
    assert "use a Session, or 'simplex'" in refused.output
