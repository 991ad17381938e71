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
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from queue import Empty, Queue
from typing import Any

from copter.runtime.errors import SnapshotError

LOADING_S = 60.0  # seconds beyond its limits that a solver's process has for loading and for checks
WORKER = ("-m", "copter_frontends.replay.worker")
ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # others spin between calls, which counts as processor time
CLOCK = "COPTER_CLOCK"  # see peers/clock.py, which is read in the solver's process
JUDGE = ("-m", "copter_frontends.replay.judge_process")
UNUSABLE = 2  # exit code of the judge's process for a tape that cannot be used
STAGES = ("edit_s", "solve_s", "lp_s", "shim_s", "total_s")
LEAST_ROUNDS = 20  # counted rounds that a solver has before its time for a tape may be over, if they are short
SHORT_S = 10.0  # seconds of a short round
ANSWER = ("status", "objective", "gap")  # what two replays of a round must agree in for one verdict on both


@dataclass(frozen=True)
class Asked:
    """Options of ``copter replay``.

    Attributes
    ----------
    tape : str
    first, last : float
        Rounds from `first` to `last - 1` are counted; earlier ones are solved too, by every solver, and not counted.
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
        Most seconds of all rounds by a peer; then it is ended, and its row says how many rounds it did. A peer whose
        rounds are short may go on up to :data:`LEAST_ROUNDS` counted ones.
    cold : bool
        Whether copter solves every round from scratch.
    from_nothing : bool
        Whether copter's sessions begin with nothing, as the peers do, instead of with the recorded solution.
    processor : bool
        Whether times are processor time, for a machine that other work shares, instead of wall time.
    judged : bool
        Whether the verifier judges copter's answers, which takes it longer than the solves.
    heard : callable, optional
        Called as ``heard(solver, rounds)`` before a solver begins and after each of its rounds.
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
    from_nothing: bool = False
    processor: bool = False
    judged: bool = True
    heard: Callable[[str, int], None] | None = None


@dataclass(frozen=True)
class Run:
    """One solver's rounds.

    Attributes
    ----------
    solver : str
    rows : list of dict
        The asked rounds.
    first : list of dict
        First solves of sessions, from nothing, also if they are of rounds before the asked ones.
    ended : str or None
        Why the run ended early; None if the tape was replayed to its end.
    """

    solver: str
    rows: list[dict[str, Any]]
    ended: str | None = None
    first: list[dict[str, Any]] = field(default_factory=list)

    @property
    def counted(self) -> list[dict[str, Any]]:
        """Return the rows that are compared: first solves are apart."""
        return [row for row in self.rows if row.get("start") != "cold"]


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
    ended = timed.ended or (None if repeated.ended is None else f"recording for the judge: {repeated.ended}")
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
        "from_nothing": copters and asked.from_nothing,
        **more,
    }
    command = [sys.executable, *WORKER, json.dumps(order)]
    clocks = {CLOCK: "processor"} if asked.processor else {}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ONE_BLAS_THREAD | os.environ | clocks
    )
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
    lines: Queue[str | None] = Queue()
    writer = threading.Thread(target=_queued, args=(process, lines), daemon=True)
    reader.start()
    writer.start()
    rows: list[dict[str, Any]] = []
    cold: list[dict[str, Any]] = []
    limit = None if copters else 2.0 * asked.peer_time_limit_s + LOADING_S
    ended = None
    spent = 0.0
    done = 0
    try:
        while True:
            if asked.heard is not None:
                asked.heard(solver, done)
            line = lines.get(timeout=limit)
            if line is None:
                break
            row = json.loads(line)
            if "refused" in row:
                raise SnapshotError(row["refused"])
            if "ended" in row:
                ended = row["ended"]
                continue
            done += 1
            row["lp_s"] = row["edit_s"] + row["solve_s"]
            row["total_s"] = row["lp_s"] + row["shim_s"]
            if row["start"] == "cold":
                cold.append(row)
            if row["round"] >= asked.first:
                rows.append(row)
            spent += row["total_s"]
            if not copters and spent > asked.peer_budget_s and not _goes_on(row, rows):
                ended = f"its {asked.peer_budget_s:g} s for this tape are over after {len(rows)} rounds"
                break
    except Empty:
        ended = f"no answer within {limit:g} s of a round, after {len(rows)}: its process was ended"
    finally:
        if process.poll() is None and (ended is not None or sys.exc_info()[0] is not None):
            process.kill()
        process.wait()
        reader.join(1.0)
    if ended is None and process.returncode:
        last = errors[-1].strip() if errors else "it said nothing"
        killed = process.returncode == -signal.SIGKILL
        ended = f"crashed after {len(rows)} rounds (exit code {process.returncode}): {last}"
        ended = f"its process {death(process.returncode)}, after {len(rows)} rounds" if killed else ended
    return Run(solver, rows, ended, cold)


def _goes_on(last: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Whether a peer whose time is over goes on: it has too few counted rounds yet, and they are short."""
    counted = [row["total_s"] for row in rows if row["start"] != "cold"]
    if not counted:
        return bool(last["optimal"])
    return len(counted) < LEAST_ROUNDS and quantile(counted, 0.5) < SHORT_S


