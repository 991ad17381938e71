"""Why our Profiler waits longer than the paper's 32 s (Fig. 6(a), 6(b)): one assumption changed at a time.

The waits alone are simulated, until the last job has begun its profile.

python benchmarks/tables/chronus_profiler_reasons.py --days 0.5 --seeds 3               # the paper's 96 nodes
python benchmarks/tables/chronus_profiler_reasons.py --share 0.25 --days 0.5 --seeds 3  # a fourth of them
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

import loads
import numpy as np
from chronus_profiler import BURST, with_short_jobs
from chronus_runs import ROUND_S, cluster_of, make_policy, nodes_of, options, say, spread

from copter_frontends.policies.chronus import Profiler
from copter_frontends.policies.chronus.profiler import Probe
from copter_frontends.simulator import Simulation
from copter_papers.chronus.workload import helios_workload, table_source


@dataclass(frozen=True, slots=True)
class Case:
    """Assumptions of one run; the defaults are those of `chronus_profiler.py`, dynamic."""

    name: str
    round_s: float = ROUND_S
    burst: float = BURST
    headroom: float = 1.0
    most: int | None = 24
    accepting: bool = False


CASES = (
    Case("as in chronus_profiler.py"),
    Case("rounds of 60 s", round_s=60.0),
    Case("rounds of 15 s", round_s=15.0),
    Case("no bursts", burst=0.0),
    Case("twice lambda T", headroom=2.0),
    Case("4 times lambda T", headroom=4.0),
    Case("15 s, no bursts", round_s=15.0, burst=0.0),
    Case("15 s, no bursts, twice", round_s=15.0, burst=0.0, headroom=2.0),
    Case("15 s, no bursts, 4 times", round_s=15.0, burst=0.0, headroom=4.0),
    Case("no control", most=None),
    Case("4 times, no control", headroom=4.0, most=None),
    Case("wait from acceptance", accepting=True),
    Case("4 times, from acceptance", headroom=4.0, accepting=True),
)


class Accepting(Profiler):
    """Submission control at the door: a job is accepted when its user's in the last `profile_s` leave it room.

    A job that is not accepted yet does not wait in the queue, and its waiting counts from its acceptance.
    """

    def __init__(self, most_user_gpus: int, **knobs: Any) -> None:
        super().__init__(most_user_gpus=None, **knobs)
        self.most = most_user_gpus
        self.held: list[Probe] = []
        self.accepted: list[tuple[float, str, int]] = []

    def __contains__(self, job_id: str) -> bool:
        return super().__contains__(job_id) or any(probe.job_id == job_id for probe in self.held)

    def submit(self, job_id: str, gpus: int, submit_s: float, then: tuple[int, ...] = ()) -> None:
        """Hold a job at the door."""
        self.held.append(Probe(job_id, self.users.get(job_id, job_id), gpus, submit_s, then))

    def withdraw(self, job_id: str) -> None:
        """As :meth:`Profiler.withdraw`."""
        super().withdraw(job_id)
        self.held = [probe for probe in self.held if probe.job_id != job_id]

    def step(self, now_s: float, node_gpus: int, most_gpus: int) -> list[str]:
        """Accept those whose users may have more, then as :meth:`Profiler.step`."""
        last_s = getattr(self, "last_s", -np.inf)
        self.accepted = [each for each in self.accepted if now_s - each[0] < self.profile_s - 1e-3]
        still: list[Probe] = []
        for probe in self.held:
            before = sum(gpus for _, user, gpus in self.accepted if user == probe.user)
            if before == 0 or before + probe.gpus <= self.most:
                self.accepted.append((now_s, probe.user, probe.gpus))
                since_s = probe.submit_s if probe.submit_s > last_s else now_s
                super().submit(probe.job_id, probe.gpus, since_s, probe.then)
            else:
                still.append(probe)
        self.held, self.last_s = still, now_s
        return super().step(now_s, node_gpus, most_gpus)


def waits(case: Case, asked: argparse.Namespace, seed: int) -> dict[str, float]:
    """Waits of one run in seconds, lambda T and the profiling cluster's mean size in GPUs."""
    cluster = cluster_of(asked)
    source = table_source(cluster)
    plain = helios_workload(nodes_of(asked), asked.days, "mix2", seed)
    work, users, _ = with_short_jobs(plain, seed, case.burst)
    knobs: dict[str, Any] = {"users": users, "headroom": case.headroom, "every": True}
    profiler = Accepting(24, **knobs) if case.accepting else Profiler(most_user_gpus=case.most, **knobs)
    policy = make_policy("chronus", cluster, source, work, profiler=profiler, round_s=case.round_s)
    loads.note(cluster, work.jobs, source)
    simulation = Simulation(cluster, work.jobs, policy, source, case.round_s)
    sizes: list[int] = []
    while len(profiler.waits_s) < len(work.jobs) and not simulation.finished:
        simulation.step()
        sizes.append(profiler.gpus)
    asked_gpus = sum(min(job.requested_gpus, 16) for job in work.jobs)
    return {
        "wait_s": float(np.mean(profiler.waits_s)),
        "longest_s": float(np.max(profiler.waits_s)),
        "lambda_T": asked_gpus * profiler.profile_s / (86400.0 * asked.days),
        "gpus": float(np.mean(sizes)),
    }


def main() -> None:
    """Every case with every seed: means with the least and the largest."""
    command = options(__doc__, "chronus")
    command.add_argument("--cases", help="numbers of the cases, from 0 (default: all)")
    command.set_defaults(trace="helios", days=0.5)
    asked = command.parse_args()
    chosen = [CASES[int(at)] for at in asked.cases.split(",")] if asked.cases else list(CASES)
    rows: dict[str, list[dict[str, float]]] = {}
    print(f"{'':<28}{'wait s':>24}{'longest wait s':>26}{'lambda T, GPUs':>22}{'size, GPUs':>22}")
    for case in chosen:
        for seed in range(asked.seed, asked.seed + asked.seeds):
            rows.setdefault(case.name, []).append(waits(case, asked, seed))
            say(f"{case.name}, seed {seed}: {rows[case.name][-1]}")
        cells = [spread([row[key] for row in rows[case.name]], 0) for key in ("wait_s", "longest_s")]
        sizes = [spread([row[key] for row in rows[case.name]], 1) for key in ("lambda_T", "gpus")]
        print(f"{case.name:<28}{cells[0]:>24}{cells[1]:>26}{sizes[0]:>22}{sizes[1]:>22}", flush=True)
    print("paper: dynamic 32 s; longest wait 960 s, without submission control 2,105 s")
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
