"""Chronus and Hare solve their linear programs by copter: no other solver, and no factorisation of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import copter_frontends
from copter import Session, Solution
from copter_frontends.policies.chronus import ChronusPolicy, LeaseFormulation, StepReward
from copter_frontends.policies.chronus.options import Options
from copter_frontends.policies.hare import HareInstance, HareJob, RelaxationSolver, TimeGrid, sufficient_horizon_s
from copter_frontends.policy_kit import ThroughputTable
from copter_frontends.vocabulary import Cluster, Job

ROOT = Path(copter_frontends.__file__).parents[1]
SOLVERS = ("highspy", "cvxpy", "ortools", "linopy", "pyomo", "pulp", "qpsolvers", "osqp", "sksparse", "sklearn")
FACTORISATIONS = ("scipy.linalg", "scipy.sparse.linalg", "numpy.linalg")
ALLOWED = {
    # Not linear programs: the first prices are those of a smooth function; AlloX, an opponent, is a matching.
    ("copter_frontends/policies/chronus/smoothing.py", "scipy.optimize.minimize"),
    ("copter_papers/hare/opponents.py", "scipy.optimize.linear_sum_assignment"),
}


def names_used(file: Path) -> Iterator[str]:
    """Dotted names of all that a file imports, and of all attributes that it looks up in NumPy and SciPy."""
    short = {"np": "numpy", "sp": "scipy.sparse", "scipy": "scipy"}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in short:
            yield f"{short[node.value.id]}.{node.attr}"


@pytest.mark.parametrize("package", ["chronus", "hare"])
def test_no_other_solver_and_no_factorisation_is_used(package: str) -> None:
    folders = (f"copter_frontends/policies/{package}", f"copter_papers/{package}")
    files = sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    assert len(files) > 20
    found = {(file.relative_to(ROOT).as_posix(), name) for file in files for name in names_used(file)}
    wrong = [
        (file, name)
        for file, name in found
        if name.split(".")[0] in SOLVERS or name.startswith((*FACTORISATIONS, "scipy.optimize"))
    ]
    assert set(wrong) == {each for each in ALLOWED if f"/{package}/" in each[0]}


def test_the_rule_finds_what_it_forbids(tmp_path: Path) -> None:
    file = tmp_path / "solver.py"
    file.write_text("import highspy\nimport numpy as np\nfrom scipy.optimize import milp\nL = np.linalg.cholesky(1)\n")
    assert {"highspy", "scipy.optimize.milp", "numpy.linalg"} <= set(names_used(file))


@pytest.fixture
def solves(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """The session of every solve of one."""
    seen: list[Session] = []
    whole = Session.solve

    def watched(self: Session, *arguments: object, **named: object) -> Solution:
        seen.append(self)
        return whole(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "solve", watched)
    return seen


def test_every_cycle_of_chronus_solves_the_one_session(solves: list[Session]) -> None:
    rows = [(job, 0, 0, 2, 1 + job % 3, 4, 0, 10.0 + job) for job in range(12)]
    formulation = LeaseFormulation(gap=1e-6)
    for _ in range(2):
        found = formulation.solve(Options.of(rows, [False] * 12), np.full((1, 4), 8))
        assert found.passes > 0
    assert len(solves) >= 2
    assert {id(session) for session in solves} == {id(formulation.lease_model.session)}


def test_the_policy_answers_for_its_cycle_by_that_session(solves: list[Session]) -> None:
    policy = ChronusPolicy(Cluster.of({"v100": (1, 8)}), ThroughputTable({"any": {"v100": 1.0}}))
    for number in range(30):
        policy.set_reward(f"job-{number}", StepReward.soft(3 * 3600.0 + 600.0 * number))
        policy.add_job(Job(f"job-{number}", "any", work_samples=3600.0 * (1 + number % 3), requested_gpus=2))
    policy.plan(0.0)
    assert policy.last_cycle is not None
    assert policy.last_cycle.solution is not None
    assert policy.last_cycle.solution.edits.added > 0
    assert {id(session) for session in solves} == {id(policy.selector.formulation.lease_model.session)}


def test_every_plan_of_hare_solves_the_one_session(solves: list[Session]) -> None:
    solver = RelaxationSolver(threads=1)
    jobs = [HareJob(f"j{n}", 5, 2, {"a": 1.0 + n, "b": 2.0}, weight=1.0 + n) for n in range(4)]
    instance = HareInstance.of(jobs, {"a": 2, "b": 1})
    grid = TimeGrid.geometric(0.0, sufficient_horizon_s(instance))
    found = solver.solve(instance, grid)
    assert found.gap <= 1e-4 + 1e-9
    assert solves
    assert len({id(session) for session in solves}) == 1
