"""SciPy's sparse LU in its own process, which can be ended during a factorisation.

SuperLU cannot be interrupted, and a thread that is inside it when the interpreter ends makes the exit code 120.
:func:`main` reads pickled requests from stdin and writes an answer to each to stdout; it ends with its parent.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PROGRAM = "from copter.methods.interior.lu_process import main; main()"
FACTORISE, SOLVE, DROP = "factorise", "solve", "drop"
ENDED = "the process of the factorisation has ended"
LOOK_S = 1.0  # seconds between two checks whether the parent process still runs


class LuProcess:
    """A process that holds one factor; requests are answered in order, by a thread, on :attr:`answers`.

    Raises
    ------
    OSError
        If no process can be started.
    """

    def __init__(self) -> None:
        self.answers: SimpleQueue[Floats | BaseException] = SimpleQueue()
        self._requests: SimpleQueue[tuple[str, Any] | None] = SimpleQueue()
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
        )
        self._thread = threading.Thread(target=self._serve, daemon=True, name="copter-lu")
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the process can take requests."""
        return self._process.poll() is None and self._thread.is_alive()

    def ask(self, what: str, content: object = None) -> None:
        """Send a request; its answer arrives on :attr:`answers`.

        `what` is FACTORISE (`content`: a sparse matrix), SOLVE (a right-hand side), or DROP, which forgets the factor
        and has no answer.
        """
        self._requests.put((what, content))

    def end(self) -> None:
        """End the process at once, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        self._requests.put(None)
        # the garbage collector may call this in the process's own thread
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        """Pass requests to the process and put its answers on the queue, until the process ends."""
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            self.answers.put(RuntimeError(ENDED))
            return
        try:
            while (request := self._requests.get()) is not None:
                pickle.dump(request, requests, protocol=pickle.HIGHEST_PROTOCOL)
                requests.flush()
                answer = pickle.load(answers)
                if request[0] != DROP:
                    self.answers.put(answer)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self.answers.put(RuntimeError(ENDED))
        finally:
            answers.close()
            with suppress(OSError):  # unsent data are no longer needed
                requests.close()


def main() -> None:
    """Answer requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent handles it
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    factor: Any = None
    while True:
        try:
            what, content = pickle.load(source)
        except EOFError:
            return
        answer: object = None
        try:
            if what == SOLVE:
                answer = np.asarray(factor.solve(content))
            else:
                factor = None
                if what == FACTORISE:
                    factor = spl.splu(sp.csc_matrix(content))
                    answer = np.zeros(0)
        except (RuntimeError, MemoryError, ValueError) as error:
            answer = RuntimeError(str(error))
        pickle.dump(answer, sink, protocol=pickle.HIGHEST_PROTOCOL)
        sink.flush()


def end_with_parent(parent: int) -> None:
    """End this process once its parent has ended, even during a factorisation."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(0)
