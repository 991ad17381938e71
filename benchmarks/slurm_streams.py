"""Streams of short jobs for a Slurm of fake nodes: what each job asks, and how long it runs where.

Three kinds: "rigid" (all nodes alike), "mixed" (two GPU types; each application gains otherwise by the fast one),
"moldable" (each job may run with 1 to 8 GPUs; a user asks for some size).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

KINDS = ("rigid", "mixed", "moldable")
NODES = {
    "rigid": "n[1-6] 32 64000 a100 8 a100",
    "mixed": "n[1-3] 32 64000 a100 8 a100\nt[1-3] 32 64000 t4 8 t4",
    "moldable": "n[1-6] 32 64000 a100 8 a100",
}
GPUS = 48
# application: mean seconds of one run on the asked GPUs of the slow type, speed of the fast type, exponent of speed-up
APPS = {
    "tune": (7.5, 1.2, 0.75), "eval": (9.0, 3.0, 0.6), "vision": (15.0, 1.5, 0.8), "speech": (21.0, 4.0, 0.9),
    "train": (27.0, 2.2, 0.85), "large": (42.0, 5.0, 0.95),
}  # fmt: skip
SHARES = (0.26, 0.2, 0.2, 0.14, 0.12, 0.08)  # of applications among jobs
SIZES = {1: 0.42, 2: 0.26, 4: 0.2, 8: 0.12}


@dataclass(frozen=True, slots=True)
class StreamJob:
    """One job: seconds after the stream's start, application, asked GPUs, and seconds on the asked GPUs by GPU type."""

    at_s: float
    app: str
    gpus: int
    seconds: dict[str, float]
    rate: float

    def takes(self, kind: str, gpus: int) -> float:
        """Return the seconds on some GPUs of a type."""
        return self.seconds[kind] / (gpus / self.gpus) ** self.rate


def stream(kind: str, seed: int, jobs: int = 200, load: float = 1.6) -> list[StreamJob]:
    """Return a stream: arrivals at random, offered load as a multiple of what the cluster does with no GPU idle."""
    dice = random.Random(f"{kind} {seed}")
    found = []
    work = 0.0
    for _ in range(jobs):
        app = dice.choices(list(APPS), SHARES)[0]
        seconds, fast, rate = APPS[app]
        gpus = dice.choices(list(SIZES), list(SIZES.values()))[0]
        own = seconds * dice.lognormvariate(-0.03, 0.25)
        times = {"t4": 1.5 * own, "a100": 1.5 * own / fast} if kind == "mixed" else {"a100": own}
        work += gpus * sum(times.values()) / len(times)
        found.append((app, gpus, times, rate))
    span = work / GPUS / load
    arrivals = sorted(dice.uniform(0.0, span) for _ in range(jobs))
    return [StreamJob(at, *each) for at, each in zip(arrivals, found, strict=True)]
