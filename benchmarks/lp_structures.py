"""Generated LPs with the structures that are hard for an interior-point method, through copter and HiGHS.

python benchmarks/lp_structures.py [--only staircase,covering] [--scale 1.0] [--time-limit 60]

One line a structure: sizes, status, the checker's verdict, seconds of copter and of HiGHS, copter's peak memory.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from judge import faults
from judge import judge as check

from copter import LinearProgram, Settings, solve

INF = np.inf


def staircase(size: float, rng: np.random.Generator) -> LinearProgram:
    """Periods of 25 rows that share stocks with the next one; demands and capacities."""
    periods, rows, columns = max(2, int(60 * size)), 25, 60
    here = [sp.random_array((rows, columns), density=0.15, rng=rng) for _ in range(periods)]
    stock = sp.eye_array(rows, columns)
    a = sp.block_diag(here) - sp.kron(sp.eye_array(periods, k=-1), stock)
    x = rng.random(columns * periods) * (rng.random(columns * periods) < 0.4)
    y, right = rng.normal(size=rows * periods), a @ x
    return LinearProgram(a.T @ y + (x == 0) * rng.random(len(x)), a, right, right)


def dense_columns(size: float, rng: np.random.Generator) -> LinearProgram:
    """A shuffled band and three columns with an entry in every row."""
    m = int(5000 * size)
    band = sp.diags_array(
        [rng.uniform(1, 2, m), rng.uniform(-1, 1, m), rng.uniform(0, 1, m)], offsets=[0, 1, 5], shape=(m, m)
    )
    a = sp.hstack((sp.csr_array(band)[rng.permutation(m)], sp.eye_array(m), sp.csc_array(rng.random((m, 3)))))
    x = np.where(rng.random(2 * m + 3) < 0.5, rng.random(2 * m + 3), 0.0)
    cost = a.T @ rng.normal(size=m) + np.where(x > 0, 0.0, rng.random(len(x)))
    return LinearProgram(cost, a, a @ x, a @ x)


def network(size: float, rng: np.random.Generator) -> LinearProgram:
    """Flow conservation with supplies of up to 1e7; one node's row depends on the others'."""
    nodes, arcs = int(3000 * size), int(12000 * size)
    tail, head = rng.integers(0, nodes, arcs), rng.integers(0, nodes, arcs)
    ring = np.arange(nodes)
    tail, head = np.concatenate((tail, ring)), np.concatenate((head, np.roll(ring, -1)))
    arc = np.arange(len(tail))
    entries = (
        np.concatenate((np.ones(len(tail)), -np.ones(len(tail)))),
        (np.concatenate((tail, head)), np.tile(arc, 2)),
    )
    a = sp.csc_array(entries, shape=(nodes, len(tail)))
    flow = np.round(10.0 ** rng.uniform(0, 7, len(tail))) * (rng.random(len(tail)) < 0.3)
    return LinearProgram(rng.integers(1, 100, len(tail)), a, a @ flow, a @ flow, 0.0, np.where(flow > 0, 2 * flow, 1e4))


def assignment(size: float, rng: np.random.Generator) -> LinearProgram:
    """n by n with whole costs: every vertex is degenerate."""
    n = int(120 * np.sqrt(size))
    a = sp.vstack((sp.kron(sp.eye_array(n), np.ones((1, n))), sp.kron(np.ones((1, n)), sp.eye_array(n))))
    return LinearProgram(rng.integers(0, 20, n * n), a, np.ones(2 * n), np.ones(2 * n))


def linearised(size: float, rng: np.random.Generator) -> LinearProgram:
    """Adams and Johnson's linearisation of a quadratic assignment, n = 6: highly degenerate, fills in completely."""
    n = max(3, round(6 * size**0.25))
    x = {key: k for k, key in enumerate(np.ndindex(n, n))}
    pairs = [(i, j, k, m) for i, j, k, m in np.ndindex(n, n, n, n) if i != k and j != m]
    z = {key: len(x) + number for number, key in enumerate(pairs)}
    rows: list[list[tuple[int, float]]] = [[(x[i, j], 1.0) for j in range(n)] for i in range(n)]
    rows += [[(x[i, j], 1.0) for i in range(n)] for j in range(n)]
    right = [1.0] * (2 * n)
    for i, j in np.ndindex(n, n):
        rows += [[*((z[i, j, k, m], 1.0) for m in range(n) if m != j), (x[i, j], -1.0)] for k in range(n) if k != i]
        rows += [[*((z[i, j, k, m], 1.0) for k in range(n) if k != i), (x[i, j], -1.0)] for m in range(n) if m != j]
    rows += [[(z[i, j, k, m], 1.0), (z[k, m, i, j], -1.0)] for i, j, k, m in pairs if i < k]
    right += [0.0] * (len(rows) - len(right))
    where = [(i, column, value) for i, row in enumerate(rows) for column, value in row]
    row, column, value = map(np.array, zip(*where, strict=True))
    a = sp.csc_array((value, (row, column)), shape=(len(rows), len(x) + len(z)))
    cost = np.concatenate((np.zeros(len(x)), rng.integers(0, 10, len(z)).astype(float)))
    return LinearProgram(cost, a, np.array(right), np.array(right))


