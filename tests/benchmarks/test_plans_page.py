"""Plans beside HiGHS's: a run goes on where it ended, its page counts rightly, and its own clock leaves waiting out."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import own_clock
import plan_ablation
import plans
import pytest

NONE = float("nan")


def answers(*objectives: float) -> list[list[float]]:
    """The session's, HiGHS's and HiGHS's warm answer of a round."""
    return [[objective, 90.0, 0.1] for objective in objectives]


def test_rounds_in_the_file_are_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, page = tmp_path / "rounds.json", tmp_path / "page.md"
    rounds = [answers(100.0, 110.0, 105.0), answers(102.0, 101.0, NONE), answers(NONE, NONE, 120.0)]
    kept.write_text(json.dumps({"bins-40 0.1 s, 3 rounds": rounds}))
    played = []

    def play(name: str, *given: object) -> list[plans.Round]:
        played.append(name)
        return [plans.Round(*(plans.Answer(*each) for each in one)) for one in rounds]

    monkeypatch.setattr(plans, "rounds_of", play)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None, raising=False)
    given = ["plans.py", "--rounds", "3", "--deadlines", "0.1", "--families", "bins", "--json", str(kept)]
    monkeypatch.setattr(sys, "argv", [*given, "--write", str(page)])
    plans.main()
    assert played == ["bins-100"]
    assert set(json.loads(kept.read_text())) == {"bins-40 0.1 s, 3 rounds", "bins-100 0.1 s, 3 rounds"}
    text = page.read_text()
    assert "worse than HiGHS's by more than 0.5% in 2 of 6 rounds" in text  # 102 beside 101, twice
    assert "none where HiGHS has one in 2 rounds" in text
    mean = math.sqrt(105.0 / 100.0 * 101.0 / 102.0)
    assert f"{100.0 * (mean - 1.0):+.2f}%" in text
    played.clear()
    plans.main()
    assert played == []


def test_every_constant_of_the_ablation_is_there() -> None:
    for module, constant, _ in plan_ablation.CONSTANTS:
        value = getattr(sys.modules.get(module) or __import__(module, fromlist=["x"]), constant)
        assert all(isinstance(each, int | float) for each in (value if isinstance(value, tuple) else (value,)))


@pytest.mark.skipif(sys.platform != "linux", reason="the clock is Linux's")
def test_a_clock_of_a_run_s_own_stands_still_while_the_run_waits(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {str(Path(own_clock.__file__).parent)!r})\n"
        "import own_clock\n"
        "if not own_clock.is_here(): sys.exit(own_clock.again())\n"
        "import subprocess, time\n"
        "began = time.perf_counter(); time.sleep(3.0); slept = time.perf_counter() - began\n"
        "began = time.perf_counter()\n"
        "subprocess.run([sys.executable, '-c', 'import time\\nwhile time.process_time() < 0.5: pass'], check=True)\n"
        "print(slept, time.perf_counter() - began)\n"
    )
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    slept, worked = map(float, found.stdout.split())
    assert slept < 1.5
    assert worked >= 0.4  # another process's work counts
