"""copter by its name in linopy and PyPSA, and the page's blocks as printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

linopy = pytest.importorskip("linopy", reason="linopy is not installed: pip install copter-lp[linopy]")

from copter.interop.linopy import Copter, register  # noqa: E402 - needs linopy


def model_of(whole: bool = False) -> Any:
    """Two variables, a demand that both answer."""
    model = linopy.Model()
    x = model.add_variables(lower=0, upper=3, name="x", integer=whole)
    y = model.add_variables(lower=0, name="y")
    model.add_constraints(2 * x + y >= 7, name="demand")
    model.add_objective(3 * x + 2 * y)
    return model


@pytest.mark.parametrize("whole", [False, True])
def test_a_model_is_solved_by_name(whole: bool) -> None:
    model = model_of(whole)
    assert model.solve("copter") == ("ok", "optimal")
    assert model.objective.value == pytest.approx(11.0)
    assert isinstance(model.solver, Copter)
    assert model.solver_name == "copter"


def test_options_are_copters() -> None:
    assert model_of().solve("copter", time_limit_s=20.0)[0] == "ok"
    with pytest.raises(ValueError, match="copter has no option 'pace'"):
        model_of().solve("copter", pace=1)


def test_a_file_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="copter takes io_api='direct' only, not 'lp'"):
        model_of().solve("copter", io_api="lp")


def test_linopys_default_stays_and_registering_again_changes_nothing() -> None:
    register()
    assert list(linopy.available_solvers).count("copter") == 1
    assert [each.value for each in linopy.solvers.SolverName].count("copter") == 1
    assert linopy.available_solvers[-1] == "copter"
    assert linopy.solvers.check_solver_licenses("copter")["copter"].ok


def test_a_network_is_optimised_by_name() -> None:
    pypsa = pytest.importorskip("pypsa")
    network = pypsa.Network(snapshots=range(3))
    network.add("Bus", ["north", "south"])
    network.add("Line", "line", bus0="north", bus1="south", x=0.1, s_nom=4)
    network.add("Load", "load", bus="south", p_set=[3.0, 6.0, 9.0])
    network.add("Generator", "wind", bus="north", p_nom=8, marginal_cost=1)
    network.add("Generator", "gas", bus="south", p_nom=10, marginal_cost=20)
    assert network.optimize(solver_name="copter") == ("ok", "optimal")
    assert network.objective == pytest.approx(3 + 4 + 4 + 20 * (2 + 5))


ROOT = Path(__file__).parents[3]
PATCH = ROOT / "docs" / "howto" / "linopy_entry_point.patch"
BY_ENTRY_POINT = """
import sys
import linopy
model = linopy.Model()
x = model.add_variables(lower=2, name="x")
model.add_objective(3 * x)
assert "copter.interop.linopy" not in sys.modules
assert linopy.available_solvers[-1] == "copter" != linopy.available_solvers[0], linopy.available_solvers
assert model.solve("copter") == ("ok", "optimal")
assert model.objective.value == 6.0
import copter.interop.linopy
assert list(linopy.available_solvers).count("copter") == 1
"""


@pytest.mark.skipif(not linopy.__version__.startswith("0.10."), reason="the patch is for linopy 0.10")
@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patch")
def test_the_patch_for_linopy_makes_the_entry_point_work(tmp_path: Path) -> None:
    toml = pytest.importorskip("tomllib")
    points = toml.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["linopy.solvers"]
    shutil.copytree(Path(linopy.__file__).parent, tmp_path / "linopy", ignore=shutil.ignore_patterns("__pycache__"))
    applied = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(["git", "apply", str(PATCH)], cwd=tmp_path, env=applied, check=True)
    about = tmp_path / "doors-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: doors\nVersion: 1\n")
    lines = "".join(f"{name} = {place}\n" for name, place in points.items())
    (about / "entry_points.txt").write_text(f"[linopy.solvers]\n{lines}")
    paths = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", BY_ENTRY_POINT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