def covering(size: float, rng: np.random.Generator) -> LinearProgram:
    """More rows than columns, all costs one, as in seymour."""
    m, n = int(4000 * size), int(1100 * size)
    a = sp.csr_array(sp.random_array((m, n), density=7.0 / n, rng=rng)).astype(bool).astype(float)
    a = a + sp.csr_array((np.ones(m), (np.arange(m), rng.integers(0, n, m))), shape=(m, n))
    a.data[:] = 1.0
    return LinearProgram(np.ones(n), a, np.ones(m), INF, 0.0, 1.0)


def empty_interior(size: float, rng: np.random.Generator) -> LinearProgram:
    """No cost; rows that force a third of the columns to zero without saying so."""
    m, n = int(1500 * size), int(3000 * size)
    a = sp.random_array((m, n), density=8.0 / n, rng=rng, format="csr")
    x = rng.random(n) * (rng.random(n) < 0.66)
    groups = sp.csr_array((np.ones(n), (rng.integers(0, 50, n), np.arange(n))), shape=(50, n)) @ sp.diags_array(
        1.0 * (x == 0)
    )
    right = a @ x
    return LinearProgram(
        np.zeros(n), sp.vstack((a, groups)), np.append(right, np.full(50, -INF)), np.append(right, np.zeros(50))
    )


def only_free(size: float, rng: np.random.Generator) -> LinearProgram:
    """Least absolute deviations: all the fit's columns are free, and dense."""
    points, columns = int(1500 * size), 20
    data = rng.normal(size=(points, columns))
    target = data @ rng.normal(size=columns) + rng.standard_t(2, points)
    a = sp.hstack((sp.csc_array(data), sp.eye_array(points)))
    b = sp.hstack((sp.csc_array(data), -sp.eye_array(points)))
    return LinearProgram(
        np.append(np.zeros(columns), np.ones(points)), sp.vstack((a, b)), np.append(target, np.full(points, -INF)),
        np.append(np.full(points, INF), target), -INF,
    )  # fmt: skip


def all_fixed(size: float, rng: np.random.Generator) -> LinearProgram:
    """One point, in wide rows."""
    m, n = int(2000 * size), int(5000 * size)
    a, x = sp.random_array((m, n), density=10.0 / n, rng=rng, format="csr"), rng.normal(size=n)
    return LinearProgram(rng.normal(size=n), a, a @ x - 1.0, a @ x + 1.0, x, x)


def multicommodity(size: float, rng: np.random.Generator) -> LinearProgram:
    """Commodities on one network with shared arc capacities: blocks and coupling rows."""
    nodes, arcs, commodities = int(60 * size), int(240 * size), 30
    tail, head = rng.integers(0, nodes, arcs), rng.integers(0, nodes, arcs)
    arc = np.arange(arcs)
    entries = (np.append(np.ones(arcs), -np.ones(arcs)), (np.append(tail, head), np.tile(arc, 2)))
    one = sp.csc_array(entries, shape=(nodes, arcs))
    flow = rng.integers(0, 5, arcs * commodities) * (rng.random(arcs * commodities) < 0.2)
    a = sp.vstack((sp.kron(sp.eye_array(commodities), one), sp.kron(np.ones((1, commodities)), sp.eye_array(arcs))))
    used = flow.reshape(commodities, arcs).sum(0)
    low = np.append((sp.kron(sp.eye_array(commodities), one)) @ flow, np.full(arcs, -INF))
    high = np.append(low[: nodes * commodities], used + rng.integers(0, 2, arcs))
    return LinearProgram(rng.integers(1, 20, arcs * commodities), a, low, high)


