"""The harness: the keys that --json promises, peers that agree, a page that holds what was measured."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import harness
import pytest
from families import NAMES, Instance
from families.protocol import SolverOptions
from harness import Options, Rounds, of_tape, sum_ratio, why_dropped

from copter_frontends.replay.runs import Run

ROUNDS = Path(__file__).parents[2] / "benchmarks" / "rounds.py"
SCALE = {"sia": 112, "bursts": 112} | dict.fromkeys(("gub", "transport", "multicommodity"), 40)
KEYS = {
    "family", "scale", "rounds", "change", "jobs", "rows", "variables", "nonzeros", "copter", "peers", "best_peer",
    "ratio_to_best_peer", "cold_ratio_to_best_peer", "objective_rel_diff_max",
}  # fmt: skip
COPTER = {"p50_s", "p99_s", "max_s", "cold_s", "passes_p50", "gap_max", "residual_max", "peak_rss_mb"}
WAYS = {
    "highs_dual_warm", "highs_primal_warm", "highs_ipm_cold", "highs_ipm_cold_no_crossover",
    "highs_ipm_cold_no_crossover_1e-6", "highs_simplex_cold",
}  # fmt: skip


def run(name: str, peers: tuple[str, ...], change: str | None = None) -> dict:
    options = Options(name, Instance(SCALE[name], change, rows=12), 2, peers, 20.0, SolverOptions())
    return Rounds(options).run()


@pytest.mark.parametrize(("name", "change"), [*((name, None) for name in NAMES), ("multicommodity", "link")])
def test_highs_agrees_and_the_keys_are_there(name: str, change: str | None) -> None:
    pytest.importorskip("highspy")
    found = run(name, ("highs",), change)
    assert set(found) >= KEYS
    assert set(found["copter"]) >= COPTER
    assert found["copter"]["not_optimal"] == 0
    assert found["copter"]["verified"] == 6  # the cold round, three to warm up, two that count
    assert set(found["peers"]) == WAYS
    best = found["peers"][found["best_peer"]]
    assert best["time_limit_hit"] == 0
    assert best["gap_max"] <= 1e-6
    assert best["relative_residual_max"] <= 1e-6
    assert found["ratio_to_best_peer"] == best["p50_s"] / found["copter"]["p50_s"]
    assert found["lp_ratio_to_best_peer"] == best["p50_s"] / found["copter"]["lp_p50_s"]
    assert found["lp_ratio_to_best_peer"] >= found["ratio_to_best_peer"]
    assert found["cold_lp_ratio_to_best_peer"] >= found["cold_ratio_to_best_peer"]
    assert all(way["dropped"] or "p50_s" in way for way in found["peers"].values())
    assert found["best_peer_cold_s"] > 0
    assert found["copter"]["gap_max"] <= found["tolerance"]
    assert found["objective_rel_diff_max"] <= 2 * found["tolerance"]


def test_a_tape_of_the_product_is_replayed_by_all_ways_to_its_end(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    tape = tmp_path / "gub.tape"
    Rounds(Options("gub", Instance(40, rows=8), 3)).record(tape)
    found = of_tape(str(tape), Options(rounds=2, peers=("highs",), time_limit_s=20.0))
    assert found["rounds"] == 2
    assert found["variables"] > 0
    assert set(found["peers"]) == WAYS
    best = found["peers"][found["best_peer_by_sum"]]
    assert (
        found["sum_ratio_to_best_peer"] == best["sum_ratio"] == min(way["sum_ratio"] for way in found["peers"].values())
    )
    assert found["copter"]["verified"] == 6


def test_a_tape_without_rounds_after_the_warm_up_is_refused(tmp_path: Path) -> None:
    tape = tmp_path / "gub.tape"
    Rounds(Options("gub", Instance(40, rows=8), 1)).record(tape)
    with pytest.raises(ValueError, match="it must have more than 4"):
        of_tape(str(tape), Options(rounds=0))


def test_the_sums_are_of_the_rounds_that_both_answered() -> None:
    own = [{"round": k, "edit_s": 1.0, "solve_s": float(k)} for k in range(7)]
    theirs = [{"round": k, "total_s": 10.0 * k, "optimal": k != 5} for k in range(6)]
    assert sum_ratio(Run("highs", theirs), Run("copter", own)) == 40.0 / 5.0
    assert sum_ratio(Run("highs", theirs[:4]), Run("copter", own)) is None


def test_the_plan_is_set_against_highs_milp() -> None:
    pytest.importorskip("highspy")
    found = run("sia", ("highs-milp",))["peers"]["highs_milp"]
    assert 0.9 <= found["value_over_plan_p50"] <= 1.2


def test_or_tools_agrees() -> None:
    if importlib.util.find_spec("ortools") is None:
        pytest.skip("OR-Tools is not installed (extra 'benchmark')")
    found = run("sia", ("glop", "pdlp"))
    assert found["peers"]["glop_warm"]["gap_max"] <= 1e-9
    assert found["peers"]["pdlp_warm"]["gap_max"] <= 1e-5
    assert found["objective_rel_diff_max"] <= 1e-5


def tried(total_s: list[float], ended: bool = True, residual: float = 0.0) -> Run:
    rows = [
        {"total_s": each, "optimal": ended, "status": "time_limit", "relative_residual": residual} for each in total_s
    ]
    return Run("way", rows)


def test_the_best_ways_go_on_and_the_others_say_why_not() -> None:
    ways = {
        "best": tried([9.0, 1.0, 1.0, 4.0]),
        "near": tried([9.0, 2.2, 2.2, 2.2]),
        "third": tried([9.0, 2.3, 2.3, 2.3]),
        "late": tried([9.0, 1.0], ended=False),
        "off": tried([9.0, 1.0, 1.0, 1.0], residual=1e-3),
        "dead": Run("way", [], "crashed in round 0"),
    }
    why = {way: why_dropped(run, ways, 1e-6) for way, run in ways.items()}
    assert why["best"] is None
    assert why["near"] is None
    assert why["third"] == "slower than the best in the warm-up"
    assert why["late"] == "time_limit after 1 s"
    assert why["off"] == "its points are off by 1e-03, above the tolerance"
    assert why["dead"] == "crashed in round 0"


def test_the_command_prints_one_object_on_the_last_line() -> None:
    command = [
        sys.executable,
        str(ROUNDS),
        "--family",
        "gub",
        "--scale",
        "40",
        "--rows",
        "12",
        "--rounds",
        "1",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.strip().splitlines()[-1])["jobs"] == 40


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--peers", "cplex"], "unknown peer 'cplex'"),
        (["--rounds", "0"], "rounds must be >= 1"),
        (["--churn", "1.5"], "churn from 0"),
        (["--family", "gub", "--rows", "3"], "rows must be >= 8"),
        (["--family", "sia", "--change", "link"], "sia knows no change 'link'"),
        (["--family", "sia", "--scale", "20"], "scale of sia must be >= 56"),
    ],
)
def test_bad_arguments_exit_with_two(arguments: list[str], complaint: str) -> None:
    done = subprocess.run([sys.executable, str(ROUNDS), *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert complaint in done.stderr


@pytest.mark.parametrize(
    ("judged", "told"), [(None, "--judge N judges the last N"), (1, "replay ended after 0 rounds")]
)
def test_a_replay_that_died_says_why(monkeypatch: pytest.MonkeyPatch, judged: int | None, told: str) -> None:
    monkeypatch.setattr(harness, "run_copter", lambda asked: Run("copter", [], "its process was killed"))
    options = Options("sia", Instance(64), rounds=1, judged=judged)
    with pytest.raises(ValueError, match="after 0 rounds: its process was killed") as found:
        Rounds(options).run()
    assert told in str(found.value)
    assert ("--judge" in str(found.value)) == (judged is None)
