"""The harness: the keys that --json promises, peers that agree, a page that holds what was measured."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from crossover import crossing, markdown
from families import NAMES
from harness import Options, Run

ROUNDS = Path(__file__).parents[2] / "benchmarks" / "rounds.py"
SCALE = {"sia": 112, "hadar": 200, "hops": 168, "gub": 40, "transport": 40, "multicommodity": 30}
KEYS = {
    "family", "scale", "rounds", "variables", "nonzeros", "copter", "peers", "ratio_to_best_peer",
    "objective_rel_diff_max",
}  # fmt: skip
COPTER = {"p50_s", "p99_s", "max_s", "cold_s", "passes_p50", "gap_max", "residual_max", "peak_rss_mb"}


def run(name: str, peers: tuple[str, ...]) -> dict:
    options = Options(name, SCALE[name], churn=0.1, rounds=2, rows=12, peers=peers, peer_time_limit_s=20.0)
    return Run(options).run()


@pytest.mark.parametrize("name", NAMES)
def test_highs_agrees_and_the_keys_are_there(name: str) -> None:
    pytest.importorskip("highspy")
    peers = {"highs": "highs_warm"} | ({"highs-simplex-cold": "highs_simplex_cold"} if name == "gub" else {})
    found = run(name, tuple(peers))
    assert set(found) >= KEYS
    assert set(found["copter"]) >= COPTER
    assert found["copter"]["not_optimal"] == 0
    assert found["copter"]["gap_max"] <= 1e-6
    for peer in peers.values():
        assert found["peers"][peer]["time_limit_hit"] == 0
        assert found["peers"][peer]["gap_max"] <= 1e-9
        assert found["peers"][peer]["relative_residual_max"] <= 1e-9
    assert found["objective_rel_diff_max"] <= 2e-6
    assert found["ratio_to_best_peer"] > 0


def test_or_tools_agrees() -> None:
    if importlib.util.find_spec("ortools") is None:
        pytest.skip("OR-Tools is not installed (extra 'benchmark')")
    found = run("sia", ("glop", "pdlp"))
    assert found["peers"]["glop_warm"]["gap_max"] <= 1e-9
    assert found["peers"]["pdlp_warm"]["gap_max"] <= 1e-5
    assert found["objective_rel_diff_max"] <= 1e-5


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
    ],
)
def test_bad_arguments_exit_with_two(arguments: list[str], complaint: str) -> None:
    done = subprocess.run([sys.executable, str(ROUNDS), *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert complaint in done.stderr


def result(nonzeros: int, copter_s: float, highs_s: float) -> dict:
    """A run's object, as far as the tables need it."""
    own = dict.fromkeys(("edit_p50_s", "solve_p50_s", "shim_p50_s"), copter_s / 3) | {"p50_s": copter_s}
    own |= {"gap_max": 1e-7, "not_optimal": 0}
    found = {"family": "gub", "scale": nonzeros // 50, "nonzeros": nonzeros, "rows": 50, "churn": 0.01, "copter": own}
    return found | {"peers": {"highs_warm": {"p50_s": highs_s}}}


def test_the_crossing_lies_between_the_last_loss_and_the_first_win() -> None:
    runs = [result(10_000, 4.0, 1.0), result(1_000_000, 1.0, 4.0)]
    assert crossing(runs) == "1.0e+05"
    assert crossing(runs[::-1]) == "1.0e+05"
    assert crossing(runs[:1]).startswith("above 1.0e+04")
    assert crossing(runs[1:]).startswith("none")
    found = {"machine": {"processor": "a processor", "threads": 2}, "rounds": 7, "families": ["gub", "sia"]}
    page = markdown(found | {"sizes": runs, "churns": runs[:1]})
    assert "| gub | 1.0e+05 |" in page
    assert "| sia | not measured |" in page
    assert page.count("| gub | 200 |") == 2
    assert "| 0.25 |" in page


def test_the_page_holds_the_curves_and_the_losses(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    from page import write_page

    runs = [r | {"variables": r["nonzeros"] // 5} for r in (result(10_000, 4.0, 1.0), result(1_000_000, 1.0, 4.0))]
    machine = {"processor": "a processor", "threads": 2, "stream_bytes_per_s": 1e10, "python": "3.12"}
    found = {"machine": machine, "rounds": 7, "families": ["gub"], "sizes": runs, "churns": runs}
    text = write_page(found, [], tmp_path).read_text()
    assert text.count("<svg") == 2
    assert text.count('class="loss"') == text.count('class="win"') == 2
    assert "one pass over the costs" in text
