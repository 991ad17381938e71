"""The sweep over sizes and churn: which runs it asks for, and where it reads off that copter overtakes HiGHS."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import crossover
import families
import pytest


def fake(family: str, scale: int, churn: float, how: crossover.How) -> dict[str, Any]:
    """A run in which copter takes 10 ms and HiGHS a millisecond per 100 of scale."""
    asked.append((family, scale, churn))
    own = {
        "p50_s": 0.010,
        "edit_p50_s": 0.001,
        "solve_p50_s": 0.008,
        "shim_p50_s": 0.001,
        "gap_max": 0.0,
        "not_optimal": 0,
    }
    return {
        "copter": own,
        "best_peer": "highs_dual_warm",
        "best_peer_p50_s": scale / 1e5,
        "nonzeros": 10 * scale,
        "rows": 7,
        "scale": scale,
        "family": family,
        "churn": churn,
    }


asked: list[tuple[str, int, float]] = []


def test_every_family_with_sizes_is_a_family() -> None:
    for sizes in crossover.SCALES.values():
        assert set(sizes) == set(crossover.CHURN_SCALE) <= set(families.NAMES)


@pytest.mark.parametrize("names", ["nope", "chronus", "gub,nope"])
def test_a_family_without_sizes_is_refused(names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["crossover.py", "--families", names])
    with pytest.raises(SystemExit) as stop:
        crossover.main()
    assert stop.value.code == 2


def test_by_default_all_families_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.clear()
    monkeypatch.setattr(crossover, "run_one", fake)
    monkeypatch.setattr("sys.argv", ["crossover.py", "--out", str(tmp_path)])
    crossover.main()
    quick = crossover.SCALES["quick"]
    assert {(family, scale) for family, scale, _ in asked} >= {(f, s) for f, sizes in quick.items() for s in sizes}
    page = (tmp_path / "crossover.md").read_text()
    assert all(f"| {family} |" in page for family in quick)
    assert "| gub | 1.0e+04 |" in page, "at scale 1,000, where both take 10 ms"


def test_a_run_is_asked_for_with_its_size_churn_and_method(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **options: Any) -> Any:
        commands.append(command)
        raise subprocess.TimeoutExpired(command, 1.0)

    monkeypatch.setattr(crossover.subprocess, "run", run)
    assert crossover.run_one("sia", 250, 0.1, crossover.How(3, 1.0, "coordinate_descent")) is None
    assert "--family sia --scale 250 --churn 0.1 --method coordinate_descent --rounds 3" in " ".join(commands[-1])


@pytest.mark.parametrize("processor", [False, True])
def test_processor_time_is_compared_where_it_is_asked_for(processor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both by the clock, or both by their processes' time with a thread each: never one by each."""

    def run(command: list[str], env: dict[str, str], **options: Any) -> Any:
        by_processor = env.get("COPTER_CLOCK") == "processor"
        assert by_processor == ("--threads 1" in " ".join(command))
        found = {"copter": {"p50_s": 0.4, "processor_p50_s": 0.1}, "best_peer": "highs", "best_peer_p50_s": 0.8}
        found["best_peer_p50_s"] = 0.2 if by_processor else 0.8
        return subprocess.CompletedProcess(command, 0, json.dumps(found) + "\n", "")

    monkeypatch.delenv("COPTER_CLOCK", raising=False)
    monkeypatch.setattr(crossover.subprocess, "run", run)
    result = crossover.run_one("sia", 250, 0.01, crossover.How(3, 1.0, processor=processor))
    assert result is not None
    assert crossover.ratio(result) == pytest.approx(2.0)
    assert result["copter"]["p50_s"] == (0.1 if processor else 0.4)
