"""The table of block programs: how many times faster copter's warm rounds are than HiGHS's best way, with the bars.

    python benchmarks/block_table.py                      # quick: about two minutes
    python benchmarks/block_table.py --sizes full --rounds 20
    python benchmarks/block_table.py --sizes medium --families multicommodity,transport

Every row is a run of rounds.py in a process of its own. Writes block_table.json and block_table.md into --out (default
benchmarks/results); rows that were run before and are in the file are kept with --reuse.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = ("quick", "medium", "full")
COLD_BAR = 3.0  # times faster than HiGHS's best cold way
MATRIX_BYTES = 12.0  # of a nonzero: value and index
MEMORY_BAR = 12.0  # times the matrix
MEMORY_FROM = 1_000_000  # nonzeros from which memory is more than what Python and NumPy take
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    family, scale, change, churn, mode
        As for rounds.py.
    bar : float
        Times faster than HiGHS's best way; of `seconds` rows, the most that a median round may take.
    size : {"quick", "medium", "full"}
        The smallest size of run that it belongs to.
    seconds : bool
    """

    family: str
    scale: int
    change: str
    bar: float
    size: str
    churn: float | None = None
    mode: str = "full"
    seconds: bool = False

    @property
    def name(self) -> str:
        """Words that no other row has."""
        amount = "" if self.churn is None else f" {self.churn:g}"
        return f"{self.family} {self.mode} {self.scale:,} {self.change}{amount}"

    def command(self, rounds: int, seed: int, limit_s: float) -> list[str]:
        """The run of rounds.py."""
        found = [sys.executable, str(HERE / "rounds.py"), "--family", self.family, "--scale", str(self.scale)]
        found += ["--mode", self.mode, "--change", self.change, "--rounds", str(rounds), "--seed", str(seed), "--json"]
        found += [] if self.churn is None else ["--churn", str(self.churn)]
        found += [] if self.seconds else ["--peers", "highs", "--peer-time-limit", str(limit_s / 6)]
        return [*found, "--time-limit", str(limit_s / 6)]


def multicommodity(scale: int, bars: tuple[float, float, float], size: str) -> list[Row]:
    """The three kinds of change of one size."""
    kinds = zip(("limits", "some-limits", "link"), bars, strict=True)
    return [Row("multicommodity", scale, change, bar, size) for change, bar in kinds]


ROWS: tuple[Row, ...] = (
    *multicommodity(2_000, (3, 3, 3), "quick"),
    *multicommodity(20_000, (10, 5, 10), "medium"),
    *multicommodity(100_000, (15, 8, 15), "full"),
    Row("transport", 1_000, "churn", 3, "quick", 0.01),
    Row("transport", 5_000, "churn", 10, "medium", 0.01),
    Row("transport", 20_000, "churn", 15, "full", 0.01),
    Row("gub", 8_000, "churn", 15, "medium", 0.01),
    Row("hadar", 10_000, "churn", 3, "quick", 0.01, "capped"),
    Row("hadar", 25_000, "churn", 5, "medium", 0.01, "capped"),
    Row("hops", 2_000, "churn", 3, "quick", 0.01, "capped"),
    Row("hops", 10_000, "churn", 8, "full", 0.01),
    Row("hare", 250, "time", 0.5, "quick"),
    Row("hare", 10_000, "time", 10, "full"),
    # Any family, any size from 1,000 nonzeros.
    Row("sia", 250, "churn", 0.5, "quick", 0.01),
    Row("gub", 50, "churn", 0.5, "quick", 0.01),
    Row("gub", 1_000, "churn", 0.5, "quick", 0.01),
    Row("transport", 100, "churn", 0.5, "quick", 0.01),
    Row("multicommodity", 100, "some-limits", 0.5, "quick"),
    Row("hadar", 500, "churn", 0.5, "quick", 0.01, "capped"),
    Row("hops", 200, "churn", 0.5, "quick", 0.01, "capped"),
    Row("sia", 10_000, "churn", 0.011, "medium", 0.01, seconds=True),
    Row("sia", 1_000_000, "churn", 0.06, "full", 0.001, "capped", seconds=True),
)


def chosen(size: str, families: tuple[str, ...]) -> list[Row]:
    """Rows of a size of run, of some families (all if there are none)."""
    most = SIZES.index(size)
    return [row for row in ROWS if SIZES.index(row.size) <= most and (not families or row.family in families)]


