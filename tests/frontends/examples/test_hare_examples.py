"""The examples run, small; the equations that the code cites are in the docs."""

import re
import runpy
import sys
from pathlib import Path

import pytest

import copter_frontends

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "frontends" / "examples"


@pytest.mark.parametrize("name", ["hare_ten_thousand", "hare_twenty_five_thousand"])
def test_the_examples_run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--gpus", "112", "--rounds", "1"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    line = (
        r"plan (\d): ([\d,]+) tasks, .*\((\d+) iterations, (cold|warm)\), .*, "
        r"at most ([\d.]+) times the optimum, feasible"
    )
    plans = [re.fullmatch(line, text) for text in out.splitlines()]
    assert [(plan[1], plan[4]) for plan in plans if plan is not None] == [("0", "cold"), ("1", "warm")]
    for plan in plans:
        assert plan is not None
        assert int(plan[2].replace(",", "")) > 100_000
        assert 1.0 <= float(plan[5]) < 2.0


def test_the_testbeds_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["hare_testbed", "--jobs", "8", "--max-tasks", "5000"])
    runpy.run_path(str(EXAMPLES / "hare_testbed.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert out.startswith("8 jobs on 15 GPUs")
    rows = re.findall(r"^ *(.+): weighted JCT +([\d.]+) h, mean +([\d.]+) min$", out, re.MULTILINE)
    weighted_h = {name: float(hours) for name, hours, _ in rows}
    assert len(weighted_h) == 13
    assert min(weighted_h.values()) == weighted_h["Hare, by tasks"]
    assert all(float(minutes) > 0 for _, _, minutes in rows)


def test_cited_equations_exist() -> None:
    text = (ROOT / "docs" / "papers" / "hare.md").read_text()
    numbered = set(re.findall(r"\\tag\{(HR\d+)\}", text)) | set(re.findall(r"\*\*(HR\d+)\.\*\*", text))
    cited = {
        number
        for path in (Path(copter_frontends.__file__).parent / "policies" / "hare").glob("*.py")
        for number in re.findall(r"\b(HR\d{1,2})\b", path.read_text())
    }
    assert cited
    assert cited <= numbered
    assert numbered == {f"HR{i}" for i in range(1, len(numbered) + 1)}