def evacuation(size: float, rng: np.random.Generator) -> LinearProgram:
    """Commodities on a network over days with seats that they share, as in pds: 15 days at size 1."""
    days, places, commodities = max(2, int(15 * size)), 30, 11
    legs = np.array([(i, j) for i in range(places) for j in rng.choice(places, 3, replace=False) if i != j])
    day = np.repeat(np.arange(days - 1), len(legs))
    tail = np.tile(legs[:, 0], days - 1) + places * day
    head = np.tile(legs[:, 1], days - 1) + places * (day + rng.integers(0, 2, len(day)))
    stay = np.arange(places * (days - 1))
    tail, head = np.concatenate((tail, stay)), np.concatenate((head, stay + places))
    arcs, nodes = len(tail), places * days
    entries = (np.append(np.ones(arcs), -np.ones(arcs)), (np.append(tail, head), np.tile(np.arange(arcs), 2)))
    one = sp.csc_array(entries, shape=(nodes, arcs))
    flow = np.round(rng.exponential(4.0, (commodities, arcs))) * (rng.random((commodities, arcs)) < 0.25)
    shared = sp.eye_array(len(day), arcs)
    a = sp.vstack((sp.block_diag([one] * commodities), sp.hstack([shared] * commodities)))
    right = np.concatenate([one @ each for each in flow])
    seats = np.ceil(0.9 * flow.sum(axis=0)[: len(day)]) + 1.0
    lost = sp.vstack((sp.eye_array(nodes * commodities), sp.csr_array((len(day), nodes * commodities))))
    found = sp.vstack((-sp.eye_array(nodes * commodities), sp.csr_array((len(day), nodes * commodities))))
    cost = np.concatenate((
        np.tile(np.append(rng.integers(1, 30, len(day)), np.full(len(stay), 1)), commodities),
        np.full(2 * nodes * commodities, 1e4),
    ))  # fmt: skip
    low, high = np.append(right, np.full(len(day), -INF)), np.append(right, seats)
    return LinearProgram(cost, sp.hstack((a, lost, found)), low, high)


def crews(size: float, rng: np.random.Generator) -> LinearProgram:
    """Flights that one of several fleets flies each, every fleet's day a flow; dear to leave one out, as in dfl001."""
    flights, fleets, cities = int(600 * size), 5, 15
    leaves, flies = np.sort(rng.integers(0, 1440, flights)), rng.integers(45, 300, flights)
    ends = [(rng.integers(cities), rng.integers(cities)) for _ in range(flights)]
    events = sorted({(city, int(t)) for (a, b), t, d in zip(ends, leaves, flies, strict=True)
                     for city, t in ((a, t), (b, min(t + d, 1440)))})  # fmt: skip
    place = {event: k for k, event in enumerate(events)}
    ground = [(k, k + 1 if k + 1 < len(events) and events[k + 1][0] == city else
               place[next(e for e in events if e[0] == city)]) for k, (city, _) in enumerate(events)]  # fmt: skip
    tail = [place[a, int(t)] for (a, _), t in zip(ends, leaves, strict=True)] + [k for k, _ in ground]
    head = [place[b, int(min(t + d, 1440))] for (_, b), t, d in zip(ends, leaves, flies, strict=True)]
    head += [k for _, k in ground]
    arcs, nodes = len(tail), len(events)
    entries = (np.append(np.ones(arcs), -np.ones(arcs)), (np.append(tail, head), np.tile(np.arange(arcs), 2)))
    one = sp.csc_array(entries, shape=(nodes, arcs))
    cover = sp.hstack([sp.eye_array(flights, arcs)] * fleets)
    flow = sp.hstack((sp.block_diag([one] * fleets), sp.csr_array((nodes * fleets, flights))))
    a = sp.vstack((flow, sp.hstack((cover, sp.eye_array(flights)))))
    cost = np.concatenate((
        *(np.append(rng.integers(10**4, 10**6, flights), np.full(len(ground), rng.integers(1, 10)))
          for _ in range(fleets)),
        np.full(flights, 5e8),
    ))  # fmt: skip
    right = np.append(np.zeros(nodes * fleets), np.ones(flights))
    return LinearProgram(cost, a, right, right, 0.0, np.append(np.tile(
        np.append(np.ones(flights), np.full(len(ground), 40.0)), fleets), np.ones(flights)))  # fmt: skip


