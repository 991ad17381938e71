"""Runs of solvers on a tape, one process each: results for every round, and how the run ended."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field, replace
from queue import Empty, Queue
from typing import Any

from copter.errors import SnapshotError

LOADING_S = 60.0  # seconds beyond its limits that a solver's process has for loading and for checks
WORKER = ("-m", "copter_frontends.replay.worker")
JUDGE = ("-m", "copter_frontends.replay.judge_process")
UNUSABLE = 2  # exit code of the judge's process for a tape that cannot be used
STAGES = ("edit_s", "solve_s", "shim_s", "total_s")
ANSWER = ("status", "objective", "gap")  # what two replays of a round must agree in for one verdict on both


@dataclass(frozen=True)
class Asked:
    """Options of ``copter replay``.

    Attributes
    ----------
    tape : str
    first, last : float
        Rounds from `first` to `last - 1` are counted; earlier ones are replayed only.
    settings : dict
        Settings of copter that replace recorded ones.
    deadline_s : float or None
        Deadline of copter's rounds instead of the recorded ones; infinite for none.
    threads : int or None
    peer_time_limit_s : float
        Most seconds of one solve by a peer.
    peer_memory_gib : float or None
        Most address space of a peer's process.
    peer_budget_s : float
        Most seconds of all rounds by a peer; then it is ended, and its row says how many rounds it did.
    cold : bool
        Whether copter solves every round from scratch.
    judged : bool
        Whether the verifier judges copter's answers, which takes it longer than the solves.
    """

    tape: str
    first: int = 0
    last: float = math.inf
    settings: dict[str, Any] = field(default_factory=dict)
    deadline_s: float | None = None
    threads: int | None = None
    peer_time_limit_s: float = 60.0
    peer_memory_gib: float | None = None
    peer_budget_s: float = math.inf
    cold: bool = False
    judged: bool = True


@dataclass(frozen=True)
class Run:
    """One solver's rounds.

    Attributes
    ----------
    solver : str
    rows : list of dict
    ended : str or None
        Why the run ended early; None if the tape was replayed to its end.
    """

    solver: str
    rows: list[dict[str, Any]]
    ended: str | None = None


def run_copter(asked: Asked) -> Run:
    """Replay by copter; returns its rounds with the verifier's verdict on each new answer, and NaN for an unproven gap.

    The process that is timed only replays. Another one records the answers for the verifier; where it gave another
    answer (a deadline does that), the round is the recorded one.

    Raises
    ------
    SnapshotError
        If the tape cannot be used.
    """
    timed = _run("copter", asked, {"record": None})
    if not asked.judged:
        return timed
    with tempfile.TemporaryDirectory() as folder:
        again = os.path.join(folder, "again.tape")
        repeated = _run("copter", asked, {"record": again})
        recorded = {row["round"]: row for row in repeated.rows}
        verdicts = {number: found for number, *found in _verdicts(again)} if os.path.exists(again) else {}
    ended = timed.ended or (
        None if repeated.ended is None else f"the process that records for the judge {repeated.ended}"
    )
    rows = []
    for row in timed.rows:
        judged = recorded.get(row["round"], row)
        row = row if all(row[each] == judged[each] for each in ANSWER) else judged
        checked, faults = verdicts.get(row["round"], ((), None))
        gap = row["gap"] if "bound" in checked else math.nan  # without the bound, the gap is not proven
        rows.append({**row, "gap": gap, "verified": None if faults is None else not faults, "faults": faults})
    return replace(timed, rows=rows, ended=ended)


def _verdicts(path: str) -> list[tuple[int, list[str], list[str]]]:
    """Return the verifier's verdicts on each round, from a process of its own, whose end for want of memory is told.

    Raises
    ------
    SnapshotError
        For an unknown operation, or if the process has died.
    """
    told = subprocess.run([sys.executable, *JUDGE, path], capture_output=True, text=True)
    last = (told.stderr.strip().splitlines() or ["it said nothing"])[-1]
    if told.returncode == UNUSABLE:
        raise SnapshotError(f"the rounds that were recorded again cannot be verified: {last}")
    if told.returncode:
        raise SnapshotError(f"the verifier's process {death(told.returncode)}: {last}")
    return [(number, checked, faults) for number, checked, faults in map(json.loads, told.stdout.splitlines())]


def death(code: int) -> str:
    """Return what the exit code of a process that has died means."""
    if code == -signal.SIGKILL:
        return "was killed, most likely because the machine has no more memory"
    return f"died (exit code {code})"


def run_peer(way: str, asked: Asked) -> Run:
    """Return a peer's rounds; a failed peer has fewer rounds and the reason."""
    return _run(way, asked, {})


