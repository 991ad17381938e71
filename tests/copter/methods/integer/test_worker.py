"""Branch and bound runs in a process of its own: it may crash, hang or die, and the caller's process goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp

import copter
from copter import LinearProgram
from copter.highs import process as worker

CRASHES = "import os, signal, sys, pickle; pickle.load(sys.stdin.buffer); os.kill(os.getpid(), signal.SIGSEGV)"
HANGS = "import sys, time, pickle; pickle.load(sys.stdin.buffer); time.sleep(600)"
NONSENSE = (
    "import sys, pickle; pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(b'no pickle'); sys.stdout.flush()"
)


def knapsack(seed: int, n: int = 12) -> LinearProgram:
    """At most one of each, within a weight; solved by enumeration in :func:`best`."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 20, n).astype(float)
    return LinearProgram(
        c=rng.integers(1, 30, n).astype(float), A=sp.csc_array(weight.reshape(1, -1)), row_lower=[-np.inf],
        row_upper=[weight.sum() / 2], col_lower=np.zeros(n), col_upper=np.ones(n), integrality=np.ones(n, dtype=bool),
        sense="max",
    )  # fmt: skip


def best(lp: LinearProgram) -> float:
    """By all 2**n choices."""
    n = lp.shape[1]
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    fits = bits @ lp.A.toarray()[0] <= lp.row_upper[0]
    return float((bits[fits] @ lp.c).max())


@pytest.fixture(autouse=True)
def no_spare() -> Iterator[None]:
    worker.end_spare()
    yield
    worker.end_spare()


@pytest.mark.parametrize("program", [CRASHES, NONSENSE])
@pytest.mark.parametrize("shim", ["dive", "exact"])
def test_a_crash_there_is_no_crash_here(program: str, shim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PROGRAM", program)
    lp = knapsack(1)
    found = copter.solve_integer(lp, shim, deadline_s=5.0)
    assert found.status.value in ("optimal", "feasible", "none_found")
    if found.x is not None:
        assert found.objective <= best(lp) + 1e-9
        assert (lp.A @ found.x <= lp.row_upper + 1e-9).all()
    assert not worker._SPARE


def test_a_process_that_hangs_is_ended_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PROGRAM", HANGS)
    found = copter.solve_integer(knapsack(2), deadline_s=2.0)
    assert found.x is not None
    assert not worker._SPARE


def test_one_process_serves_many_searches() -> None:
    lp = knapsack(3)
    assert copter.solve_integer(lp).objective == pytest.approx(best(lp))
    (spare,) = worker._SPARE
    for seed in range(4, 8):
        lp = knapsack(seed)
        assert copter.solve_integer(lp).objective == pytest.approx(best(lp))
    assert [spare] == worker._SPARE


def test_a_kept_process_that_was_killed_is_replaced() -> None:
    lp = knapsack(3)
    copter.solve_integer(lp)
    (spare,) = worker._SPARE
    os.kill(spare.process.pid, signal.SIGKILL)
    spare.process.wait()
    assert copter.solve_integer(lp).objective == pytest.approx(best(lp))
    assert worker._SPARE[0] is not spare


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_leaves_its_parents_process_alone() -> None:
    lp = knapsack(3)
    copter.solve_integer(lp)
    (spare,) = worker._SPARE
    child = os.fork()
    if child == 0:
        worker.end_spare()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert spare.process.poll() is None
    assert copter.solve_integer(lp).objective == pytest.approx(best(lp))


def test_the_process_ends_with_its_parent() -> None:
    """Ended in order by the exit of the interpreter; a killed parent's ends by itself, in a second."""
    code = (
        "import numpy as np, copter\n"
        "from copter.highs import process as worker\n"
        "lp = copter.LinearProgram(np.ones(9), np.ones((1, 9)), [-np.inf], [4.5], np.zeros(9), np.ones(9), "
        "integrality=np.ones(9, dtype=bool), sense='max')\n"
        "assert copter.solve_integer(lp).objective == 4\n"
        "print(worker._SPARE[0].process.pid if worker._SPARE else 0)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    if int(printed):
        with pytest.raises(ProcessLookupError):
            os.kill(int(printed), 0)
