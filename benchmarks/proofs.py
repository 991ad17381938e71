"""What answers on a tape are worth, and what they cost: lies told and caught, replays repeated, recording timed.

    python benchmarks/proofs.py lies --count 2000        # one number better than the truth: are all rejected?
    python benchmarks/proofs.py again --only hops-10000  # a second process on one thread: the same to the last bit?
    python benchmarks/proofs.py kind --as "no AVX"       # the same by another kind of processor, or what stands in
    python benchmarks/proofs.py cost --only hops-1000    # rounds with answers on the tape, and without, in turns

Tapes are those of tapes.py, in the folder COPTER_TAPES (build/tapes). What was found is kept there in proofs.json;
docs/results/proofs.md is written of it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for the tests' tapes and lies

from benchmarks.tapes import TAPES, commit  # noqa: E402
from copter import verify  # noqa: E402
from copter.session.playback import Playback, solved  # noqa: E402
from copter.session.recorder import Recorder  # noqa: E402
from copter.storage.tape import TapeReader, TapeWriter  # noqa: E402
from copter_frontends.replay import runs  # noqa: E402
from tests.copter.storage.tape import lies  # noqa: E402
from tests.copter.storage.tape import tapes as small  # noqa: E402

FOLDER = Path(os.environ.get("COPTER_TAPES", ROOT / "build" / "tapes"))
KEPT, PAGE = "proofs.json", ROOT / "docs" / "results" / "proofs.md"
ONE_THREAD = {"threads": 1}
NEAR = 1e-9  # relative difference of objectives by another kind of processor that is allowed
CALLS = 5_000  # of nothing, whose time is what the clock itself takes
MAKERS: dict[str, Callable[[Path], object]] = {
    "private rows, maximised": small.every_edit,
    "private rows, minimised": lambda path: small.every_edit(path, 1, sense="min"),
    "plans": lambda path: small.every_edit(path, 2, private=False),
    "columns without bounds": small.free_columns,
    "infeasible": small.infeasible,
    "infeasible, private rows": lambda path: small.infeasible(path, True),
}
LIES = (
    "in which one number of an answer is better than the truth are rejected by `copter verify`. A bound or an "
    "objective is moved by 1e-6, a plan uses a unit more than there is, a ray or a price has another sign, a column "
    "has one more."
)
AGAIN = (
    "Solves of a tape that another process repeats on one thread: objectives the same to the last bit, and answers "
    "that `copter verify` accepts."
)
KIND = (
    "The same solves on one thread by code for another kind of processor than the one that recorded them: the largest "
    "relative difference of an objective (bar 1e-9). Where a solve ends at another point within the tolerance of its "
    "program, objectives differ by up to that tolerance, and both answers are verified."
)
COST = (
    "Processor time that recording takes, over that of the same rounds on one thread, edits and solves: of the calls "
    "in the round's own thread, and with the thread that writes. `edits`: models and edits alone; `answers`: points, "
    "prices and rays too, all that a verifier needs; `verifiable`: what the answers add in all. The last columns: the "
    "mean whole round of the `copter simulate` that made the tape, the policy's own part included, and the shares of "
    "it that edits take in the round's own thread, and answers in all threads."
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
        "difference": max((row["difference"] for row in run.rows), default=float("nan")),
        "ended": run.ended,
    }


@contextmanager
def timed(spent: dict[str, float]) -> Iterator[Callable[[Callable[..., Any], str], Callable[..., Any]]]:
    """Add up the processor time of the recorder's calls (`own`) and of the thread that writes (`writer`).

    Yields what times a function so.
    """
    tick = 0.0  # what looking at the clock takes, of each call
    old = [(Recorder, name, getattr(Recorder, name)) for name in ("append", "event", "round", "plan", "put")]
    put = TapeWriter.put

    def watched(function: Callable[..., Any], where: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            begun = time.thread_time()
            result = function(*given, **named)
            spent[where] += time.thread_time() - begun - tick
            return result

        return call

    def later(writer: TapeWriter, job: Any) -> None:
        def written() -> None:
            made = job()
            if made is not None:
                writer.append(*made)

        put(writer, watched(written, "writer"))

    empty = watched(lambda *_: None, "own")
    for _ in range(CALLS):
        empty("add", ())
    tick, spent["own"] = spent["own"] / CALLS, 0.0
    try:
        for kind, name, function in old:
            setattr(kind, name, watched(function, "own"))
        TapeWriter.put = later  # type: ignore[assignment, method-assign]
        yield watched
    finally:
        TapeWriter.put = put  # type: ignore[method-assign]
        for kind, name, function in old:
            setattr(kind, name, function)


def recorded(path: Path, last: int, answers: bool) -> dict[str, float]:
    """Processor time of a tape's rounds, and of their recording, once a session has begun to record."""
    spent, rounds, whole = {"own": 0.0, "writer": 0.0}, 0, 0.0
    writers: dict[int, TapeWriter] = {}
    with tempfile.TemporaryDirectory() as folder, timed(spent) as watched:
        begun = time.thread_time()
        for played in Playback(path, ONE_THREAD):
            solved(played)
            if played.stream in writers:
                rounds += 1
                whole += time.thread_time() - begun
                writers[played.stream].drain()
            else:
                before = dict(spent)
                played.session.record(os.path.join(folder, f"{played.stream}"), answers=answers)
                recorder = played.session._recorder
                assert recorder is not None
                recorder.encoded = watched(recorder.encoded, "own")
                writers[played.stream] = recorder.writer
                recorder.writer.drain()
                spent |= before
            if played.number >= last:
                break
            begun = time.thread_time()
    return spent | {"whole": whole - spent["own"] - reading_s(path, last), "rounds": rounds}