def _run(solver: str, asked: Asked, more: dict[str, Any]) -> Run:
    """Return the rows of one process."""
    copters = solver == "copter"
    order = {
        "solver": solver,
        "tape": asked.tape,
        "first": asked.first,
        "last": asked.last,
        "settings": asked.settings,
        "deadline_s": asked.deadline_s,
        "threads": asked.threads,
        "time_limit_s": asked.peer_time_limit_s,
        "memory_gib": None if copters else asked.peer_memory_gib,
        "cold": copters and asked.cold,
        **more,
    }
    command = [sys.executable, *WORKER, json.dumps(order)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
    lines: Queue[str | None] = Queue()
    writer = threading.Thread(target=_queued, args=(process, lines), daemon=True)
    reader.start()
    writer.start()
    rows: list[dict[str, Any]] = []
    limit = None if copters else 2.0 * asked.peer_time_limit_s + LOADING_S
    ended = None
    spent = 0.0
    try:
        while True:
            line = lines.get(timeout=limit)
            if line is None:
                break
            row = json.loads(line)
            if "refused" in row:
                raise SnapshotError(row["refused"])
            if "ended" in row:
                ended = row["ended"]
                continue
            row["total_s"] = row["edit_s"] + row["solve_s"] + row["shim_s"]
            rows.append(row)
            spent += row["total_s"]
            if not copters and spent > asked.peer_budget_s:
                ended = f"its {asked.peer_budget_s:g} s for this tape are over after {len(rows)} rounds"
                break
    except Empty:
        ended = f"no answer within {limit:g} s of round {asked.first + len(rows)}: its process was ended"
    finally:
        if process.poll() is None and (ended is not None or sys.exc_info()[0] is not None):
            process.kill()
        process.wait()
        reader.join(1.0)
    if ended is None and process.returncode:
        last = errors[-1].strip() if errors else "it said nothing"
        where = f"round {asked.first + len(rows)}"
        killed = process.returncode == -signal.SIGKILL
        ended = f"crashed in {where} (exit code {process.returncode}): {last}"
        ended = f"{death(process.returncode)}, in {where}" if killed else ended
    return Run(solver, rows, ended)


def _queued(process: subprocess.Popen[str], lines: Queue[str | None]) -> None:
    for line in process.stdout or ():
        lines.put(line)
    lines.put(None)


def quantile(values: list[float], share: float) -> float:
    """Return the least value that at least this share of the values does not exceed; NaN without values."""
    ordered = sorted(value for value in values if value == value)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else math.nan


def times_slower(run: Run, copters: Run) -> float:
    """Return a solver's total seconds divided by copter's, over rounds that both proved; NaN without such rounds."""
    own = {row["round"]: row["total_s"] for row in copters.rows if row["verified"]}
    both = [(row["total_s"], own[row["round"]]) for row in run.rows if row["verified"] and row["round"] in own]
    return sum(theirs for theirs, _ in both) / sum(ours for _, ours in both) if both else math.nan


def summary(run: Run) -> dict[str, Any]:
    """Return a run's totals: quantiles of times, largest gap and difference, numbers of accepted answers."""
    figures: dict[str, Any] = {"solver": run.solver, "rounds": len(run.rows), "ended": run.ended}
    for stage in STAGES:
        values = [row[stage] for row in run.rows]
        figures[stage] = {name: quantile(values, share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    figures["gap_max"] = max((row["gap"] for row in run.rows if row["gap"] == row["gap"]), default=math.nan)
    differences = [row["difference"] for row in run.rows if row["difference"] == row["difference"]]
    figures["difference_max"] = max(differences, default=math.nan)
    figures["verified"] = sum(row["verified"] is True for row in run.rows)
    figures["identical"] = sum(row["identical"] for row in run.rows)
    methods: dict[str, int] = {}
    for row in run.rows:
        methods[str(row["method"])] = methods.get(str(row["method"]), 0) + 1
    figures["methods"] = methods
    return figures
