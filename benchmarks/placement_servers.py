"""Placement on servers, copter beside its rivals; each row of the table by one command.

python benchmarks/placement_servers.py ROW|all [--page docs/results/placement.md]

small: 1,500 servers, 1% of the tasks change in a round. medium: 10,000 servers, 1,000 tasks leave and come in one.
large: 100,000 servers, 5,000 in a round. full, full-medium: 1,500 and 10,000 servers asked for 1.2 times what they
have. openb: Alibaba's GPU servers at 130% arrived load, ten seeds. azure: Azure's stream of virtual machines, on a
region with room and on a full one. The two traces are read from ../shared/data; their rows are left out where it is
not there.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from copter_frontends.placement.servers import (
    PlacementScheme,
    Workload,
    generated,
    make_scheme,
    read_azure,
    read_openb,
    simulate_placement,
)

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
ALL = ("copter", "first-fit", "best-fit", "dot-product", "fgd", "protean", "cvxcluster")
MOVES = ", moves"
"""After a scheme's name: a hundredth of the running tasks may be moved in a round."""
CVX = ("cvxcluster", "cvxcluster-by-server")
SEEDS = 10
GENERATED = {
    "small": ({"servers": 1500, "rounds": 120, "churn": 0.01}, ("copter", "best-fit", "protean", *CVX)),
    "medium": ({"servers": 10_000, "rounds": 60, "churn": 0.0042}, ("copter", "protean", *CVX)),
    "large": ({"servers": 100_000, "rounds": 40, "churn": 0.0021}, ("copter", "protean", "cvxcluster")),
    "full": (
        {"servers": 1500, "rounds": 60, "churn": 0.01, "load": 1.2},
        ("copter", f"copter{MOVES}", "best-fit", "protean", *CVX),
    ),
    "full-medium": ({"servers": 10_000, "rounds": 60, "churn": 0.0042, "load": 1.2}, ("copter", "protean", *CVX)),
}
ROWS = (*GENERATED, "openb", "azure")


def scheme_of(name: str, workload: Workload) -> PlacementScheme:
    """Return the scheme of a row."""
    return make_scheme(name.removesuffix(MOVES), workload, migrations=0.01 if name.endswith(MOVES) else 0.0)


def ms(seconds: float) -> str:
    """Return milliseconds with three figures."""
    return f"{1e3 * seconds:,.3g}"


def rounds_row(name: str) -> Iterator[str]:
    """Yield the lines of a generated workload."""
    asked, schemes = GENERATED[name]
    workload = generated(**asked)
    yield f"## `{name}`: {workload.name}\n"
    yield "| scheme | admitted | worth running | cores used | memory used | gap p50 | gap max | round p50 (ms) | p99 |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for scheme in schemes:
        own = scheme_of(scheme, workload)
        found = simulate_placement(scheme, own, workload, len(workload.rounds) // 4, clock=time.process_time)
        s = found.summary()
        gap = ("none", "none") if s["gap"] is None else (f"{s['gap']['p50']:.2%}", f"{s['gap']['max']:.2%}")
        yield (
            f"| {scheme} | {s['admitted_worth']:.2%} | {s['worth_running']:,.0f} | {s['used'][0]:.1%} "
            f"| {s['used'][1]:.1%} | {gap[0]} | {gap[1]} | {ms(s['round_s']['p50'])} | {ms(s['round_s']['p99'])} |"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield f"\nTasks running: {s['tasks_running']:,}. Most memory so far: {memory:.2f} GiB.\n"


def openb_row() -> Iterator[str]:
    """Yield allocated GPUs of Alibaba's servers."""
    folder = DATA / "alibaba" / "openb_v2023"
    yield "## `openb`: allocated GPUs, FGD's setting, one by one\n"
    if not folder.is_dir():
        yield "The trace is not here.\n"
        return
    yield f"| scheme | 100% arrived | 130%, seeds 0 to {SEEDS - 1}, mean | least | most | seconds |"
    yield "|---|---|---|---|---|---|"
    loads: list[Workload] = [read_openb(folder, 1.0, 0), *(read_openb(folder, 1.3, seed) for seed in range(SEEDS))]
    for scheme in (*ALL[:-1], f"copter{MOVES}"):
        begun = time.process_time()
        runs = [simulate_placement(scheme, scheme_of(scheme, each), each, check_every=10**6) for each in loads]
        shares = [each.rounds[-1].used[-1] for each in runs]
        cells = (shares[0], sum(shares[1:]) / SEEDS, min(shares[1:]), max(shares[1:]))
        told = " | ".join(f"{share:.2%}" for share in cells)
        yield f"| {scheme} | {told} | {time.process_time() - begun:.1f} |"
    yield ""


def azure_row() -> Iterator[str]:
    """Yield servers used and worth of Azure's stream."""
    folder = DATA / "azure_vm"
    if not folder.is_dir():
        yield "## `azure`\n\nThe trace is not here.\n"
        return
    for servers in (2000, 350):
        workload = read_azure(folder, servers)
        yield f"## `azure`: {workload.name}, {len(workload.rounds):,} rounds of five minutes\n"
        yield "| scheme | servers used, mean | most | admitted | worth running | waiting | gap max | round p50 (ms) |"
        yield "|---|---|---|---|---|---|---|---|"
        for scheme in (*ALL, f"copter{MOVES}"):
            result = simulate_placement(scheme, scheme_of(scheme, workload), workload, clock=time.process_time)
            s = result.summary()
            gap = "none" if s["gap"] is None else f"{s['gap']['max']:.2%}"
            yield (
                f"| {scheme} | {s['servers_used']:,.1f} | {s['servers_used_max']:,} | {s['admitted_worth']:.2%} "
                f"| {s['worth_running']:,.0f} | {s['waiting']:,} | {gap} | {ms(s['round_s']['p50'])} |"
            )
        largest = max(each.amounts[0] for each in workload.types)
        whole = sum(each.amounts[0] * each.count for each in workload.types)
        busiest = max(each.used[0] for each in result.rounds) * whole
        yield f"\nThe cores in use in the busiest round fill {busiest / largest:,.0f} of the largest servers.\n"


def main() -> None:
    """Print the rows that are asked for, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", choices=(*ROWS, "all"))
    parser.add_argument("--page", type=Path, help="file to write instead of printing")
    asked = parser.parse_args()
    lines = [
        "# Placement on servers\n",
        f"Written by `python benchmarks/placement_servers.py {asked.row} --page docs/results/placement.md`. What the "
        "schemes are: [placement](../papers/placement.md). `cvxcluster` has the servers in copter's classes, "
        "`cvxcluster-by-server` one by one, as in its paper. Times are processor time, of all threads. Rounds include "
        "edits; every hundredth placement, and the last, passes an exact checker. A gap is a round's, to a proven "
        "bound of its integer program. Seeds 0 to 2 of `openb` were looked at while copter's scores were chosen; the "
        "others were not. With moves, a hundredth of the running tasks may be moved in a round, and the bound is that "
        "of plans that move any. No commercial solver was run.\n",
    ]
    for row in ROWS if asked.row == "all" else (asked.row,):
        make = {"openb": openb_row, "azure": azure_row}.get(row, lambda row=row: rounds_row(row))
        for line in make():
            lines.append(line)
            if asked.page is None:
                print(line, flush=True)
        if asked.page is not None:  # after every row, so that none is lost
            asked.page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
