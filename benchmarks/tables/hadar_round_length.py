"""Average JCT by length of the round and rate of arrivals (the Hadar paper's Figure 9: 6 to 48 minutes, JCT rises).

python benchmarks/tables/hadar_round_length.py
"""

from __future__ import annotations

import loads
from figure_command import spread
from hadar_runs import finish, options, run, say

from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source

MINUTES = (6, 12, 24, 48)


def main() -> None:
    """Run Hadar at every length and rate, and print its average JCT."""
    command = options(__doc__, "hadar")
    command.add_argument("--rates", default="1.0,1.5,2.0", help="jobs an hour (default 1.0,1.5,2.0)")
    asked = command.parse_args()
    cluster = named_cluster("hadar-60")
    source = table_source(cluster, spread_cost=asked.spread_cost)
    rows: list[dict[str, object]] = []
    found: dict[tuple[float, int], list[float]] = {}
    for rate in (float(each) for each in asked.rates.split(",")):
        drawn = [
            hadar_jobs(asked.jobs, "continuous", rate, asked.seed + each, asked.scale) for each in range(asked.seeds)
        ]
        for minutes in MINUTES:
            say(f"{rate:g} jobs an hour, rounds of {minutes} min ...")
            with loads.labelled(f"{rate:g} jobs an hour"):
                runs = [run("hadar", "jct", cluster, source, jobs, 60.0 * minutes) for jobs in drawn]
            found[rate, minutes] = [float(each.jct_h.mean()) for each in runs]
            rows.append({"jobs_per_hour": rate, "round_min": minutes, "avg_jct_h": found[rate, minutes]})
    print(f"{'jobs/h':>8}  " + "".join(f"{f'{m} min':<26}" for m in MINUTES) + "average JCT, h")
    for rate in sorted({rate for rate, _ in found}):
        print(f"{rate:>8g}  " + "".join(f"{spread(found[rate, minutes]):<26}" for minutes in MINUTES))
    finish(asked, {"rows": rows})


if __name__ == "__main__":
    main()