def run(row: Row, rounds: int, seed: int, limit_s: float) -> Result | None:
    """One run; None when it fails or does not end within the limit (its peers are ended with it)."""
    process = subprocess.Popen(
        row.command(rounds, seed, limit_s), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        text, _ = process.communicate(timeout=limit_s)
    except BaseException as error:  # Ctrl-C too: the run and its peers do not go on alone
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            return None
        raise
    found: Result = json.loads(text.strip().splitlines()[-1]) if process.returncode == 0 else {}
    return found or None


def outlasted(result: Result, cold: bool = False) -> float | None:
    """How many times as long as copter's HiGHS has had where none of its ways came to an end; None where one did."""
    ways = result.get("peers", {}).values()
    if result["best_peer"] is not None or not ways or any(way["cold_ended"] for way in ways):
        return None
    tries = [way["cold_s"] for way in ways] if cold else [max(way["trial_s"], default=way["cold_s"]) for way in ways]
    known = [seconds for seconds in tries if seconds is not None]
    return min(known) / result["copter"]["cold_lp_s" if cold else "lp_p50_s"] if known else None


def measured(row: Row, result: Result) -> float | None:
    """What the bar is for: how many times faster on the same work (edits and the LP), or seconds of a whole round."""
    if row.seconds:
        return float(result["copter"]["p50_s"])
    found = result["lp_ratio_to_best_peer"]
    return found if found is not None else outlasted(result)


def met(row: Row, result: Result) -> bool:
    """Whether a row's bar is reached, with every round optimal to the tolerance."""
    value, own = measured(row, result), result["copter"]
    good = own["not_optimal"] == 0 and (own["gap_max"] is None or own["gap_max"] <= result["tolerance"])
    return good and value is not None and (value <= row.bar if row.seconds else value >= row.bar)


def ms(seconds: float | None) -> str:
    """Milliseconds, or seconds where there are many."""
    if seconds is None:
        return "-"
    return f"{seconds:.2f} s" if seconds >= 10 else f"{1e3 * seconds:.1f} ms"


def line(row: Row, result: Result | None) -> str:
    """A row in Markdown."""
    change = row.change + (f" {100 * row.churn:g} %" if row.churn is not None else "")
    name = row.family if row.mode == "full" else f"{row.family}, {row.mode}"
    bar = f"<= {1e3 * row.bar:g} ms" if row.seconds else f"{row.bar:g}"
    head = f"| {name} | {row.scale:,} | {change} | {bar} |"
    if result is None:
        return head + " not done | | | | | | | | | |"
    own, value, cold = result["copter"], measured(row, result), result["cold_lp_ratio_to_best_peer"]
    whole, least = result["ratio_to_best_peer"], "> " if outlasted(result) is not None else ""
    cold = outlasted(result, cold=True) if cold is None else cold
    found = "-" if value is None else ms(value) if row.seconds else f"{least}{value:.3g}"
    memory = own["peak_rss_mb"] * 2**20 / (MATRIX_BYTES * result["nonzeros"])
    cells = [
        f"{found}{'' if met(row, result) else ' (missed)'}",
        "-" if whole is None else f"{whole:.3g}",
        ms(own["p50_s"] if row.seconds else own["lp_p50_s"]),
        ms(result["best_peer_p50_s"]),
        (result["best_peer"] or "-").removeprefix("highs_"),
        "-" if cold is None else f"{least}{cold:.3g}{'' if cold >= COLD_BAR else ' (missed)'}",
        "-" if own["gap_max"] is None else f"{own['gap_max']:.0e}",
        "-" if own["relative_residual_max"] is None else f"{own['relative_residual_max']:.0e}",
        str(own["not_optimal"]),
        f"{memory:.1f}{'' if memory <= MEMORY_BAR else ' (missed)'}" if result["nonzeros"] >= MEMORY_FROM else "-",
    ]
    return f"{head} {' | '.join(cells)} |"


def markdown(rows: list[Row], results: dict[str, Result | None], rounds: int) -> str:
    """The table."""
    done = [(row, results[row.name]) for row in rows if row.name in results]
    reached = sum(result is not None and met(row, result) for row, result in done)
    lines = [
        "# Block programs",
        "",
        f"{reached} of {len(done)} bars are met. Measured is how many times faster copter is than HiGHS's best way in "
        "the same run on the same work: the edits and the LP. With the plan copter's whole plan counts too, where the "
        "family has one; HiGHS still solves the LP alone. Rows with a bar in milliseconds count the whole round. "
        "Where it says >, none of HiGHS's six ways ended in the time that it had. "
        f"Medians of {rounds} rounds; cold is the first solve, its bar {COLD_BAR:g}; memory is copter's peak over "
        f"{MATRIX_BYTES:g} bytes a nonzero, from {MEMORY_FROM:,} of them on, bar {MEMORY_BAR:g}.",
        "",
        "| family | scale | change | bar | measured | with the plan | copter | HiGHS | its best way | cold | gap "
        "| residual | not optimal | memory |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        *(line(row, result) for row, result in done),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Parse, run, write after every row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", choices=SIZES, default="quick", help="which rows (default quick)")
    parser.add_argument("--families", default="", help="only these, comma-separated")
    parser.add_argument("--rounds", type=int, default=3, help="after 3 of warm-up (default 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds of one row")
    parser.add_argument("--reuse", action="store_true", help="keep rows of the last run")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    arguments = parser.parse_args()
    asked = tuple(name for name in arguments.families.split(",") if name)
    unknown = set(asked) - {row.family for row in ROWS}
    if unknown or arguments.rounds < 1:
        parser.error(f"families are some of {', '.join(sorted({row.family for row in ROWS}))}; rounds >= 1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a run in progress is ended too
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "block_table.json"
    results: dict[str, Result | None] = {}
    if arguments.reuse and file.exists():
        results = {name: found["result"] for name, found in json.loads(file.read_text()).items()}
    rows = chosen(arguments.sizes, asked)
    for row in rows:
        if results.get(row.name) is None:
            started = time.perf_counter()
            results[row.name] = run(row, arguments.rounds, arguments.seed, arguments.limit)
            seconds = time.perf_counter() - started
            print(f"{line(row, results[row.name])} {seconds:.0f} s", file=sys.stderr, flush=True)
        kept = {r.name: {"row": asdict(r), "result": results[r.name]} for r in ROWS if r.name in results}
        file.write_text(json.dumps(kept, indent=1))
        (arguments.out / "block_table.md").write_text(markdown(list(ROWS), results, arguments.rounds))
    print(markdown(rows, results, arguments.rounds))


if __name__ == "__main__":
    main()
