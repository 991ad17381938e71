"""The quick pass behind `make bench`: a small crossover sweep, Sia rounds with more peers, and one page of it all.

python benchmarks/page.py            # runs, then writes benchmarks/results/benchmarks.html
python benchmarks/page.py --reuse    # draws the page again from the last results
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import families
from charts import LABELS, time_curves
from crossover import crossing, markdown, sweep
from jinja2 import Environment, FileSystemLoader

HERE = Path(__file__).parent
SIA_RUNS = (("1000", "highs,glop,pdlp", "15"), ("5000", "highs", "10"))  # GPUs, peers, rounds
RUN_LIMIT_S = 90.0


def sia_rounds() -> list[dict[str, Any]]:
    """The Sia sequences of the page."""
    found = []
    for scale, peers, rounds in SIA_RUNS:
        command = [sys.executable, str(HERE / "rounds.py"), "--scale", scale, "--peers", peers, "--rounds", rounds]
        print(f"sia {scale} against {peers}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [*command, "--peer-time-limit", "60", "--json"], stdout=subprocess.PIPE, text=True, check=True
        )
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return found


def write_page(crossover: dict[str, Any], rounds: list[dict[str, Any]], out: Path) -> Path:
    """Draw the charts and fill the page; returns its path."""
    stream = crossover["machine"]["stream_bytes_per_s"]
    charts = {}
    for key, across in (("sizes", "nonzeros"), ("churns", "churn")):
        path = out / f"{key}.svg"
        time_curves(crossover[key], across, stream, path)
        charts[key] = path.read_text()[path.read_text().index("<svg") :]
    crossings = {}
    for family in crossover["families"]:
        own = [result for result in crossover["sizes"] if result["family"] == family]
        crossings[family] = crossing(own) if own else "not measured"
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = out / "benchmarks.html"
    page.write_text(
        environment.get_template("page.jinja").render(
            machine=crossover["machine"],
            rounds=crossover["rounds"],
            crossings=crossings,
            sizes=[result for result in crossover["sizes"] if result["best_peer_p50_s"] is not None],
            churns=[result for result in crossover["churns"] if result["best_peer_p50_s"] is not None],
            size_chart=charts["sizes"],
            churn_chart=charts["churns"],
            rounds_runs=rounds,
            labels=LABELS,
        )
    )
    return page


def main() -> None:
    """Run (or read), write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reuse", action="store_true", help="draw from the results that are there")
    parser.add_argument("--rounds", type=int, default=7, help="of the sweep")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    crossover_file, rounds_file = out / "crossover.json", out / "sia_rounds.json"
    if arguments.reuse:
        if not crossover_file.exists() or not rounds_file.exists():
            parser.error(f"there are no results in {out}; run without --reuse")
    else:
        crossover_file.write_text(
            json.dumps(sweep(list(families.NAMES), "quick", arguments.rounds, RUN_LIMIT_S), indent=1)
        )
        rounds_file.write_text(json.dumps(sia_rounds(), indent=1))
    crossover, rounds = json.loads(crossover_file.read_text()), json.loads(rounds_file.read_text())
    (out / "crossover.md").write_text(markdown(crossover))
    print(f"The page is {write_page(crossover, rounds, out)}")


if __name__ == "__main__":
    main()
