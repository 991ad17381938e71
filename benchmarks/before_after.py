"""The suite's tapes by two checkouts of copter in turns: medians of processor time, and whether the answers agree.

    python benchmarks/before_after.py --before CHECKOUT --tapes FOLDER
    python benchmarks/before_after.py --before CHECKOUT --tapes FOLDER --only sia-1000,bounds --rounds 40 --json

CHECKOUT is another checkout of this project with its compiled modules built. Each tape is replayed by a process of each
checkout, one round by the one, the same round by the other, and the one that begins changes every round. A round's time
is the least of its replays, in seconds of processor time, of one thread, and of the solve alone. The last column is the
median over rounds. The exit code is 1 where a tape is slower by more than `--worse`, or an answer differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parents[1]
AGREES = 4e-6  # relative difference of objectives that two answers within tolerance may have
WORKER = """
import json, sys, time
from copter.session.playback import Playback, solved
for played in Playback(sys.argv[1], {"threads": 1}):
    sys.stdin.readline()
    begun = time.process_time()
    solution, _, _ = solved(played, float("inf"))
    spent = time.process_time() - begun
    print(json.dumps([spent, solution.status.value, solution.objective, solution.method]), flush=True)
    sys.stdin.readline()
"""
Answer = list[Any]


class Replay:
    """A process of a checkout that replays a tape, a round at each call."""

    def __init__(self, checkout: Path, tape: Path) -> None:
        environment = os.environ | {
            "PYTHONPATH": f"{checkout}{os.pathsep}{checkout / 'frontends'}",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tape)], cwd=checkout, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.asked, self.told, self.errors = (
            _pipe(each) for each in (self.process.stdin, self.process.stdout, self.process.stderr)
        )

    def round(self) -> Answer | None:
        """Seconds, status, objective and method of the next round; None after the last one."""
        try:
            self.asked.write("\n")
            self.asked.flush()
        except BrokenPipeError:
            pass
        line = self.told.readline()
        if not line and self.process.wait() != 0:
            raise SystemExit(f"a replay failed: {self.errors.read().strip().splitlines()[-1]}")
        return json.loads(line) if line else None

    def go_on(self) -> None:
        """Let the process read the tape to the next round."""
        self.asked.write("\n")
        self.asked.flush()

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def _pipe(found: IO[str] | None) -> IO[str]:
    """The pipe, which is there."""
    if found is None:
        raise RuntimeError("a process without pipes")
    return found


def in_turns(before: Path, after: Path, tape: Path, rounds: int) -> list[tuple[Answer, Answer]]:
    """Both answers to each round."""
    replays, found = [Replay(before, tape), Replay(after, tape)], []
    try:
        for number in range(rounds):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            answers: dict[int, Answer | None] = {which: replays[which].round() for which in order}
            old, new = answers[0], answers[1]
            if old is None or new is None:
                break
            found.append((old, new))
            for which in order:
                replays[which].go_on()
    finally:
        for each in replays:
            each.end()
    return found


def differ(old: Answer, new: Answer) -> bool:
    """Whether two answers to a round have another status, or objectives that differ."""
    return old[1] != new[1] or (old[1] == "optimal" and not abs(old[2] - new[2]) <= AGREES * (1.0 + abs(old[2])))


def measured(before: Path, after: Path, tape: Path, rounds: int, replays: int) -> dict[str, Any]:
    """A tape's row: medians and sums of each side, their ratios, and rounds with different answers."""
    runs = [in_turns(before, after, tape, rounds) for _ in range(replays)]
    times = np.array([[[old[0], new[0]] for old, new in run] for run in runs]).min(axis=0)
    warm = times[1:] if len(times) > 1 else times
    old_s, new_s = (float(each) for each in np.median(warm, axis=0))
    return {
        "tape": tape.stem, "rounds": len(times), "before_s": old_s, "after_s": new_s, "ratio": new_s / old_s,
        "ratio_of_rounds": float(np.median(warm[:, 1] / warm[:, 0])), "first": float(times[0, 1] / times[0, 0]),
        "ratio_of_sums": float(warm[:, 1].sum() / warm[:, 0].sum()), "differ": sum(differ(*pair) for pair in runs[0]),
    }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> Table:
    """The rows, printed."""
    found = Table(title="Solves, seconds of processor time: after over before", box=None)
    for name in ("tape", "rounds", "before", "after", "median", "sum", "first", "of each round", "other answers"):
        found.add_column(name, justify="left" if name == "tape" else "right")
    for row in rows:
        ratios = (row[name] for name in ("ratio", "ratio_of_sums", "first", "ratio_of_rounds"))
        found.add_row(
            row["tape"], str(row["rounds"]), f"{row['before_s']:.3g}", f"{row['after_s']:.3g}",
            *(f"{each:.3f}" for each in ratios), str(row["differ"]),
        )  # fmt: skip
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the checkout to compare with")
    parser.add_argument("--after", type=Path, default=HERE, help="the other one (default: this one)")
    parser.add_argument("--tapes", type=Path, default=Path("tapes"), help="folder of tapes (default: tapes)")
    parser.add_argument("--only", default="", help="names of tapes, in this order (default: all)")
    parser.add_argument("--rounds", type=int, default=60, help="most rounds of a tape")
    parser.add_argument("--replays", type=int, default=3)
    parser.add_argument("--worse", type=float, default=1.03, help="largest ratio of a tape's medians that passes")
    parser.add_argument("--json", action="store_true", help="one object, the last line")
    asked = parser.parse_args()
    names = [name for name in asked.only.split(",") if name] or sorted(each.stem for each in asked.tapes.glob("*.tape"))
    missing = [name for name in names if not (asked.tapes / f"{name}.tape").exists()]
    if missing or not names:
        parser.error(f"no tape {missing[0]!r} in {asked.tapes}" if missing else f"no tapes in {asked.tapes}")
    for each in (asked.before, asked.after):
        if not (each / "copter" / "session" / "playback.py").exists():
            parser.error(f"{each} is no checkout of this project")
    rows, console = [], Console()
    for name in names:
        rows.append(
            measured(
                asked.before.resolve(), asked.after.resolve(), asked.tapes / f"{name}.tape", asked.rounds, asked.replays
            )
        )
        print(f"{name}: {rows[-1]['ratio']:.3f}", file=sys.stderr, flush=True)
    console.print(table(rows))
    if asked.json:
        print(json.dumps({"rows": rows}))
    sys.exit(any(row["ratio"] > asked.worse or row["differ"] for row in rows))


if __name__ == "__main__":
    main()
