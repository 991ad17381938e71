"""Certificates in the format VIPR 1.1: written from a proof's tree, judged by our own reader, and lies are seen."""

from __future__ import annotations

import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import copter
from copter import LinearProgram
from copter.verify import Unusable, main, verify_vipr

CHECKER = shutil.which("viprchk")
BY_HAND = """% a program of two whole columns: min x + y, 2x + 2y >= 3
VER 1.1
VAR 2 x y
INT 2 0 1
OBJ min 2 0 1 1 1
CON 3 2
row G 3 2 0 2 1 2
xlow G 0 1 0 1
ylow G 0 1 1 1
RTP range 2 2
SOL 1 best 1 0 2
DER 2
half G 3/2 OBJ { lin 1 0 1/2 } -1
whole G 2 OBJ { rnd 1 3 1 } -1
"""


def program(seed: int) -> LinearProgram:
    """Whole columns from 0 to 3, and rows of whole numbers."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 4)), int(rng.integers(3, 7))
    matrix, cost = rng.integers(1, 12, (m, n)).astype(float), rng.integers(1, 15, n).astype(float)
    if seed % 2:
        cost = cost + rng.random(n)
    sense = "max" if seed % 4 < 2 else "min"
    right = np.floor(matrix.sum(axis=1) * rng.uniform(0.8, 1.6, m))
    bounds = (-np.inf, right) if sense == "max" else (right, np.inf)
    return LinearProgram(cost, matrix, *bounds, 0.0, 3.0, sense=sense, offset=0.25, integrality=np.ones(n, dtype=int))


@pytest.mark.parametrize("seed", range(12))
def test_a_certificate_is_written_and_accepted(tmp_path: Path, seed: int) -> None:
    path, lp = tmp_path / "proof.vipr", program(seed)
    found = copter.solve_integer(lp, proof=path, deadline_s=10.0)
    assert found.proof == "written"
    counts, faults = verify_vipr(path)
    assert not faults
    assert counts["constraints"] >= 2
    low, high = next(line for line in path.read_text().splitlines() if line.startswith("RTP")).split()[2:]
    sign = 1 if lp.sense == "min" else -1
    assert sign * Fraction(high) + Fraction(lp.offset) == pytest.approx(found.objective)
    assert 0 <= Fraction(high) - Fraction(low) <= 1e-6 * (1 + abs(found.objective))
    assert main([str(path)]) == 0


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_names_the_objective(tmp_path: Path, seed: int) -> None:
    """The published checker proves a bound only by a constraint that says OBJ; by its coefficients it refuses it."""
    path = tmp_path / "proof.vipr"
    copter.solve_integer(program(seed), proof=path)
    bound = path.read_text().split("RTP range ")[1].split()[0]
    assert path.read_text().splitlines()[-1].split()[1:4] == ["G", bound, "OBJ"]


@pytest.mark.skipif(CHECKER is None, reason="viprchk of github.com/scipopt/vipr is not on the PATH")
@pytest.mark.parametrize("seed", range(60))
def test_the_published_checker_accepts_it(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "proof.vipr"
    copter.solve_integer(program(seed), proof=path, deadline_s=10.0)
    told = subprocess.run([str(CHECKER), str(path)], capture_output=True, text=True, check=False, timeout=60)
    assert "Successfully verified optimal value range" in told.stdout


def test_one_by_hand_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "hand.vipr"
    path.write_text(BY_HAND)
    assert verify_vipr(path)[1] == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("RTP range 2 2", "RTP range 5/2 3", "the bound 5/2 is not derived"),
        ("RTP range 2 2", "RTP range 2 1", "no point is as good"),
        ("RTP range 2 2", "RTP infeas", "that there is no point"),
        ("best 1 0 2", "best 1 0 3/2", "is not whole"),
        ("best 1 0 2", "best 1 0 1", "breaks constraint 0"),
        ("whole G 2 OBJ { rnd 1 3 1 }", "whole G 3 OBJ { rnd 1 3 1 }", "does not follow from its rnd"),
        ("half G 3/2 OBJ { lin 1 0 1/2 }", "half G 2 OBJ { lin 1 0 1/2 }", "does not follow from its lin"),
        ("whole G 2 OBJ { rnd 1 3 1 }", "whole G 2 OBJ { asm }", "the bound 2 is not derived"),
    ],
)
def test_lies_are_seen(tmp_path: Path, old: str, new: str, fault: str) -> None:
    path = tmp_path / "lie.vipr"
    assert old in BY_HAND
    path.write_text(BY_HAND.replace(old, new))
    assert any(fault in each for each in verify_vipr(path)[1])
    assert main([str(path)]) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DER 2", "DER 3"), ("VER 1.1", "VER 7"), ("INT 2 0 1", "INT 1 0"), ("lin 1 0 1/2", "lin 1 9 1/2"),
        ("lin 1 0 1/2", "guess 1"), ("row G 3 2 0 2 1 2", "row G 3 2 0 2 5 2"), ("3/2", "3/0"), ("min", "least"),
    ],
)  # fmt: skip
def test_what_is_no_certificate(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "none.vipr"
    path.write_text(BY_HAND.replace(old, new))
    with pytest.raises(Unusable):
        verify_vipr(path)


def test_a_split_that_leaves_something_out_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "split.vipr"
    split = BY_HAND.replace(
        "DER 2\nhalf G 3/2 OBJ { lin 1 0 1/2 } -1\nwhole G 2 OBJ { rnd 1 3 1 } -1",
        "DER 5\nbelow L 0 1 0 1 { asm } -1\nabove G UP 1 0 1 { asm } -1\n"
        "half G 3/2 OBJ { lin 1 0 1/2 } -1\nwhole G 2 OBJ { rnd 1 5 1 } -1\nboth G 2 OBJ { uns 6 3 6 4 } -1",
    )
    path.write_text(split.replace("UP", "1"))
    assert verify_vipr(path)[1] == []
    path.write_text(split.replace("UP", "2"))
    assert any("leaves something out" in each for each in verify_vipr(path)[1])


def test_a_point_whose_rows_hold_only_nearly_has_no_certificate(tmp_path: Path) -> None:
    lp = LinearProgram([1.0, 1.0], [[0.1, 0.7]], [0.3], [np.inf], 0.0, [3.0, 0.0], integrality=[1, 0])
    found = copter.solve_integer(lp, proof=tmp_path / "near.vipr")
    exactly = Fraction(0.1) * 3 >= Fraction(0.3)
    assert (found.proof == "written") is exactly
    assert (tmp_path / "near.vipr").exists() is exactly
