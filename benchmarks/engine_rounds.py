"""Rounds of the engine alone on programs of one structure; writes docs/results/engine.md row by row.

    python benchmarks/engine_rounds.py               # every row
    python benchmarks/engine_rounds.py --only sia    # rows whose name begins so; the page keeps the others

A row is `python benchmarks/rounds.py` with the options that it names, in a process of its own. What the schedulers'
own rounds take is measured on tapes (benchmarks/tapes.py).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whole_rounds import described

from copter.problem.figures import short

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "engine.md"
PEERS = "highs,glop,soplex"
PEER_LIMIT_S = 10
LONG_LIMIT_S = 30  # of peers on the largest programs
FIGURES = ("p50_s", "p99_s", "processor_p50_s", "processor_p99_s", "lp_p50_s")
HEAD = f"""# A study of the engine

Programs that are made for it, on which the engine works alone: [sizes.md](sizes.md) says how they differ from tapes
and from whole rounds of a scheduler, and [measured.md](../measured.md) has the tapes. Made by `python
benchmarks/engine_rounds.py`, row by row; the last column is the commit, the date, and the load of the machine before
the row. Each row is `python benchmarks/rounds.py OPTIONS`: milliseconds of a round, p50 / p99, by the clock and in
processor time, and of its edits and LP alone, p50. **Goal**: what the project aims at, in milliseconds, or as times
over the fastest way of HiGHS, GLOP and SoPlex on edits and LP (**times**), of p50s of the rounds after four that do not
count. A way is named warm if it keeps its basis, cold if it begins each round with nothing and is quickest so. Where
none ended its first solve within {PEER_LIMIT_S} s ({LONG_LIMIT_S} s with 100,000 commodities) there is nothing to
compare. No commercial solver was run. With 1,400 jobs one early round decides how many columns later ones carry, so
rows of 10,000 GPUs are the means of five seeds.

| row | options | columns | round | processor | edits and LP | goal | best peer | times | measured |
|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True)
class Row:
    """A row of the page: its options of rounds.py, and its goal in words."""

    name: str
    options: str
    goal: str
    peers: bool = False
    limit_s: int = PEER_LIMIT_S
    seeds: int = 1  # 0 and following ones, whose figures are averaged

    @property
    def shown(self) -> str:
        """What is run."""
        return self.options if self.seeds == 1 else f"{self.options} --seed 0` to `{self.seeds - 1}"


SIA, SEEDS = "--family sia --scale", 5
ROWS = (
    Row("small, 50 requests", "--family gub --scale 50 --rows 8 --rounds 300", "0.3", peers=True),
    Row("small, 500 requests", "--family gub --scale 500 --rows 8 --rounds 300", "1", peers=True),
    Row("sia 10,000 GPUs", f"{SIA} 10000 --rounds 100", "5 / 10", seeds=SEEDS),
    Row("sia 10,000 GPUs, 5%", f"{SIA} 10000 --churn 0.05 --rounds 60", "", seeds=SEEDS),
    Row("sia 10,000 GPUs, 0.1%", f"{SIA} 10000 --churn 0.001 --rounds 60", "a quarter of 5%", seeds=SEEDS),
    Row("sia 25,000 GPUs", f"{SIA} 25000 --rounds 60 --judge 2", "12 / 25"),
    Row("sia 25,000 GPUs, 5%", f"{SIA} 25000 --churn 0.05 --rounds 40 --judge 2", ""),
    Row("sia 25,000 GPUs, 0.1%", f"{SIA} 25000 --churn 0.001 --rounds 40 --judge 2", "a quarter of 5%"),
    Row("sia 100,000 GPUs", f"{SIA} 100000 --rounds 20 --judge 1", "80 / 120"),
    Row("sia 1,000,000 GPUs, capped", f"{SIA} 1000000 --mode capped --rounds 12 --judge 1", "60 / 100"),
    Row("sia 1,000,000 GPUs, capped, 0.1%", f"{SIA} 1000000 --mode capped --churn 0.001 --rounds 12 --judge 1", "30"),
    Row("transport", "--family transport --scale 5000 --churn 0.01 --rounds 20", "10 times", peers=True),
    Row("commodities, 20,000", "--family multicommodity --scale 20000 --rounds 12", "10 times", peers=True),
    Row(
        "commodities, 100,000, a link",
        "--family multicommodity --scale 100000 --change link --rounds 4",
        "15 times",
        peers=True,
        limit_s=LONG_LIMIT_S,
    ),
)


def measured(row: Row) -> dict[str, Any]:
    """Return what rounds.py measured, of several seeds the means of copter's figures."""
    if row.seeds > 1:
        each = [replayed(row, ["--seed", str(seed)]) for seed in range(row.seeds)]
        means = {name: sum(one["copter"][name] for one in each) / row.seeds for name in FIGURES}
        return each[0] | {"copter": each[0]["copter"] | means}
    return replayed(row, [])


def replayed(row: Row, seed: list[str]) -> dict[str, Any]:
    """Return what rounds.py measured of a family."""
    peers = ["--peers", PEERS, "--peer-time-limit", str(row.limit_s)] if row.peers else []
    command = [sys.executable, str(ROOT / "benchmarks" / "rounds.py"), *row.options.split(), *seed, *peers, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{row.name}: {(done.stderr.splitlines() or ['it said nothing'])[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(row: Row) -> str:
    """Measure a row and return its line of the page."""
    load = os.getloadavg()[0]
    found = measured(row)
    own, times, best = found["copter"], found["lp_ratio_to_best_peer"], found["best_peer"]
    told = "" if times is None else short(times)
    if row.peers and times is None:
        told, best = "-", f"none within {row.limit_s} s"
    clock, processor = (
        " / ".join(short(1e3 * own[f"{what}{share}_s"]) for share in ("p50", "p99")) for what in ("", "processor_")
    )
    cells = [row.name, f"`{row.shown}`", f"{found['variables']:,}", clock, processor, short(1e3 * own["lp_p50_s"])]
    cells += [row.goal, best or "", told]
    return f"| {' | '.join([*cells, f'{described()}, {datetime.date.today().isoformat()}, {load:.1f}'])} |"


def lines_of(page: Path) -> dict[str, str]:
    """Return the rows that a page has, by name."""
    lines = page.read_text().splitlines() if page.exists() else []
    names = {row.name for row in ROWS}
    return {name: text for text in lines if (name := text.strip("|").split(" | ")[0].strip()) in names}


def main() -> None:
    """Measure what is asked for, and write the page after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="how the names of the rows begin")
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    wanted = [row for row in ROWS if row.name.startswith(asked.only)]
    if not wanted:
        parser.error(f"no row begins with {asked.only!r}: there are {'; '.join(row.name for row in ROWS)}")
    lines = lines_of(asked.page)
    for row in wanted:
        lines[row.name] = line(row)
        asked.page.write_text("\n".join([HEAD, *(lines[each.name] for each in ROWS if each.name in lines)]) + "\n")
        print(lines[row.name], flush=True)


if __name__ == "__main__":
    main()
