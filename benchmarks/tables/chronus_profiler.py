"""The Profiler (Figs 6(a) to 6(c)): fixed sizes and the dynamic one, with and without submission control.

Jobs that end within the profile (Short) are mixed with H_MIX2's, in Table 1's numbers (5,735 to 6,599); a user sends
jobs in bursts. The paper: dynamic scaling waits 32 s with a wDMR of 5.0%; submission control cuts the longest wait
to 960 s.

python benchmarks/tables/chronus_profiler.py --share 0.1 --days 2 --seeds 3
"""

from __future__ import annotations

import json
from dataclasses import replace

import loads
import numpy as np
from chronus_runs import ROUND_S, cluster_of, make_policy, nodes_of, options, run, say

from copter_frontends.policies.chronus import Profiler
from copter_papers.chronus.workload import HELIOS, Workload, helios_workload, table_source

SHORT = HELIOS.short / HELIOS.jobs  # short jobs to each other one
USERS = 40
BURST = 6.0  # jobs that a user sends at once, mean


def with_short_jobs(work: Workload, seed: int, burst: float = BURST) -> tuple[Workload, dict[str, str], set[str]]:
    """The jobs with short ones among them, who sent each, and which are short; without bursts where these are 0."""
    rng = np.random.default_rng([seed, 6])
    jobs, users, short = list(work.jobs), {}, set()
    until_s = jobs[-1].submit_s
    for n in range(round(SHORT * len(work.jobs))):
        job = jobs[int(rng.integers(len(work.jobs)))]
        gpus = min(job.requested_gpus, 8)
        new = replace(
            job, id=f"short-{n}", submit_s=float(rng.uniform(0.0, until_s)), requested_gpus=gpus,
            work_samples=float(gpus * rng.uniform(20.0, 280.0)),
        )  # fmt: skip
        jobs.append(new)
        short.add(new.id)
    jobs.sort(key=lambda job: job.submit_s)
    at = 0
    while at < len(jobs):
        user = f"user-{int(rng.integers(USERS))}"
        size = 1 + (int(rng.geometric(1.0 / burst)) if burst else 0)
        for k in range(at, min(at + size, len(jobs))):
            jobs[k] = replace(jobs[k], submit_s=jobs[at].submit_s)
            users[jobs[k].id] = user
        at += size
    return Workload(tuple(jobs), dict(work.rewards)), users, short


def main() -> None:
    """Run every size on every seed, and print means with the least and the largest."""
    command = options(__doc__, "chronus")
    command.add_argument("--sizes", default="1,2,4,0", help="nodes of the profiling cluster; 0 follows the arrivals")
    command.set_defaults(trace="helios")
    asked = command.parse_args()
    cluster = cluster_of(asked)
    source, rows = table_source(cluster), {}
    cases = [(int(size), 24) for size in asked.sizes.split(",")] + [(0, None)]
    for nodes, most in cases:
        name = (f"{nodes} nodes" if nodes else "dynamic") + (", no submission control" if most is None else "")
        for seed in range(asked.seed, asked.seed + asked.seeds):
            plain = helios_workload(nodes_of(asked), asked.days, "mix2", seed)
            work, users, short = with_short_jobs(plain, seed)
            profiler = Profiler(most_user_gpus=most, nodes=nodes or None, users=users, every=True)
            policy = make_policy("chronus", cluster, source, work, profiler=profiler, round_s=ROUND_S)
            found = run("chronus", cluster, work, policy, source)
            waits = np.array(profiler.waits_s)
            rows.setdefault(name, []).append(
                {"wait_s": float(waits.mean()), "longest_s": float(waits.max()), "wdmr": found.miss_rate,
                 "short_jct_s": found.jct_of(short), "broken": found.broken + found.missed_promises}
            )  # fmt: skip
            say(f"{name}, seed {seed}: {rows[name][-1]}")
    print(f"{'':<32}{'wait s':>24}{'longest wait s':>24}{'wDMR %':>22}{'short JCT s':>24}{'broken':>8}")
    for name, each in rows.items():
        cells = []
        for key, scale in (("wait_s", 1.0), ("longest_s", 1.0), ("wdmr", 100.0), ("short_jct_s", 1.0)):
            values = scale * np.array([row[key] for row in each])
            cells.append(f"{values.mean():.1f} ({values.min():.1f} to {values.max():.1f})".rjust(24))
        print(f"{name:<32}{''.join(cells)}{sum(row['broken'] for row in each):>8}")
    loads.say()
    print("paper: dynamic 32 s, wDMR 5.0%; longest wait 960 s, without submission control 2,105 s")
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
