"""Cells that trade capacity, beside POP's equal parts and an ADMM like DeDe's, on the same splits; one LP as the judge.

    python frontends/examples/cells_beside_pop.py                # Sia on 10,000 GPUs in 8 cells, a WAN in 4 regions
    python frontends/examples/cells_beside_pop.py --gpus 100000 --cells 8

POP (Narayanan et al., SOSP 2021) gives every cell an equal part of every resource: it is the cells' first round trip.
DeDe (Xu et al., OSDI 2025) splits constraints by requests and by resources and alternates projections, each pair of
which is a round trip with all columns; its point is scaled down until it fits. Losses are relative to the one LP.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

import copter
from copter.distributed.cells import Cells

Floats = NDArray[np.float64]
TYPES, GPUS_PER_NODE, JOBS_PER_GPU = 7, 8, 0.14
REGIONS, SITES, PATHS = 4, 48, 4
ADMM_ITERATIONS = (30, 100)


def sia(gpus: int, cells: int, seed: int) -> tuple[copter.Model, list[copter.Model], Floats, Floats, Floats]:
    """One model, its split at random, and what the ADMM needs: values (jobs, n), sizes (n,), types (n,)."""
    rng = np.random.default_rng(seed)
    nodes = np.full(TYPES, gpus // GPUS_PER_NODE // TYPES)
    sizes = [np.concatenate((2.0 ** np.arange(3), GPUS_PER_NODE * np.arange(1.0, n + 1))) for n in nodes]
    size, kind = np.concatenate(sizes), np.repeat(np.arange(TYPES), [len(each) for each in sizes])
    models = [copter.Model("max") for _ in range(cells + 1)]
    templates = []
    for model in models:
        for k, count in enumerate((nodes * GPUS_PER_NODE).tolist()):
            model.add_resources(k, float(count))
        templates.append(model.add_template({k: np.where(kind == k, size, 0.0) for k in range(TYPES)}))
    values = np.empty((round(JOBS_PER_GPU * gpus), len(size)))
    for job in range(len(values)):
        speed = np.log(rng.uniform(1.0, 10.0, TYPES))[kind]
        goodput = speed + rng.uniform(0.6, 0.95) * np.log(size) - np.log1p(size / 2.0 ** rng.uniform(2, 9))
        values[job] = 1.1 - np.exp(-0.5 * (goodput - goodput.min()))
        for at in (0, 1 + job % cells):
            models[at].add_request(job, values[job], template=templates[at])
    return models[0], models[1:], values, size, kind


def wan(seed: int) -> tuple[copter.Model, list[copter.Model]]:
    """Traffic between sites, over some of the shortest paths; a cell is the demands that begin in a region."""
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
            model.add_resources(at, count)
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
    """Objective after so many iterations of projections by requests and by resources, scaled down until it fits."""
    z = np.zeros_like(values)
    dual = np.zeros_like(values)
    rho = float(np.abs(values).mean())
    for _ in range(iterations):
        x = onto_simplex(z - dual + values / rho)
        z = x + dual
        for k, count in enumerate(counts.tolist()):
            mine = kind == k
            part = np.maximum(z[:, mine], 0.0)
            z[:, mine] = onto_capacity(part, size[mine], count)
        dual += x - z
    used = np.array([(x[:, kind == k] @ size[kind == k]).sum() for k in range(len(counts))])
    fits = np.minimum(1.0, counts / np.maximum(used, 1e-300))
    return float((values * x * fits[kind]).sum())


def onto_simplex(points: Floats) -> Floats:
    """Rows projected onto x >= 0, sum x <= 1."""
    inside = np.maximum(points, 0.0)
    over = inside.sum(axis=1) > 1.0
    if over.any():
        part = -np.sort(-points[over], axis=1)
        sums = (np.cumsum(part, axis=1) - 1.0) / np.arange(1, points.shape[1] + 1)
        last = (part > sums).sum(axis=1) - 1
        inside[over] = np.maximum(points[over] - sums[np.arange(len(last)), last][:, None], 0.0)
    return inside


def onto_capacity(points: Floats, size: Floats, count: float) -> Floats:
    """Points projected onto z >= 0, sum size z <= count, by bisection in the price."""
    low, high = 0.0, float((points / size).max(initial=0.0))
    if float((points @ size).sum()) <= count:
        return points
    for _ in range(40):
        price = 0.5 * (low + high)
        if float((np.maximum(points - price * size, 0.0) @ size).sum()) > count:
            low = price
        else:
            high = price
    return np.maximum(points - high * size, 0.0)


def compare(name: str, whole: copter.Model, parts: list[copter.Model]) -> float:
    """Print what the cells come to; the optimum."""
    counts = {resource: whole.count(resource) for resource in whole.resources}
    started = time.process_time()
    optimum = copter.Session(whole).solve().objective
    one_s = time.process_time() - started
    cells = Cells(parts, counts)
    started = time.process_time()
    last = cells.solve()
    cells_s = time.process_time() - started
    loss = (optimum - last.objective) / optimum
    pop = (optimum - cells.trips[0].objective) / optimum
    kb = sum(trip.sent + trip.received for trip in cells.trips) / 1e3
    print(
        f"{name}: {whole.n_columns:,} variables, {len(counts)} shared resources, {len(parts)} cells\n"
        f"  one LP           optimum {optimum:.6g}, {one_s:.2f} s of processor time\n"
        f"  POP-{len(parts):<12d} loss {pop:.3%}, 1 round trip, no bound on it\n"
        f"  cells            loss {loss:.4%}, certified gap {last.gap:.4%}, {len(cells.trips)} round trips, "
        f"{kb:.1f} kB, {cells_s:.2f} s"
    )
    return optimum


def main() -> None:
    """Sia, then the WAN."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-admm", action="store_true", help="leave the ADMM out: it holds all columns four times")
    arguments = parser.parse_args()
    whole, parts, values, size, kind = sia(arguments.gpus, arguments.cells, arguments.seed)
    counts = np.array([whole.count(k) for k in range(TYPES)])
    optimum = compare(f"Sia, {arguments.gpus:,} GPUs", whole, parts)
    if not arguments.no_admm:
        for iterations in ADMM_ITERATIONS:
            started = time.process_time()
            loss = (optimum - admm(values, size, kind, counts, iterations)) / optimum
            print(
                f"  ADMM             loss {loss:.3%} after {iterations} round trips, no bound on it, "
                f"{time.process_time() - started:.1f} s"
            )
    del whole, parts, values
    compare("WAN", *wan(arguments.seed))


if __name__ == "__main__":
    main()
