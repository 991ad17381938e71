"""LP prices compared with posted prices, in one run: the LP decides, the online algorithm answers for the same jobs.

python benchmarks/tables/hadar_prices.py --jobs 120
"""

from __future__ import annotations

import numpy as np
from hadar_runs import finish, make_policy, options

from copter_frontends.clusters import named_cluster
from copter_frontends.hadar import HadarPolicy
from copter_frontends.hadar.workload import hadar_jobs, table_source
from copter_frontends.simulator import RoundRecord, Simulation


def main() -> None:
    """Simulate, and print prices and worths of both, every some rounds and on average."""
    command = options(__doc__, "hadar")
    command.add_argument("--every", type=int, default=50, help="rounds between two lines (default 50)")
    asked = command.parse_args()
    cluster = named_cluster("hadar-60")
    source = table_source(cluster, spread_cost=asked.spread_cost)
    policy = make_policy("hadar", "jct", cluster, source)
    assert isinstance(policy, HadarPolicy)
    policy.compare_prices = True
    rows: list[dict[str, float]] = []

    def note(record: RoundRecord) -> None:
        online = policy.last_online
        if online is None or record.active_jobs == 0:
            return
        row = {"round": float(record.index), "lp_worth": record.objective, "lp_bound": record.bound}
        row |= {"online_worth": online.worth, "alpha": online.alpha}
        for kind in cluster.types:
            row[f"lp_{kind}"], row[f"posted_{kind}"] = record.prices[kind], online.prices[kind]
        rows.append(row)
        if record.index % asked.every == 0:
            prices = "  ".join(f"{k} {row[f'lp_{k}']:.2e}/{row[f'posted_{k}']:.2e}" for k in cluster.types)
            worth = f"worth {row['lp_worth']:.4f}/{row['online_worth']:.4f} of at most {row['lp_bound']:.4f}"
            print(f"round {record.index:>5}: LP/posted prices {prices}  {worth}")

    jobs = hadar_jobs(asked.jobs, "static", seed=asked.seed, scale=asked.scale)
    Simulation(cluster, jobs, policy, source, policy.round_s).run(on_round=note)
    share = {name: float(np.mean([r[name] / r["lp_bound"] for r in rows])) for name in ("lp_worth", "online_worth")}
    print(f"worth over the certified bound, average of {len(rows)} rounds: LP {share['lp_worth']:.4f}, ", end="")
    print(f"online {share['online_worth']:.4f}; alpha {np.mean([r['alpha'] for r in rows]):.1f}")
    finish(asked, {"share_of_bound": share, "rows": rows})


if __name__ == "__main__":
    main()
