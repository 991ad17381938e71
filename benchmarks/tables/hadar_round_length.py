"""Average JCT by length of the round and rate of arrivals (the Hadar paper's Figure 9: 6 to 48 minutes, JCT rises).

python benchmarks/tables/hadar_round_length.py
"""

from __future__ import annotations

from hadar_runs import finish, options, run, say

from copter_frontends.clusters import named_cluster
from copter_frontends.hadar.workload import hadar_jobs, table_source

MINUTES = (6, 12, 24, 48)


def main() -> None:
    """Run Hadar at every length and rate, and print its average JCT."""
    command = options(__doc__, "hadar")
    command.add_argument("--rates", default="1.0,1.5,2.0", help="jobs an hour (default 1.0,1.5,2.0)")
    asked = command.parse_args()
    cluster = named_cluster("hadar-60")
    source = table_source(cluster, spread_cost=asked.spread_cost)
    rows: list[dict[str, float]] = []
    for rate in (float(each) for each in asked.rates.split(",")):
        jobs = hadar_jobs(asked.jobs, "continuous", rate, asked.seed, asked.scale)
        for minutes in MINUTES:
            say(f"{rate:g} jobs an hour, rounds of {minutes} min ...")
            found = run("hadar", "jct", cluster, source, jobs, 60.0 * minutes)
            rows.append({"jobs_per_hour": rate, "round_min": minutes, "avg_jct_h": float(found.jct_h.mean())})
    print(f"{'jobs/h':>8}" + "".join(f"{m:>8} min" for m in MINUTES) + "   average JCT, h")
    for rate in sorted({row["jobs_per_hour"] for row in rows}):
        mine = [row["avg_jct_h"] for row in rows if row["jobs_per_hour"] == rate]
        print(f"{rate:>8g}" + "".join(f"{value:>12.2f}" for value in mine))
    finish(asked, {"rows": rows})


if __name__ == "__main__":
    main()
