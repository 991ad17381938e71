"""Proofs of mixed-integer answers: written by a tree of our own, judged in rational arithmetic, and lies are seen."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import copter
import copter.verify
from copter import LinearProgram
from copter.runtime.errors import InvalidDataError, SettingsError
from copter.verify import Unusable, judge_proof, main, verify_proof


def knapsacks(seed: int) -> LinearProgram:
    """A few whole columns under a few rows, and perhaps one continuous column."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 4)), int(rng.integers(3, 7))
    whole = np.ones(n, dtype=int)
    if seed % 3 == 0:
        whole[-1] = 0
    matrix = rng.integers(1, 12, (m, n)).astype(float) if seed % 2 else rng.uniform(0.5, 9.0, (m, n))
    cost = rng.integers(1, 15, n).astype(float) if seed % 2 else rng.uniform(1.0, 9.0, n)
    sense = "max" if seed % 4 < 2 else "min"
    right = matrix.sum(axis=1) * rng.uniform(0.8, 1.6, m)
    bounds = (-np.inf, right) if sense == "max" else (right, np.inf)
    return LinearProgram(cost, matrix, *bounds, 0.0, 3.0, sense=sense, offset=0.1, integrality=whole)


def best_of(lp: LinearProgram) -> float:
    """The optimum of a program of whole columns from 0 to 3, by looking at all points."""
    points = np.array(list(itertools.product(range(4), repeat=lp.shape[1])), dtype=float)
    use = points @ lp.A.toarray().T
    holds = (use <= lp.row_upper + 1e-9).all(axis=1) & (use >= lp.row_lower - 1e-9).all(axis=1)
    values = points[holds] @ lp.c + lp.offset
    return float(values.max() if lp.sense == "max" else values.min())


@pytest.mark.parametrize("seed", range(12))
def test_a_proof_is_written_and_accepted(tmp_path: Path, seed: int) -> None:
    lp, path = knapsacks(seed), tmp_path / "proof.json"
    found = copter.solve_integer(lp, proof=path, deadline_s=5.0)
    assert found.proof == "written"
    counts, faults = verify_proof(path)
    assert not faults
    assert counts["leaves"] >= 1
    assert 0.0 <= counts["gap"] <= 1e-6 * (1.0 + abs(found.objective))
    if lp.integrality.all():
        told = json.loads(path.read_text())
        assert float.fromhex(told["objective"]) == pytest.approx(best_of(lp))


def lies(told: Any) -> dict[str, Any]:
    """Proofs that prove nothing, each from a right one."""
    found: dict[str, Any] = {}

    def changed(name: str, **fields: Any) -> None:
        found[name] = {**json.loads(json.dumps(told)), **fields}

    sign = 1 if told["sense"] == "min" else -1
    changed("a bound that is too good", bound=(float.fromhex(told["bound"]) + sign * 0.5).hex())
    changed("another objective", objective=(float.fromhex(told["objective"]) + 1.0).hex())
    changed("a point that is not whole", x=[(0.5).hex(), *told["x"][1:]])
    changed("a point out of its bounds", x=[(99.0).hex(), *told["x"][1:]])
    nodes = json.loads(json.dumps(told["nodes"]))
    leaf = next(node for node in nodes if "prices" in node)
    leaf["prices"] = [(0.0).hex() for _ in leaf["prices"]]
    changed("a leaf without prices", nodes=nodes)
    for which in ("down", "up"):  # a part of the values is looked at nowhere
        nodes = json.loads(json.dumps(told["nodes"]))
        nodes[0]["down"] = nodes[0]["up"] = nodes[0][which]
        changed(f"a tree with {which} twice", nodes=nodes)
    nodes = json.loads(json.dumps(told["nodes"]))
    nodes[0]["column"] = len(told["cost"])
    changed("a branching at no column", nodes=nodes)
    return found


