"""Kueue's scheduler performance test, decided by copter, as a page.

    python benchmarks/kueue_test.py [--test large-scale-60000 ...] [--page docs/results/kueue.md]

Bounds that hold for every scheduler are computed first; then all workloads are admitted, and the moments recorded.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from copter import Settings
from copter.session.tape_tools import described
from copter_serve.queues.load_bounds import load_bounds
from copter_serve.queues.load_run import run_load_test
from copter_serve.queues.load_summary import load_summary
from copter_serve.queues.load_test import BUILT_IN, load_test

HEAD = """# Kueue's scheduler performance test

Made by `python benchmarks/kueue_test.py --page docs/results/kueue.md`. The test is that of Kueue's public generator;
`copter simulate kueue --test NAME|FILE` runs it, `large-scale-60000` is also a tape of the suite.

**Usage** is that of nominal quota, from the first moment to the end. No scheduler exceeds the bounds: that on usage is
the latest r + (work left at r) / quota over all moments r; those on waiting are certified optima of a time-indexed
linear program (`frontends/copter_serve/queues/load_bounds.py`). A class's bound holds for every schedule in which
no class above it waits longer than here; that of the mean by priority is for schedules that overturn priorities,
too. Nothing is stopped to make room. A priority is **overturned** where a
workload waits while others of lower priority are admitted whose room, borrowing included, would have let it in.

Kueue's ranges are those of its own checker (placeholders in the first test). They are of a whole control plane with
an API server, whose clock runs while it decides; here the clock stands still meanwhile. So compare usage and waits
with the bounds, and Kueue's ranges with the time of decisions: what a perfectly quick API server would leave.
"""


def page(rows: list[dict[str, Any]], threads: int) -> Iterator[str]:
    """The lines of the page."""
    yield HEAD
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    for row in rows:
        ranges, usage = row["kueue_ranges"], row["usage"]
        yield f"## {row['test']}\n"
        yield f"{row['workloads']:,} workloads in {row['queues']:,} queues; {row['admitted']:,} admitted.\n"
        yield "| | this run | bound | run / bound | Kueue's range |\n|---|---|---|---|---|"
        yield (
            f"| usage | {usage['mean']:.2%} | at most {usage['most']:.2%} | {usage['of_attainable']:.3f} |"
            f" at least {ranges['usage']:.1%} |"
        )
        wall = f"at most {ranges['wall_ms'] / 1e3:,.0f} s of wall time"
        end = row["end_ms"] / row["least_end_ms"]
        yield f"| end, ms | {row['end_ms']:,.0f} | at least {row['least_end_ms']:,.0f} | {end:.3f} | {wall} |"
        for each in row["classes"]:
            most = f"at most {each['kueue_range_ms'] / 1e3:,.0f} s"
            yield (
                f"| mean wait, {each['class']} (priority {each['priority']}), ms | {each['mean_ms']:,.1f} |"
                f" {_least(each['least_mean_ms'], each['mean_ms'])} | {most} |"
            )
        yield (
            f"| mean wait, by priority, ms | {row['weighted_mean_ms']:,.1f} |"
            f" {_least(row['least_weighted_mean_ms'], row['weighted_mean_ms'])} | |"
        )
        yield f"| priorities overturned | {row['inversions']} | 0 | | |"
        yield f"| waited although there was room | {row['idle']} | 0 | | |"
        yield (
            f"\n{row['moments']} moments, at most {row['most_waiting']:,} waiting; largest gap of a moment's admissions"
            f" to their certified bound {row['largest_gap']:.1e}. Solver {row['solve_s']:.2f} s, edits"
            f" {row['edit_s']:.2f} s, all decisions {row['decide_s']:.2f} s ({row['decide_cpu_s']:.2f} s of processor"
            f" time), the longest {row['slowest_s']:.2f} s. Tape: {row['tape']['rounds']} solves,"
            f" {row['tape']['bytes']:,} bytes, SHA-256 {row['tape']['sha256'][:12]}.\n"
        )
    yield (
        f"Commit {commit.stdout.strip()}, {datetime.date.today().isoformat()}, {threads} thread of the solver, on a"
        " machine with other work."
    )


def _least(least: float | None, found: float) -> str:
    if least is None:
        return "not computed |"
    return f"at least {least:,.1f} | {found / least:.3f}" if least > 0.05 else f"at least {least:,.1f} |"


def main() -> None:
    """Run the tests that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--test", nargs="*", default=list(BUILT_IN))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    rows = []
    for name in asked.test:
        test = load_test(name)
        bounds = load_bounds(test)
        with tempfile.TemporaryDirectory() as folder:
            tape = str(Path(folder, "kueue.tape"))
            result = run_load_test(test, Settings(threads=asked.threads), tape)
            rows.append(load_summary(test, bounds, result) | {"tape": described(tape)})
        print(f"{name}: usage {rows[-1]['usage']['of_attainable']:.3f} of attainable", flush=True)
    text = "\n".join(page(rows, asked.threads)) + "\n"
    if asked.page is None:
        print(text)
    else:
        asked.page.write_text(text)


if __name__ == "__main__":
    main()