def badly_scaled(size: float, rng: np.random.Generator) -> LinearProgram:
    """A staircase whose rows and columns are in units seven powers of ten apart."""
    plain = staircase(size, rng)
    row, column = 10.0 ** rng.uniform(-3.5, 3.5, plain.shape[0]), 10.0 ** rng.uniform(-3.5, 3.5, plain.shape[1])
    a = sp.diags_array(row) @ plain.A @ sp.diags_array(column)
    return LinearProgram(plain.c * column, a, plain.row_lower * row, plain.row_upper * row)


STRUCTURES: dict[str, Callable[[float, np.random.Generator], LinearProgram]] = {
    make.__name__: make
    for make in (
        staircase, dense_columns, network, assignment, linearised, covering, empty_interior, only_free, all_fixed,
        multicommodity, evacuation, crews, badly_scaled,
    )
}  # fmt: skip


def measure(name: str, size: float, time_limit_s: float) -> str:
    """One line of the table."""
    lp = STRUCTURES[name](size, np.random.default_rng(7))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    solution = solve(lp, Settings(time_limit_s=time_limit_s))
    seconds = time.perf_counter() - started
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / max(lp.A.nnz * 12, 1)
    reference, other_s = by_highs(lp, time_limit_s)
    found = faults(lp, solution)
    objective = check(lp, solution.x, solution.y).objective
    error = "-" if reference is None else f"{abs(objective - reference) / (1.0 + abs(reference)):.0e}"
    verdict = found[0] if found else "ok" if solution.status.value == "optimal" else "unsolved"
    return (
        f"{name:<15} {lp.shape[0]:>6} {lp.shape[1]:>6} {lp.A.nnz:>7} {solution.status.value:<16} {error:>6} "
        f"{seconds:>8.2f} {other_s:>8.2f} {memory:>7.0f}  {verdict}"
    )


def by_highs(lp: LinearProgram, time_limit_s: float) -> tuple[float | None, float]:
    """HiGHS's optimum, if it found one, and its seconds."""
    import highspy

    from copter.highs.lp import highs_lp

    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("time_limit", time_limit_s)
    solver.passModel(highs_lp(lp))
    started = time.perf_counter()
    solver.run()
    seconds = time.perf_counter() - started
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return (float(solver.getInfo().objective_function_value) if optimal else None), seconds


def main() -> None:
    """Every structure in a process of its own."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--only", default=",".join(STRUCTURES), help=f"some of {','.join(STRUCTURES)}")
    command.add_argument(
        "--scale", type=float, default=1.0, help="size of the programs (1: about 50,000 entries at most)"
    )
    command.add_argument("--time-limit", type=float, default=60.0, help="seconds a solve")
    arguments = command.parse_args()
    names = arguments.only.split(",")
    unknown = [name for name in names if name not in STRUCTURES]
    if unknown or arguments.scale <= 0 or arguments.time_limit <= 0:
        command.error(f"unknown structure {unknown[0]!r}" if unknown else "--scale and --time-limit must be > 0")
    print(
        f"{'structure':<15} {'rows':>6} {'cols':>6} {'nnz':>7} {'status':<16} {'error':>6} {'seconds':>8} "
        f"{'HiGHS s':>8} memory x"
    )
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name in names:
            print(pool.apply(measure, (name, arguments.scale, arguments.time_limit)), flush=True)


if __name__ == "__main__":
    main()
