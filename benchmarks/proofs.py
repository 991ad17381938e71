"""What answers on a tape are worth, and what they cost: lies told and caught, replays repeated, recording timed.

    python benchmarks/proofs.py lies --count 2000        # one number better than the truth: are all rejected?
    python benchmarks/proofs.py again --only hops-10000  # a second process on one thread: the same to the last bit?
    python benchmarks/proofs.py cost --only hops-1000    # rounds with answers on the tape, and without, in turns

Tapes are those of tapes.py, in the folder COPTER_TAPES (build/tapes). What was found is kept there in proofs.json;
docs/results/proofs.md is written of it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for the tests' tapes and lies

from benchmarks.tapes import TAPES, commit  # noqa: E402
from copter import verify  # noqa: E402
from copter.session.playback import Playback, solved  # noqa: E402
from copter.tape import TapeReader  # noqa: E402
from copter_frontends.replay import runs  # noqa: E402
from tests.copter.tape import lies  # noqa: E402
from tests.copter.tape import tapes as small  # noqa: E402

FOLDER = Path(os.environ.get("COPTER_TAPES", ROOT / "build" / "tapes"))
KEPT, PAGE = "proofs.json", ROOT / "docs" / "results" / "proofs.md"
ONE_THREAD = {"threads": 1}
MAKERS: dict[str, Callable[[Path], object]] = {
    "private rows, maximised": small.every_edit,
    "private rows, minimised": lambda path: small.every_edit(path, 1, sense="min"),
    "plans": lambda path: small.every_edit(path, 2, private=False),
    "columns without bounds": small.free_columns,
    "infeasible": small.infeasible,
    "infeasible, private rows": lambda path: small.infeasible(path, True),
}
WAYS = ("read", "play", "edits", "answers")  # only read; played; edits recorded; answers recorded too
LIES = (
    "in which one number of an answer is better than the truth are rejected by `copter verify`. A bound or an "
    "objective is moved by 1e-6, a plan uses a unit more than there is, a ray or a price has another sign, a column "
    "has one more."
)
AGAIN = (
    "Solves of a tape that another process repeats on one thread: objectives the same to the last bit, and answers "
    "that `copter verify` accepts."
)
COST = (
    "Processor time of rounds on one thread, edits and solves, when the session records, beside the same rounds when "
    "it does not, in turns: of the round's own thread, and with the thread that writes. `edits`: models and edits "
    "alone; `answers`: points, prices and rays too, all that a verifier needs; `verifiable`: what the answers add in "
    "all. The policy's own part of a round is not in it."
)
Row = dict[str, Any]


def tell_lies(count: int, seed: int = 0) -> list[Row]:
    """A row for each kind of lie: how many tapes had one, and how many of them the verifier rejected."""
    told: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "t", Path(folder) / "lie"
        for at, make in enumerate(MAKERS.values()):
            path.unlink(missing_ok=True)
            make(path)
            share = count // len(MAKERS) + (at < count % len(MAKERS))
            rng = np.random.default_rng(seed + at)
            for _, lie in zip(range(share), lies.told(path, out, rng), strict=False):
                kind = lie.split(" at ")[0].replace("_", " ")
                told[kind] += 1
                caught[kind] += any(faults for _, _, faults in verify.verify(out))
    return [{"lie": kind, "told": told[kind], "rejected": caught[kind]} for kind in sorted(told)]


def play_again(path: Path) -> Row:
    """How many solves of a tape another process repeats to the last bit on one thread, and the verifier accepts."""
    run = runs.run_copter(runs.Asked(str(path), settings=ONE_THREAD, threads=1))
    return {
        "tape": path.stem,
        "solves": len(run.rows),
        "columns": max((row["columns"] for row in run.rows), default=0),
        "identical": sum(row["identical"] for row in run.rows),
        "verified": sum(row["verified"] is True for row in run.rows),
        "gap": max((row["gap"] for row in run.rows), default=float("nan")),
        "ended": run.ended,
    }


def turns(way: str, path: Path, folder: str, last: int) -> Iterator[tuple[float, float]]:
    """(seconds of the round's own thread, of all threads) of a way's rounds, edits and all."""
    seen: set[int] = set()

    def passed(begun: tuple[float, float]) -> tuple[float, float]:
        own = time.thread_time() - begun[0]
        return own, time.process_time() - begun[1]

    begun = time.thread_time(), time.process_time()
    if way == "read":
        for record in TapeReader(path):
            record.value()
            if record.kind == b"ROUN":
                yield passed(begun)
                begun = time.thread_time(), time.process_time()
                if record.round >= last:
                    return
        return
    for played in Playback(path, ONE_THREAD):
        solved(played)
        recorder = played.session._recorder
        own, _ = passed(begun)
        if recorder is not None:
            recorder.writer.drain()
        yield own, passed(begun)[1]
        if way != "play" and played.stream not in seen:
            seen.add(played.stream)
            played.session.record(os.path.join(folder, f"{way}-{played.stream}"), answers=way == "answers")
        if played.number >= last:
            return
        begun = time.thread_time(), time.process_time()


def cost(path: Path, last: int, repeats: int) -> Row:
    """Processor time of a tape's rounds, in turns: with and without recording; the least sum of the repeats."""
    best = {way: np.full(2, np.inf) for way in WAYS}
    rounds = 0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            sums = {way: np.zeros(2) for way in WAYS}
            ways = {way: turns(way, path, folder, last) for way in WAYS}
            rounds = 0
            while all(way in ways for way in WAYS):
                for way in (*WAYS[rounds % 4 :], *WAYS[: rounds % 4]):
                    spent = next(ways[way], None)
                    if spent is None:
                        ways.pop(way)
                    elif rounds:  # recording begins after the first round
                        sums[way] += spent
                rounds += 1
            best = {way: np.minimum(best[way], sums[way]) for way in WAYS}
    play = best["play"] - best["read"]
    row = {"tape": path.stem, "rounds": rounds - 2, "round_ms": 1e3 * play[0] / max(rounds - 2, 1)}
    for way, name in ("edits", "recording"), ("answers", "answers"):
        own, every = (best[way] - best["play"]) / play
        row |= {f"{name}_own": own, f"{name}_all": every}
    return row


def keep(what: str, rows: list[Row], command: str) -> None:
    """Put rows with those that are kept, by their first value, and write the page."""
    path = FOLDER / KEPT
    kept = json.loads(path.read_text()) if path.exists() else {}
    old = {} if what == "lies" else kept.get(what, {})
    how = {
        "how": f"`{command}`, commit {commit()}, {datetime.date.today().isoformat()}",
        "load": os.getloadavg()[0],
    }
    kept[what] = old | {next(iter(row.values())): row | how for row in rows}
    path.write_text(json.dumps(kept, indent=1))
    PAGE.write_text("\n".join(page(kept)) + "\n")


def page(kept: dict[str, dict[str, Row]]) -> list[str]:
    """The page's lines."""
    lines = [
        "# Proofs",
        "",
        "This page is generated by `python benchmarks/proofs.py` from tapes ([tape.md](../reference/tape.md)).",
    ]
    if rows := kept.get("lies"):
        told, caught = (sum(row[name] for row in rows.values()) for name in ("told", "rejected"))
        lines += section("Lies", f"{caught:,} of {told:,} tapes {LIES}", "| lie | tapes | rejected |")
        lines += [f"| {kind} | {row['told']:,} | {row['rejected']:,} |" for kind, row in rows.items()]
        lines += how(rows)
    if rows := kept.get("again"):
        head = "| tape | solves | columns | identical | verified | gap, at most | ended |"
        lines += section("Played again", AGAIN, head)
        lines += [
            f"| {name} | {row['solves']} | {row['columns']:,} | {row['identical']} | {row['verified']} | "
            f"{row['gap']:.1e} | {row['ended'] or ''} |"
            for name, row in in_order(rows)
        ]
        lines += how(rows)
    if rows := kept.get("cost"):
        head = "| tape | rounds | round (ms) | edits, own | edits, all | answers, own | answers, all | verifiable |"
        lines += section("Cost", COST, head)
        lines += [
            f"| {name} | {row['rounds']} | {row['round_ms']:.3g} | {row['recording_own']:+.1%} | "
            f"{row['recording_all']:+.1%} | {row['answers_own']:+.1%} | {row['answers_all']:+.1%} | "
            f"{row['answers_all'] - row['recording_all']:+.1%} |"
            for name, row in in_order(rows)
        ]
        lines += how(rows)
    return lines


def section(title: str, text: str, head: str) -> list[str]:
    """A heading, a paragraph, and the head of a table."""
    return ["", f"## {title}", "", text, "", head, "|---" * (head.count("|") - 1) + "|"]


def how(rows: dict[str, Row]) -> list[str]:
    """The commands that rows come from, each with the largest load of its rows."""
    loads: dict[str, float] = {}
    for row in rows.values():
        loads[row["how"]] = max(row["load"], loads.get(row["how"], 0.0))
    return ["", *(f"Found by {each}, load {load:.0f}." for each, load in loads.items())]


def in_order(rows: dict[str, Row]) -> list[tuple[str, Row]]:
    """Rows as tapes.py lists their tapes."""
    order = [tape.name for tape in TAPES]
    return sorted(rows.items(), key=lambda item: order.index(item[0]))


def main() -> int:
    """Do what is asked; 0 if every lie was rejected and every round repeated and verified."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("lies", "again", "cost"))
    parser.add_argument("--count", type=int, default=2000, help="of lies")
    parser.add_argument("--only", default="", help="names of tapes, separated by commas")
    parser.add_argument("--rounds", type=int, default=20, help="whose cost is measured, of each tape")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    if unknown := set(names) - {tape.name for tape in TAPES}:
        parser.error(f"unknown tape {sorted(unknown)[0]!r}; `python benchmarks/tapes.py list` says which there are")
    FOLDER.mkdir(parents=True, exist_ok=True)
    command, failed = " ".join(["python", "benchmarks/proofs.py", *sys.argv[1:]]), False
    if given.what == "lies":
        rows = tell_lies(given.count)
        keep("lies", rows, command)
        failed = any(row["rejected"] < row["told"] for row in rows)
        print(*rows, sep="\n")
    for name in [tape.name for tape in TAPES if given.what != "lies" and (not names or tape.name in names)]:
        path = FOLDER / f"{name}.tape"
        if not path.exists():
            print(f"{name}: not there, make it first")
            continue
        row = play_again(path) if given.what == "again" else cost(path, given.rounds, given.repeats)
        keep(given.what, [row], command)
        failed |= given.what == "again" and not row["solves"] == row["identical"] == row["verified"]
        print(row, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
