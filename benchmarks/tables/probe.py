"""A table's answer on a tiny workload: while a reader would call it the same, the full table says what is true.

    python benchmarks/tables/probe.py hadar_jct.py --jobs 12 --seeds 1    # what a table's script prints, without clocks

Python's clocks count their own calls here, a microsecond each, so that a script prints the same on every machine. A
number that changes when the microseconds are of uneven length is a time: it is left out of the answer. Two answers are
the same when their words are equal and their numbers are within a hundredth, or within one unit of the last decimal
place printed: an engine may return another optimum within its tolerance, and counts its work otherwise.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import resource
import runpy
import subprocess
import sys
import time
import timeit  # noqa: F401  (with numba's timers it keeps the true clock, which is read while functions compile)
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numba.core.event  # noqa: F401

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TICK_S = 1e-6  # between two readings of a clock: far below any limit of time that a script sets
UNEVEN = "--uneven"  # every tick of another length
FAILED = "failed: "
ENOUGH_S = 60  # of processor time: a probe takes seconds, and one that takes this long has lost its way
INPUTS = "load: "  # a line that tells of the workload and not of an answer (loads.py)
TIME = "<time>"  # stands for a time, or for a line whose words depend on one
NEAR = Decimal("0.01")  # numbers whose difference is a smaller share of the larger are the same
NOTHING = Decimal("1e-6")  # and those smaller than a solve's tolerance are zero
NUMBER = re.compile(rf"({TIME}|\d+(?:,\d{{3}})*(?:\.\d+)?(?:e[-+]?\d+)?)")
FILL = re.compile(r"[\s\u2500-\u257f]+")  # what only sets words apart: blanks and the lines of boxes


def count_clocks(uneven: bool = False) -> None:
    """Let Python's clocks count their calls, a tick each, or ticks of uneven lengths."""
    draw = random.Random(0)
    lengths = (draw.uniform(1.0, 9.0) if uneven else 1.0 for _ in itertools.count())
    ticks = itertools.accumulate(lengths)

    def tick() -> float:
        return next(ticks) * TICK_S

    time.perf_counter = time.process_time = time.thread_time = tick


def environment() -> dict[str, str]:
    """The variables that a table's script runs with."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), *sys.path[1:]])}


def printed(command: Sequence[str], uneven: bool = False) -> str:
    """What a script prints on its probe; "failed: ..." where it ends with an error, which tells nothing."""
    done = subprocess.run(
        [sys.executable, __file__, *([UNEVEN] if uneven else []), str(HERE / command[0]), *command[1:]],
        cwd=ROOT,
        env={**environment(), "COLUMNS": "400", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return f"{FAILED}{(done.stderr.strip() or f'no message, exit status {done.returncode}').splitlines()[-1]}"
    told = (line for line in done.stdout.splitlines() if not line.startswith(INPUTS))
    return "\n".join(FILL.sub(" ", line).strip() for line in told)


def answer_of(command: Sequence[str]) -> str:
    """What a script prints on its probe, with its times left out."""
    return without_times(printed(command), printed(command, uneven=True))


def without_times(even: str, uneven: str) -> str:
    """The first text, with :data:`TIME` wherever the other, of other clocks, has another number or other words."""
    lines = list(itertools.zip_longest(even.splitlines(), uneven.splitlines(), fillvalue=""))
    return "\n".join(_timeless(*pair) for pair in lines)


def _timeless(even: str, uneven: str) -> str:
    first, other = NUMBER.split(even), NUMBER.split(uneven)
    if first[::2] != other[::2]:
        return TIME
    return "".join(a if a == b else TIME for a, b in zip(first, other, strict=True))


def same(known: str, now: str) -> bool:
    """Whether a reader would call what a probe prints now the answer that is known."""
    lines = known.splitlines(), now.splitlines()
    return len(lines[0]) == len(lines[1]) and all(map(_same_line, *lines))


def _same_line(known: str, now: str) -> bool:
    if known == TIME:
        return True
    first, other = NUMBER.split(known), NUMBER.split(now)
    return first[::2] == other[::2] and all(map(_same_number, first[1::2], other[1::2]))


def _same_number(known: str, now: str) -> bool:
    if known in (TIME, now):
        return True
    a, b = Decimal(known.replace(",", "")), Decimal(now.replace(",", ""))
    places = min(int(a.as_tuple().exponent), int(b.as_tuple().exponent))
    unit = Decimal(1).scaleb(places) if places < 0 else Decimal(0)
    return abs(a - b) <= max(NEAR * max(a, b), unit, NOTHING)


def main() -> None:
    """Run the script that the command line names, its clocks counted."""
    words = sys.argv[1:]
    uneven = words[0] == UNEVEN
    sys.argv = words[uneven:]
    script = Path(sys.argv[0])
    sys.path.insert(0, str(script.parent))
    count_clocks(uneven)
    resource.setrlimit(resource.RLIMIT_CPU, (ENOUGH_S, ENOUGH_S))
    runpy.run_path(str(script if script.is_file() else HERE / script), run_name="__main__")


if __name__ == "__main__":
    main()
