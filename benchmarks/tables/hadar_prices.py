"""LP prices compared with posted prices, in one run: the LP decides, the online algorithm answers for the same jobs.

python benchmarks/tables/hadar_prices.py --jobs 120
"""

from __future__ import annotations

import argparse

import loads
import numpy as np
from figure_command import spread
from hadar_runs import finish, make_policy, options

from copter_frontends.policies.hadar import HadarPolicy, PriceFunction
from copter_frontends.simulator import RoundRecord, Simulation
from copter_frontends.vocabulary.named_clusters import named_cluster
from copter_papers.hadar.workload import hadar_jobs, table_source


def both_prices(policy: HadarPolicy, now_s: float) -> dict[str, PriceFunction]:
    """The round's price function, and that of (6) to (8) as printed."""
    values, terms = policy.formulation.values, policy.terms(now_s)
    assert values is not None
    return {
        "ours": PriceFunction.of(values, policy.book.gpus, terms.capacity),
        "printed": PriceFunction.printed(policy.book, policy.formulation.utility, terms),
    }


def rounds_of(asked: argparse.Namespace, seed: int) -> list[dict[str, float]]:
    """Simulate one seed's jobs, print prices and worths of both every some rounds, and have those of all rounds."""
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
        for name, function in both_prices(policy, record.now_s).items():
            row |= {f"{name}_alpha": function.alpha, f"{name}_u_min": function.lowest}
            row |= {f"{name}_u_max_{kind}": float(u) for kind, u in zip(cluster.types, function.highest, strict=True)}
        for kind in cluster.types:
            row[f"lp_{kind}"], row[f"posted_{kind}"] = record.prices[kind], online.prices[kind]
        rows.append(row)
        if record.index % asked.every == 0:
            prices = "  ".join(f"{k} {row[f'lp_{k}']:.2e}/{row[f'posted_{k}']:.2e}" for k in cluster.types)
            worth = f"worth {row['lp_worth']:.4f}/{row['online_worth']:.4f} of at most {row['lp_bound']:.4f}"
            bounds = "  ".join(
                f"{kind} {row[f'ours_u_max_{kind}']:.2e}/{row[f'printed_u_max_{kind}']:.2e}" for kind in cluster.types
            )
            least = f"U_min {row['ours_u_min']:.2e}/{row['printed_u_min']:.2e}"
            alphas = f"alpha {row['ours_alpha']:.1f}/{row['printed_alpha']:.1f}"
            print(f"round {record.index:>5}: (6)-(8) ours/as printed: U_max {bounds}  {least}  {alphas}")
            print(f"round {record.index:>5}: LP/posted prices {prices}  {worth}")

    jobs = hadar_jobs(asked.jobs, "static", seed=seed, scale=asked.scale)
    loads.note(cluster, jobs, source)
    Simulation(cluster, jobs, policy, source, policy.round_s).run(on_round=note)
    return rows


def main() -> None:
    """Simulate, and print worths and alphas of both, the averages over a seed's rounds."""
    command = options(__doc__, "hadar")
    command.add_argument("--every", type=int, default=50, help="rounds between two lines (default 50)")
    asked = command.parse_args()
    found = {}
    for seed in range(asked.seed, asked.seed + asked.seeds):
        print(f"seed {seed}")
        found[seed] = rounds_of(asked, seed)
    share = {
        name: [float(np.mean([r[name] / r["lp_bound"] for r in rows])) for rows in found.values()]
        for name in ("lp_worth", "online_worth")
    }
    alphas = {
        name: [float(np.mean([r[f"{name}_alpha"] for r in rows])) for rows in found.values()]
        for name in ("ours", "printed")
    }
    print(f"worth over the certified bound, averages over the rounds of {asked.seeds} seeds, of {asked.jobs} jobs")
    for name, values in (("LP", share["lp_worth"]), ("online", share["online_worth"])):
        print(f"  {name:<24}{', '.join(f'{value:.4f}' for value in values)}")
    print(f"  {'alpha':<24}{spread(alphas['ours'])}\n  {'alpha, as printed':<24}{spread(alphas['printed'])}")
    finish(asked, {"share_of_bound": share, "rows": found})


if __name__ == "__main__":
    main()