def reading_s(path: Path, last: int) -> float:
    """Processor time of reading a tape's rounds, but for each session's first, which nothing is recorded of."""
    begun, spent, seen = time.thread_time(), 0.0, set[int]()
    for record in TapeReader(path):
        record.value()
        if record.kind == b"ROUN":
            spent += time.thread_time() - begun if record.stream in seen else 0.0
            seen.add(record.stream)
            begun = time.thread_time()
            if record.round >= last:
                break
    return spent


def cost(path: Path, last: int, repeats: int) -> Row:
    """Shares of a round's processor time that recording takes: the medians of the repeats, in turns."""
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for _ in range(repeats):
        for answers in found:
            found[answers].append(recorded(path, last, answers))
    least = min(run["whole"] for runs_ in found.values() for run in runs_)
    rounds = found[True][0]["rounds"]
    row = {"tape": path.stem, "rounds": int(rounds), "round_ms": 1e3 * least / max(rounds, 1)}
    for answers, name in (False, "recording"), (True, "answers"):
        row[f"{name}_own"] = float(np.median([run["own"] / run["whole"] for run in found[answers]]))
        shares = [(run["own"] + run["writer"]) / run["whole"] for run in found[answers]]
        row[f"{name}_all"] = float(np.median(shares))
    made = path.with_suffix(".json")
    told = json.loads(made.read_text()) if made.exists() else {}
    if told.get("all_rounds_s"):
        row["whole_ms"] = 1e3 * told["all_rounds_s"] / told["rounds"]
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
    if rows := kept.get("kind"):
        lines += section("Another kind of processor", KIND, "| tape | solves | identical | verified | apart, at most |")
        lines += [
            f"| {name} | {row['solves']} | {row['identical']} | {row['verified']} | {row['difference']:.1e} |"
            for name, row in in_order(rows)
        ]
        lines += ["", f"It was {next(iter(rows.values()))['as']}.", *how(rows)]
    if rows := kept.get("cost"):
        head = "| tape | rounds | round (ms) | edits, own | edits, all | answers, own | answers, all | verifiable | "
        lines += section("Cost", COST, head + "whole round (ms) | recording of it | verifiable of it |")
        lines += [costs(name, row) for name, row in in_order(rows)]
        lines += how(rows)
    return lines


def costs(name: str, row: Row) -> str:
    """A tape's row of what recording costs."""
    parts = [f"{row[each]:+.1%}" for each in ("recording_own", "recording_all", "answers_own", "answers_all")]
    more = row["answers_all"] - row["recording_all"]
    whole = ["", "", ""]
    if "whole_ms" in row:
        part = row["round_ms"] / row["whole_ms"]
        whole = [f"{row['whole_ms']:.3g}", f"{row['recording_own'] * part:+.1%}", f"{more * part:+.1%}"]
    cells = [name, str(row["rounds"]), f"{row['round_ms']:.3g}", *parts, f"{more:+.1%}", *whole]
    return f"| {' | '.join(cells)} |"


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
    """Rows as tapes.py lists their tapes; those of tapes that it lists no longer come last."""
    order = {tape.name: at for at, tape in enumerate(TAPES)}
    return sorted(rows.items(), key=lambda item: order.get(item[0], len(order)))


def main() -> int:
    """Do what is asked; 0 if every lie was rejected and every round repeated and verified."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("lies", "again", "kind", "cost"))
    parser.add_argument("--count", type=int, default=2000, help="of lies")
    parser.add_argument("--only", default="", help="names of tapes, separated by commas")
    parser.add_argument("--rounds", type=int, default=20, help="whose cost is measured, of each tape")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--as", default="this processor", dest="kind", help="what kind of processor runs this")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    if unknown := set(names) - {tape.name for tape in TAPES}:
        parser.error(f"unknown tape {sorted(unknown)[0]!r}; `python benchmarks/tapes.py list` says which there are")
    FOLDER.mkdir(parents=True, exist_ok=True)
    command, failed = shlex.join(["python", "benchmarks/proofs.py", *sys.argv[1:]]), False
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
        row = cost(path, given.rounds, given.repeats) if given.what == "cost" else play_again(path)
        keep(given.what, [row | ({"as": given.kind} if given.what == "kind" else {})], command)
        failed |= given.what == "again" and not row["solves"] == row["identical"] == row["verified"]
        failed |= given.what == "kind" and not (row["solves"] == row["verified"] and row["difference"] <= NEAR)
        print(row, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