@pytest.mark.parametrize("seed", [1, 3, 5, 7, 9])
def test_lies_are_rejected(tmp_path: Path, seed: int) -> None:
    copter.solve_integer(knapsacks(seed), proof=tmp_path / "proof", deadline_s=5.0)
    told = json.loads((tmp_path / "proof").read_text())
    assert len(told["nodes"]) > 1
    for name, lie in lies(told).items():
        try:
            _, faults = judge_proof(lie)
        except (ValueError, KeyError):
            continue
        assert faults, name


def test_a_branching_of_a_column_that_is_not_whole_proves_nothing(tmp_path: Path) -> None:
    copter.solve_integer(knapsacks(1), proof=tmp_path / "proof", deadline_s=5.0)
    told = json.loads((tmp_path / "proof").read_text())
    told["whole"] = [False] * len(told["whole"])
    with pytest.raises(ValueError, match="whole column"):
        judge_proof(told)


def test_the_command_and_files_that_are_no_proofs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copter.solve_integer(knapsacks(2), proof=tmp_path / "proof", deadline_s=5.0)
    assert main([tmp_path / "proof"]) == 0
    assert "proof accepted" in capsys.readouterr().out
    told = json.loads((tmp_path / "proof").read_text())
    sign = 1 if told["sense"] == "min" else -1
    (tmp_path / "lie").write_text(json.dumps({**told, "bound": (float.fromhex(told["bound"]) + sign).hex()}))
    assert main([tmp_path / "lie"]) == 1
    assert "rejected" in capsys.readouterr().out
    for text in ("{", "{}", '{"format": "copter-proof 1"}', '{"format": "copter-proof 1", "sense": "min", "cost": 3}'):
        (tmp_path / "none").write_text(text)
        with pytest.raises(Unusable):
            verify_proof(tmp_path / "none")
        assert main([tmp_path / "none"]) == 2
    shutil.copytree(Path(copter.verify.__file__).parent, tmp_path / "judge")  # it needs nothing of copter
    alone = [sys.executable, "-m", "judge", str(tmp_path / "proof")]
    assert subprocess.run(alone, check=False, cwd=tmp_path, env={}).returncode == 0


def test_where_there_is_no_proof_it_says_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    weights = 2.0 * rng.integers(20, 60, 30).astype(float)
    even = LinearProgram(
        weights, [weights], -np.inf, weights.sum() // 4 * 2 + 1.0, 0.0, 1.0, sense="max", integrality=np.ones(30, int)
    )
    found = copter.solve_integer(even, proof=tmp_path / "proof", max_nodes=9, deadline_s=20.0)
    assert "within 9 nodes" in found.proof
    assert not (tmp_path / "proof").exists()
    impossible = LinearProgram([1.0], [[2.0]], 1.0, 1.0, 0.0, 1.0, integrality=[1])
    assert "no point" in copter.solve_integer(impossible, proof=tmp_path / "proof").proof
    with pytest.raises(SettingsError, match="path"):
        copter.solve_integer(impossible, proof=3)  # type: ignore[arg-type]
    semi = LinearProgram([1.0], [[1.0]], 1.0, 4.0, 0.0, 4.0, integrality=[0], semicontinuous=[2.0])
    with pytest.raises(InvalidDataError, match="semi-continuous"):
        copter.solve_integer(semi, proof=tmp_path / "proof")


def test_random_programs_have_leaves_of_both_kinds(tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    for seed in (1, 3, 10):
        path = tmp_path / f"proof-{seed}"
        copter.solve_integer(knapsacks(seed), proof=path, deadline_s=5.0)
        kinds.update(key for node in json.loads(path.read_text())["nodes"] for key in node)
    assert kinds["prices"] > 3
    assert kinds["ray"] > 0
    assert kinds["column"] > 3


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(copter.SettingsError, match="is there already"):
        copter.solve_integer(knapsacks(1), proof=path)
    assert path.read_text() == "mine"
