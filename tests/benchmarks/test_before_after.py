"""Two checkouts in turns: the rows say what the replays took, and what differs is counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import before_after as compared
import pytest

from copter import Model, Session

ROOT = Path(__file__).parents[2]


def recorded(path: Path) -> Path:
    """A tape of four rounds."""
    model = Model()
    model.add_resources("gpu", 3.0)
    for job in range(5):
        model.add_request(job, [1.0 + job, 2.0], usage={"gpu": [1.0, 2.0]})
    session = Session(model)
    session.record(path)
    for count in range(4):
        model.update_cost(count, [5.0, 1.0 + count])
        session.solve()
    session.record(None)
    return path


def test_a_checkout_beside_itself_has_the_same_answers(tmp_path: Path) -> None:
    row = compared.measured(ROOT, ROOT, recorded(tmp_path / "small.tape"), rounds=3, replays=2)
    assert (row["tape"], row["rounds"], row["differ"]) == ("small", 3, 0)
    assert row["ratio"] == row["after_s"] / row["before_s"] > 0.0
    pairs = compared.in_turns(ROOT, ROOT, tmp_path / "small.tape", rounds=9)
    assert len(pairs) == 4
    assert all(old[1:] == new[1:] for old, new in pairs)


def test_other_answers_are_seen() -> None:
    old = [0.1, "optimal", 2.0, "basis"]
    assert not compared.differ(old, [0.2, "optimal", 2.000001, "blocks"])
    assert compared.differ(old, [0.1, "optimal", 2.1, "basis"])
    assert compared.differ(old, [0.1, "primal_infeasible", 2.0, "basis"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--before", "{root}", "--tapes", "{here}"], "no tapes in"),
        (["--before", "{root}", "--tapes", "{here}", "--only", "sia"], "no tape 'sia' in"),
        (["--before", "{here}", "--tapes", "{here}", "--only", "small"], "is no checkout of this project"),
    ],
)
def test_bad_questions_are_told_in_a_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    if "small" in arguments:
        recorded(tmp_path / "small.tape")
    asked = [each.format(root=ROOT, here=tmp_path) for each in arguments]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "before_after.py"), *asked],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert told in done.stderr
