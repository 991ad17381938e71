"""How long a solve goes on after Ctrl-C, and after a callback has said stop.

python benchmarks/lp_interrupts.py [--only pilot87,network,session] [--times 10] [--json]

A worker process solves the same program again and again; it is sent SIGINT at random moments of a solve. The delay is
from there until the solve has returned. After every stop the worker solves a small program,
and a session the same model anew, to see that it is still usable. `late` are delays above 100 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from lp_problems import data_folder
from lp_structures import STRUCTURES

from copter import LinearProgram, Model, Session, Settings, read_mps, solve

FILES = {
    "pilot87": "netlib/pilot87.mps.gz",
    "stocfor3": "netlib/stocfor3.mps.gz",
    "qap12": "netlib/qap12.mps.gz",
    "greenbeb": "netlib/greenbeb.mps.gz",
    "dsbmip": "miplib_small/dsbmip.mps.gz",
    "seymour": "miplib_small/seymour.mps.gz",
    "dano3mip": "miplib_small/dano3mip.mps.gz",
    "cre-a": "extra_lp/kennington/cre-a.mps.gz",
    "osa-07": "extra_lp/kennington/osa-07.mps.gz",
    "pds-02": "extra_lp/kennington/pds-02.mps.gz",
}
GENERATED = ("network", "covering")
SESSIONS = ("session", "session-rows")
SCALE = 4.0
ALLOWED_S = 0.1
FULL_S = 20.0  # most seconds that a solve is let run to find out how long it takes
WAIT_S = 120.0


def program(name: str) -> LinearProgram:
    """The LP of this name."""
    if name in FILES:
        return read_mps(str(data_folder() / FILES[name]))
    return STRUCTURES[name](SCALE, np.random.default_rng(0))


def big_session(rows: int) -> Session:
    """A thousand requests of 400 columns over some resources; many resources start by the interior-point method."""
    rng = np.random.default_rng(1)
    model = Model("max")
    for k in range(rows):
        model.add_resource(k, 4000.0 / rows)
    for i in range(1000):
        usage = sp.random_array((rows, 400), density=min(1.0, 3.0 / rows), rng=rng, format="csc")
        usage.data = np.ceil(8.0 * usage.data)
        model.add_request(i, rng.uniform(1.0, 9.0, 400), usage=usage, resources=list(range(rows)))
    return Session(model, Settings())


def worker(name: str) -> None:
    """Solve when told to; see the module's docstring."""
    rng = np.random.default_rng(2)
    session = big_session(7 if name == "session" else 300) if name in SESSIONS else None
    lp = None if session is not None else program(name)
    small = LinearProgram([1.0, 2.0], [[1.0, 1.0]], row_lower=3.0)

    def once(limit_s: float) -> str:
        if session is None:
            assert lp is not None
            return solve(lp, Settings(time_limit_s=limit_s)).status.value
        for request in rng.choice(1000, 200, replace=False).tolist():
            session.model.update_cost(request, rng.uniform(1.0, 9.0, 400))
        return session.solve(deadline_s=limit_s).status.value

    print("ready", flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without
        print("begun", flush=True)
        try:
            status = once(question["limit_s"])
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        except KeyboardInterrupt:
            status = "raised"
        print(status, time.monotonic(), flush=True)
        print("usable" if solve(small).status.value == "optimal" else "BROKEN", flush=True)


class Asked:
    """A worker and what it answers."""

    def __init__(self, name: str) -> None:
        root = str(Path(__file__).resolve().parents[1])
        path = os.pathsep.join((root, os.environ.get("PYTHONPATH", "")))
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        self.answer()

    def answer(self) -> str:
        """The worker's next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def begin(self, limit_s: float) -> None:
        """Let it start a solve."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"limit_s": limit_s}) + "\n")
        self.process.stdin.flush()
        self.answer()

    def end(self) -> None:
        """Let it go."""
        self.process.kill()
        self.process.wait()


def delays(name: str, times: int, rng: np.random.Generator) -> dict[str, Any]:
    """Interrupt a program's solve at random moments."""
    asked = Asked(name)
    try:
        started = time.perf_counter()
        asked.begin(FULL_S)
        asked.answer()
        whole, broken = time.perf_counter() - started, asked.answer() != "usable"
        found: list[float] = []
        finished = raised = 0
        for _ in range(times):
            asked.begin(WAIT_S)
            time.sleep(float(rng.uniform(0.0, 0.95 * whole)))
            sent = time.monotonic()
            asked.process.send_signal(signal.SIGINT)
            status, ended = asked.answer().split()
            raised += status == "raised" and float(ended) > sent
            if float(ended) > sent:
                found.append(float(ended) - sent)
            else:
                finished += 1
            broken = asked.answer() != "usable" or broken
    finally:
        asked.end()
    late = sum(delay > ALLOWED_S for delay in found)
    p50, p99, most = (float(np.quantile(found, q)) if found else float("nan") for q in (0.5, 0.99, 1.0))
    return {
        "name": name, "whole_s": whole, "interrupts": len(found), "finished": finished, "raised": raised,
        "p50_s": p50, "p99_s": p99, "max_s": most, "late": late, "broken": broken,
    }  # fmt: skip


def main() -> None:
    """Measure all programs, one line each."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--only", default=",".join((*FILES, *GENERATED, *SESSIONS)))
    command.add_argument("--times", type=int, default=10)
    command.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    command.add_argument("--worker", default="", help=argparse.SUPPRESS)
    arguments = command.parse_args()
    if arguments.worker:
        worker(arguments.worker)
        return
    if arguments.times < 1:
        command.error("--times must be at least 1")
    rng = np.random.default_rng(0)
    print(f"{'program':<14} {'whole s':>8} {'stops':>6} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'late':>5}  usable")
    results = []
    for name in arguments.only.split(","):
        if name not in (*FILES, *GENERATED, *SESSIONS):
            command.error(f"no program {name!r}: some of {', '.join((*FILES, *GENERATED, *SESSIONS))}")
        found = delays(name, arguments.times, rng)
        results.append(found)
        print(
            f"{name:<14} {found['whole_s']:8.2f} {found['interrupts']:6d} {1e3 * found['p50_s']:8.0f} "
            f"{1e3 * found['p99_s']:8.0f} {1e3 * found['max_s']:8.0f} {found['late']:5d}  "
            f"{'NO' if found['broken'] else 'yes'}",
            flush=True,
        )
    if arguments.json:
        print(json.dumps(results))
    sys.exit(1 if any(found["broken"] or found["raised"] for found in results) else 0)


if __name__ == "__main__":
    main()
