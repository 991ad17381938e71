"""A solver's process, which replays a tape and prints one line of JSON per round."""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from copter import Model, Residuals, Status
from copter.problem.checker import Judged, check
from copter.runtime.errors import CopterError, SettingsError, SnapshotError
from copter.session.playback import Playback, solved
from copter.storage.tape.watching import recorded
from copter_frontends.replay.own_memory import limit_to_available
from copter_frontends.replay.peers.clock import PROCESSOR, clock
from copter_frontends.replay.program import Names, Program

GIB = 1 << 30  # bytes of a gibibyte
COLD, WARM, SCRATCH = "cold", "warm", "scratch"
"""Start of a solve: the first one of a session from nothing, from kept state, or from nothing though it is a later one.
"""
AGREED = 1e-6  # largest relative residuals and gap of a peer's point that counts as an answer


def rows_of_copter(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield copter's rounds, which are also recorded on the new tape ``asked["record"]``, if any, for the verifier."""
    with nullcontext() if asked["record"] is None else recorded(asked["record"]) as writer:
        begun: set[int] = set()
        for played in Playback(asked["tape"], asked["settings"], clock):
            if played.number >= asked["last"]:
                return
            first = played.stream not in begun
            begun.add(played.stream)
            if asked["cold"] or (first and asked["from_nothing"]):
                played.session.reset()
            started = time.process_time()
            solution, plan, shim_s = solved(played, asked["deadline_s"])
            processor_s = time.process_time() - started
            solve_s = solution.solve_time_s
            if PROCESSOR:  # solve and shim share it as they share the wall time
                told_s = max(solve_s + shim_s, 1e-12)
                solve_s, shim_s = processor_s * solve_s / told_s, processor_s * shim_s / told_s
            if writer is not None:
                writer.drain()  # its thread would take time from the next round
            told, objective = played.mark["answer"], solution.objective
            same = _same(objective, told["objective"])
            if plan is not None and played.plan is not None:
                same = same and _same(plan.objective, played.plan["objective"])
            start = WARM
            if asked["cold"] or (first and asked["from_nothing"]):
                start = COLD if first else SCRATCH
            if played.number >= asked["first"] or start == COLD:
                yield {
                    "round": played.number,
                    "start": start,
                    "edits": played.operations,
                    "columns": played.session.model.n_columns,
                    "edit_s": played.edit_s,
                    "solve_s": solve_s,
                    "shim_s": shim_s,
                    "status": solution.status.value,
                    "objective": objective,
                    "difference": relative(objective, told["objective"]),
                    "identical": same,
                    "gap": solution.gap,
                    "method": getattr(solution, "method", None),
                    "why": getattr(solution, "why", None),
                    **residuals(solution.residuals),
                    "optimal": solution.status is Status.OPTIMAL,
                    "processor_s": processor_s,
                    "recorded_edit_s": played.mark["edit_s"],
                    "recorded_solve_s": played.mark["solve_s"],
                    "recorded_shim_s": (played.plan or {}).get("shim_s", 0.0),
                }


def rows_of_peer(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a peer's rounds; its points are judged by copter's checker, which is independent of the methods."""
    from copter_frontends.replay.peers import MILP_WAY, Limits, keeps_state, peer_for

    peers: dict[int, tuple[Any, Programs]] = {}
    later = WARM if keeps_state(asked["solver"]) else SCRATCH
    for played in Playback(asked["tape"]):
        if played.number >= asked["last"]:
            return
        first = played.stream not in peers
        if first:
            peers[played.stream] = peer_for(asked["solver"], asked["threads"]), Programs()
        peer, programs = peers[played.stream]
        program, told = programs.of(played.session.model), played.mark["answer"]
        answer = peer.round(program, Limits(asked["time_limit_s"], math.inf))[0]
        row = {
            "round": played.number,
            "start": COLD if first else later,
            "edits": played.operations,
            "columns": program.shape[1],
            "edit_s": answer.edit_s,
            "solve_s": answer.solve_s,
            "shim_s": 0.0,
            "status": answer.status,
            "objective": answer.objective,
            "difference": relative(answer.objective, told["objective"]),
            "identical": False,
            "gap": math.nan,
            "method": answer.way,
            "why": None,
            "verified": None,
            "optimal": answer.optimal,
            **residuals(None),
        }
        if answer.way != MILP_WAY and answer.optimal and answer.x is not None and answer.y is not None:
            lp = played.session.model.to_linear_program()
            judged = check(lp, np.clip(answer.x, lp.col_lower, lp.col_upper), answer.y)
            row |= residuals(judged) | {"gap": judged.gap}
            row["verified"] = max(judged.primal, judged.dual, judged.gap) <= AGREED
        yield row


def residuals(found: Residuals | Judged | None) -> dict[str, float]:
    """Return the largest residuals of a point, as a row tells them, and the process's peak memory."""
    return {
        "residual": math.nan if found is None else max(found.primal_absolute, found.dual_absolute),
        "relative_residual": math.nan if found is None else max(found.primal, found.dual),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }


class Programs:
    """A model's programs as arrays, with constant numbers for rows and columns."""

    def __init__(self) -> None:
        self.names = Names()

    def of(self, model: Model) -> Program:
        """Return the current program."""
        lp, ledger = model.to_linear_program(), model.ledger
        requests = self.names.numbers((request, at) for request, at in ledger.added_at.items())
        slots = np.fromiter(ledger.slot_of.values(), dtype=np.int32, count=len(ledger.slot_of))
        sizes = ledger.matrix.sizes_of(slots).astype(np.int64)
        own = np.diff(ledger.matrix.own_rows(slots, int(sizes.sum()))[0].astype(np.int64))
        resources = self.names.numbers(
            ("resource", name, int(ledger.matrix.row_serial[row])) for name, row in ledger.row_of.items()
        )
        return Program(
            c=lp.c,
            A=lp.A,
            row_lower=lp.row_lower,
            row_upper=lp.row_upper,
            col_lower=lp.col_lower,
            col_upper=lp.col_upper,
            column_key=numbered(requests, sizes),
            row_key=np.concatenate((resources << 32, numbered(requests, own))),
            sense=lp.sense,
            offset=lp.offset,
        )


def numbered(names: Any, counts: Any) -> Any:
    """Return name << 32 | k with k = 0, 1, ... up to each name's count."""
    start = np.cumsum(counts) - counts
    return np.repeat(names << 32, counts) + np.arange(int(counts.sum())) - np.repeat(start, counts)


def relative(one: float, other: float) -> float:
    """Return |one - other| / (1 + |other|)."""
    return abs(one - other) / (1.0 + abs(other))


def _same(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isnan(one) and math.isnan(other))


def main() -> int:
    """Run the request in the first argument (JSON); exit code 0, 2 for an unusable tape, 3 for lack of memory."""
    asked = json.loads(sys.argv[1])
    limit_to_available()
    if asked["memory_gib"] is not None:
        most = int(asked["memory_gib"] * GIB)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a solver's prints go to stderr, so that they do not mix with the rows
    try:
        for row in rows_of_copter(asked) if asked["solver"] == "copter" else rows_of_peer(asked):
            print(json.dumps(row), file=lines, flush=True)
    except (SnapshotError, SettingsError) as error:
        print(json.dumps({"refused": str(error)}), file=lines, flush=True)
        return 2
    except MemoryError:
        limit = "the machine has no more" if asked["memory_gib"] is None else f"{asked['memory_gib']} GiB"
        print(json.dumps({"ended": f"out of memory ({limit})"}), file=lines)
        return 3
    except (CopterError, RuntimeError, ValueError, ImportError) as error:
        print(json.dumps({"ended": f"{type(error).__name__}: {error}"}), file=lines)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
