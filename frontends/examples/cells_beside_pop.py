"""Cells that trade capacity, compared with POP's equal parts and an ADMM like DeDe's on the same splits.

    python frontends/examples/cells_beside_pop.py     # Sia on 10,000 GPUs and shards in 8 cells, a WAN in 4 regions
    python frontends/examples/cells_beside_pop.py --only sia --gpus 100000 --tilt 3 --no-admm
    python frontends/examples/cells_beside_pop.py --only shards --shards 2048 --servers 256
    python frontends/examples/cells_beside_pop.py --only wan --seed 5

With a tilt, the jobs of each cell run this many times faster on a GPU type of the cell's own; otherwise the split is
random. The seed of the shards is the number of a published round of loads. POP (Narayanan et al., SOSP 2021) gives
every cell an equal part of every resource, which is also the cells' first round trip. DeDe (Xu et al., OSDI 2025)
splits constraints by requests and by resources and alternates projections; each pair of projections is a round trip
with all columns. Its point is scaled down until it fits. Losses are relative to the undivided LP.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

import copter
from copter_distributed.cells import Cells
from copter_frontends.shards import ShardCluster, load_rounds
from copter_frontends.shards.cells import ShardCells
from copter_frontends.shards.formulation import ShardFormulation
from copter_frontends.shards.highs_shards import PopShards

Floats = NDArray[np.float64]
TYPES, GPUS_PER_NODE, JOBS_PER_GPU = 7, 8, 0.14
REGIONS, SITES, PATHS = 4, 48, 4
ADMM_ITERATIONS = (30, 100)
PENALTY = 0.1  # penalty of the ADMM, relative to the mean value
BISECTIONS = 40


def sia(
    gpus: int, cells: int, seed: int, tilt: float
) -> tuple[copter.Model, list[copter.Model], Floats, Floats, Floats]:
    """Return a model, its split, and the ADMM's input: values (jobs, n), sizes (n,), types (n,)."""
    rng = np.random.default_rng(seed)
    nodes = np.full(TYPES, gpus // GPUS_PER_NODE // TYPES)
    sizes = [np.concatenate((2.0 ** np.arange(3), GPUS_PER_NODE * np.arange(1.0, n + 1))) for n in nodes]
    size, kind = np.concatenate(sizes), np.repeat(np.arange(TYPES), [len(each) for each in sizes])
    models = [copter.Model("max") for _ in range(cells + 1)]
    templates = []
    for model in models:
        for k, count in enumerate((nodes * GPUS_PER_NODE).tolist()):
            model.add_resource(k, float(count))
        templates.append(model.add_template({k: np.where(kind == k, size, 0.0) for k in range(TYPES)}))
    values = np.empty((round(JOBS_PER_GPU * gpus), len(size)))
    for job in range(len(values)):
        speed = np.log(rng.uniform(1.0, 10.0, TYPES))
        speed[job % cells % TYPES] += np.log(tilt)
        speed = speed[kind]
        goodput = speed + rng.uniform(0.6, 0.95) * np.log(size) - np.log1p(size / 2.0 ** rng.uniform(2, 9))
        values[job] = 1.1 - np.exp(-0.5 * (goodput - goodput.min()))
        for at in (0, 1 + job % cells):
            models[at].add_request(job, values[job], template=templates[at])
    return models[0], models[1:], values, size, kind


def wan(seed: int) -> tuple[copter.Model, list[copter.Model]]:
    """Return a model of traffic between sites over some shortest paths; a cell has the demands from one region."""
    rng = np.random.default_rng(seed)
    place = rng.random((SITES, 2))
    far = np.linalg.norm(place[:, None] - place[None], axis=2)
    near = np.argsort(far, axis=1)[:, 1:4]
    ends = sorted({(min(a, b), max(a, b)) for a in range(SITES) for b in near[a].tolist()})
    ends += [(a, a + 1) for a in range(SITES - 1) if (a, a + 1) not in ends]
    link = {pair: at for at, pair in enumerate(ends)}
    link.update({(b, a): at for (a, b), at in list(link.items())})
    models = [copter.Model("max") for _ in range(REGIONS + 1)]
    capacity = rng.uniform(20.0, 60.0, len(ends))
    for model in models:
        for at, count in enumerate(capacity.tolist()):
            model.add_resource(at, count)
    region = (place[:, 0] > 0.5) * 2 + (place[:, 1] > 0.5)
    routes: dict[tuple[int, int], set[tuple[int, ...]]] = {}
    for _ in range(PATHS):
        length = [far[pair] * rng.uniform(0.5, 2.0) for pair in ends]
        graph = sp.coo_array((length, np.array(ends).T), shape=(SITES, SITES)).tocsr()
        _, before = dijkstra(graph, directed=False, return_predecessors=True)
        for a in range(SITES):
            for b in range(SITES):
                route, at = [], b
                while at != a and before[a, at] >= 0:
                    route.append(link[int(before[a, at]), at])
                    at = int(before[a, at])
                if a != b and at == a:
                    routes.setdefault((a, b), set()).add(tuple(route))
    for (a, b), paths in routes.items():
        used = [(each, column) for column, path in enumerate(sorted(paths)) for each in path]
        row, column = np.array(used).T
        usage = sp.csc_array((np.ones(len(used)), (row, column)), shape=(len(ends), len(paths)))
        for model in (models[0], models[1 + int(region[a])]):
            demand = float(np.random.default_rng((seed, a, b)).exponential(2.0))
            model.add_request((a, b), np.ones(len(paths)), usage, resources=list(range(len(ends))), limit=demand)
    return models[0], models[1:]


def admm(values: Floats, size: Floats, kind: Floats, counts: Floats, iterations: int) -> float:
    """Return the objective after some iterations of projections by requests and by resources, scaled down until it
    fits.

    Distances are weighted by the columns' sizes, since otherwise large configurations delay all others. The penalty was
    the best of five on 2,000 GPUs. The better of both projections counts.
    """
    z = np.zeros_like(values)
    dual = np.zeros_like(values)
    rho = PENALTY * float(np.abs(values).mean())
    for _ in range(iterations):
        x = onto_simplex(z - dual + values / (rho * size), size)
        z = x + dual
        for k, count in enumerate(counts.tolist()):
            mine = kind == k
            z[:, mine] = onto_capacity(np.maximum(z[:, mine], 0.0), size[mine], count)
        dual += x - z
    z /= np.maximum(z.sum(axis=1, keepdims=True), 1.0)
    return max(fitted(point, values, size, kind, counts) for point in (x, z))


def fitted(x: Floats, values: Floats, size: Floats, kind: Floats, counts: Floats) -> float:
    """Return the objective of a point after scaling it down until it fits every type."""
    used = np.array([(x[:, kind == k] @ size[kind == k]).sum() for k in range(len(counts))])
    fits = np.minimum(1.0, counts / np.maximum(used, 1e-300))
    return float((values * x * fits[kind]).sum())


def onto_simplex(points: Floats, size: Floats) -> Floats:
    """Project rows onto x >= 0, sum x <= 1, by bisection in the sum's dual."""
    found = np.maximum(points, 0.0)
    over = np.flatnonzero(found.sum(axis=1) > 1.0)
    part = points[over]
    low, high = np.zeros(len(over)), (found[over] * size).max(axis=1, initial=0.0)
    for _ in range(BISECTIONS):
        price = 0.5 * (low + high)
        above = np.maximum(part - price[:, None] / size, 0.0).sum(axis=1) > 1.0
        low, high = np.where(above, price, low), np.where(above, high, price)
    found[over] = np.maximum(part - high[:, None] / size, 0.0)
    return found


def onto_capacity(points: Floats, size: Floats, count: float) -> Floats:
    """Project points onto z >= 0, sum size z <= count, by bisection in the price."""
    if float((points @ size).sum()) <= count:
        return points
    low, high = 0.0, float(points.max(initial=0.0))
    for _ in range(BISECTIONS):
        price = 0.5 * (low + high)
        if float((np.maximum(points - price, 0.0) @ size).sum()) > count:
            low = price
        else:
            high = price
    return np.maximum(points - high, 0.0)


def compare(name: str, whole: copter.Model, parts: list[copter.Model], most_trips: int) -> float:
    """Print the cells' result; returns the optimum."""
    counts = {resource: whole.count(resource) for resource in whole.resources}
    started = time.process_time()
    optimum = copter.Session(whole).solve().objective
    one_s = time.process_time() - started
    told(f"{name}: {whole.n_columns:,} variables", optimum, one_s, Cells(parts, counts), None, most_trips)
    return optimum


def told(name: str, optimum: float, one_s: float, cells: Cells, pop: float | None, most_trips: int) -> None:
    """Solve the cells and print their result with the optimum and POP's, by default the plan of the first trip."""
    started = time.process_time()
    last = cells.solve(most_trips=most_trips)
    cells_s = time.process_time() - started
    first = cells.trips[0].objective if pop is None else pop
    kb = sum(trip.sent + trip.received for trip in cells.trips) / 1e3
    print(
        f"{name}, {len(cells.shared)} shared resources, {len(cells.cells)} cells\n"
        f"  one LP           optimum {optimum:.6g}, {one_s:.2f} s of processor time\n"
        f"  POP-{len(cells.cells):<12d} loss {abs(optimum - first) / abs(optimum):.3%}, 1 round trip, no bound on it\n"
        f"  cells            loss {abs(optimum - last.objective) / abs(optimum):.4%}, certified gap {last.gap:.4%}, "
        f"{len(cells.trips)} round trips, {kb:.1f} kB, {cells_s:.2f} s",
        flush=True,
    )


def shards(n_shards: int, servers: int, parts: int, seed: int, most_trips: int) -> None:
    """Compare on the published shards with a round of loads (method/shards.md, SH2, SH10)."""
    cluster = ShardCluster.round_robin(n_shards, servers)
    load = list(load_rounds(n_shards, seed + 1, "stateless"))[seed].astype(np.float64)
    load *= servers / load.sum()
    started = time.process_time()
    one = ShardFormulation(cluster).solve(cluster, load)
    one_s = time.process_time() - started
    pop = PopShards(cluster, parts)
    blocks = np.array_split(np.arange(servers), parts)
    cost = 0.0
    for own, (which, weight) in zip(blocks, pop.split(load, blocks), strict=True):
        part = replace(
            cluster,
            size=cluster.size[which],
            memory=cluster.memory[own],
            holds=cluster.holds[np.ix_(which, own)],
            up=None,
        )
        mine = load[which] * weight
        found = ShardFormulation(part).solve(part, mine * len(own) / mine.sum())
        new = part.new_copy[found.shard] * ~part.holds[found.shard, found.server] * weight[found.shard]
        cost += float((found.share * new).sum())
    split = ShardCells(cluster, load, parts)
    cells = split.cells()
    name = f"Shards, {n_shards:,} x {servers}: {n_shards * servers:,} variables"
    told(name, one.objective, one_s, cells, cost, most_trips)
    shares = split.shares(cells.finish())
    held = np.bincount(shares[1], weights=shares[2] * load[shares[0]], minlength=servers)
    print(
        f"  put together     cost {split.cost(shares):.6g}, loads of {held.min():.4f} to {held.max():.4f} of the mean"
    )


def main() -> None:
    """Compare on Sia, shards and the WAN."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-admm", action="store_true", help="leave the ADMM out: it holds all columns four times")
    parser.add_argument("--tilt", type=float, default=1.0, help="how much faster a cell's own GPU type is for its jobs")
    parser.add_argument("--shards", type=int, default=512)
    parser.add_argument("--servers", type=int, default=64)
    parser.add_argument("--only", choices=("sia", "wan", "shards"), help="one of the three")
    parser.add_argument("--most-trips", type=int, default=150, help="give up after so many round trips (default 150)")
    arguments = parser.parse_args()
    if min(arguments.gpus, arguments.cells, arguments.shards, arguments.servers, arguments.most_trips) < 1:
        parser.error("--gpus, --cells, --shards, --servers and --most-trips must be 1 or more")
    if not arguments.tilt > 0.0:
        parser.error("--tilt must be above 0")
    if arguments.only in (None, "sia"):
        compare_sia(arguments)
    if arguments.only in (None, "shards"):
        shards(arguments.shards, arguments.servers, arguments.cells, arguments.seed, arguments.most_trips)
    if arguments.only in (None, "wan"):
        compare("WAN", *wan(arguments.seed), arguments.most_trips)


def compare_sia(arguments: argparse.Namespace) -> None:
    """Compare Sia's cells with the ADMM."""
    whole, parts, values, size, kind = sia(arguments.gpus, arguments.cells, arguments.seed, arguments.tilt)
    counts = np.array([whole.count(k) for k in range(TYPES)])
    optimum = compare(f"Sia, {arguments.gpus:,} GPUs", whole, parts, arguments.most_trips)
    if arguments.no_admm:
        return
    for iterations in ADMM_ITERATIONS:
        started = time.process_time()
        loss = (optimum - admm(values, size, kind, counts, iterations)) / optimum
        print(
            f"  ADMM             loss {loss:.3%} after {iterations} round trips, no bound on it, "
            f"{time.process_time() - started:.1f} s"
        )


if __name__ == "__main__":
    main()