def _queued(process: subprocess.Popen[str], lines: Queue[str | None]) -> None:
    for line in process.stdout or ():
        if line.endswith("\n"):  # a process that is killed may leave half a line
            lines.put(line)
    lines.put(None)


def quantile(values: list[float], share: float) -> float:
    """Return the least value that at least this share of the values does not exceed; NaN without values."""
    ordered = sorted(value for value in values if value == value)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else math.nan


@dataclass(frozen=True)
class Compared:
    """A solver beside copter, on the counted rounds that both proved.

    Attributes
    ----------
    rounds : int
    total, median : float
        The solver's sum, and its median, over copter's; NaN without such rounds. They are of edits and linear
        programs: copter's shim, which makes a plan of the answer, is apart, because the other solvers have none.
    copters_s, own_s : float
        Both medians.
    """

    rounds: int
    total: float
    median: float
    copters_s: float
    own_s: float

    @property
    def enough(self) -> bool:
        """Whether there are as many rounds as a ratio needs."""
        return self.rounds >= LEAST_ROUNDS

    def as_dict(self) -> dict[str, Any]:
        """Return the ratios as ``--json`` prints them, with the number of rounds that they are of."""
        return {"rounds_of_both": self.rounds, "times_sum": self.total, "times_median": self.median}


def compared(run: Run, copters: Run) -> Compared:
    """Compare a solver with copter on the counted rounds that both proved."""
    ours_of = {row["round"]: row["lp_s"] for row in copters.counted if row["verified"]}
    both = [row for row in run.counted if row["verified"] and row["round"] in ours_of]
    theirs, ours = [row["lp_s"] for row in both], [ours_of[row["round"]] for row in both]
    if not both:
        return Compared(0, math.nan, math.nan, math.nan, math.nan)
    own_s, copters_s = quantile(theirs, 0.5), quantile(ours, 0.5)
    return Compared(len(both), sum(theirs) / sum(ours), own_s / copters_s, copters_s, own_s)


def summary(run: Run) -> dict[str, Any]:
    """Return a run's totals: quantiles of the counted rounds' times, the first solve's, largest gap and difference,
    numbers of accepted answers.
    """
    figures: dict[str, Any] = {"solver": run.solver, "rounds": len(run.rows), "ended": run.ended}
    counted = run.counted
    figures["counted"] = len(counted)
    figures["cold_s"] = run.first[0]["total_s"] if run.first else None
    for stage in STAGES:
        values = [row[stage] for row in counted]
        figures[stage] = {name: quantile(values, share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
        figures[stage]["sum"] = sum(values)
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
