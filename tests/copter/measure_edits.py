"""Times of every edit, and memory, at 13.5 million columns: python -m tests.copter.measure_edits."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from copter import Model, Session, Settings

COLUMNS = 3000
REQUESTS = 4500  # 13.5 million columns
TYPES = 7


def usage_of(rng: np.random.Generator, n: int = COLUMNS) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Every column uses one type, in runs, some units."""
    kind = np.sort(rng.integers(0, TYPES, n))
    units = rng.integers(1, 64, n).astype(float)
    return {f"type-{k}": np.where(kind == k, units, 0.0) for k in range(TYPES)}


def large(generic: bool, dtype: str = "float64") -> Model:
    """13.5 million columns, of one template or each request with a pattern of its own."""
    rng = np.random.default_rng(0)
    model = Model(cost_dtype=dtype)
    for k in range(TYPES):
        model.add_resources(f"type-{k}", 40_000)
    template = model.add_template(usage_of(rng))
    for request in range(REQUESTS):
        cost = rng.random(COLUMNS)
        if generic:
            model.add_request(request, cost, usage_of(rng))
        else:
            model.add_request(request, cost, template=template)
    return model


def resident_mib() -> float:
    """Memory of this process now, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def memory(kind: str) -> None:
    """Memory that a model and its solve take, beyond what the imports do."""
    before = resident_mib()
    started = time.perf_counter()
    model = large(kind == "generic", "float32" if kind == "float32" else "float64")
    built, built_s = resident_mib() - before, time.perf_counter() - started
    session = Session(model, Settings(time_limit_s=60))
    session.solve()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    matrix, prices = model._matrix, session._iterate.y
    never = np.full(matrix.n_slots, -np.inf)
    pass_s = min(timed(lambda _: matrix.price(prices, never, 1), 1) for _ in range(10))
    print(f"| {kind} | {model.n_columns:,} | {built:.0f} | {peak:.0f} | {built_s:.1f} s | {1e3 * pass_s:.0f} ms |")


def timed(edit: Callable[[int], object], repeats: int = 30) -> float:
    """Median seconds of an edit."""
    times = []
    for number in range(repeats):
        started = time.perf_counter()
        edit(number)
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def edits() -> None:
    """Every edit on the model of 13.5 million columns."""
    model, rng = large(False), np.random.default_rng(1)
    template, usage, own = model.templates[0], usage_of(rng), {f"type-{k}": np.ones(COLUMNS) for k in range(TYPES)}
    costs, thousand = rng.random((100, COLUMNS)), rng.random((1000, 20))
    small = model.add_template({"type-0": np.ones(20)})
    everyone = list(range(REQUESTS))
    scale = rng.random(REQUESTS)
    many = [("b", j) for j in range(100)]
    crowd = [("s", j) for j in range(1000)]
    rows: list[tuple[str, int, float]] = []

    def row(name: str, nonzeros: int, edit: Callable[[int], object], repeats: int = 30) -> None:
        rows.append((name, nonzeros, timed(edit, repeats)))

    row("add a templated request", COLUMNS, lambda i: model.add_request(("t", i), costs[i], template=template))
    row("add one with its own usage, 1 entry a column", COLUMNS, lambda i: model.add_request(("o", i), costs[i], usage))
    row("the same, 7 entries a column", TYPES * COLUMNS, lambda i: model.add_request(("d", i), costs[i], own))
    row("add 100 templated requests", 100 * COLUMNS, lambda i: model.add_requests(many, costs, template=template), 1)
    row("add 1,000 of 20 columns", 20_000, lambda i: model.add_requests(crowd, thousand, template=small), 1)
    row("remove a request", COLUMNS, lambda i: model.remove_request(("t", i)))
    row("remove one with its own usage", TYPES * COLUMNS, lambda i: model.remove_request(("d", i)))
    row("remove 1,000 of 20 columns", 20_000, lambda i: model.remove_requests(crowd), 1)
    row("replace a request's costs", COLUMNS, lambda i: model.update_cost(i, costs[i]))
    row("rescale a request's costs", COLUMNS, lambda i: model.rescale_cost(i, 1.1))
    row("rescale all 4,500 requests' costs", REQUESTS * COLUMNS, lambda i: model.rescale_costs(everyone, scale), 5)
    row("cost of one column", 1, lambda i: model.update_column_cost(i, 7, 0.5))
    row("usage of one request", COLUMNS, lambda i: model.update_usage(i, usage))
    row("usage of a template of 4,500 users", COLUMNS, lambda i: model.update_template(template, usage))
    row("limit of a request", 1, lambda i: model.update_limit(i + 100, 1.0))
    row("bounds of a request", COLUMNS, lambda i: model.update_bounds(i + 100, 0.0, 1.0))
    row("fix a request on a column", 1, lambda i: model.fix(i + 200, 5))
    row("units of a resource", 1, lambda i: model.add_resources("type-0", 1))
    row("a batch of 10 removals, taken back", 10 * COLUMNS, lambda i: failing(model, i), 5)
    with tempfile.TemporaryDirectory() as folder:
        session = Session(model)
        row(f"save {model.n_columns:,} columns", model.n_columns, lambda i: session.save(f"{folder}/s"), 3)
        row("load them", model.n_columns, lambda i: Session.load(f"{folder}/s"), 3)
        for sync in ("never", "always"):
            journaled = Session(Session.load(f"{folder}/s").model, journal=f"{folder}/{sync}", sync=sync).model
            row(f"replace costs, sync={sync}", COLUMNS, lambda i, m=journaled: m.update_cost(i, costs[i]))
            row(f"rescale costs, sync={sync}", COLUMNS, lambda i, m=journaled: m.rescale_cost(i, 1.1))
    print("| edit | nonzeros | time | million nonzeros a second |\n|---|---|---|---|")
    for name, nonzeros, seconds in rows:
        print(f"| {name} | {nonzeros:,} | {1e6 * seconds:,.0f} us | {1e-6 * nonzeros / seconds:,.1f} |")


def failing(model: Model, which: int) -> None:
    """A batch that removes ten requests and then fails."""
    try:
        with model.batch():
            model.remove_requests(list(range(300 + 10 * which, 310 + 10 * which)))
            raise KeyError
    except KeyError:
        pass


def rounds(churn: float) -> None:
    """Median time of a round that replaces a share of the requests and re-solves."""
    model, rng = large(False), np.random.default_rng(2)
    template, session, times = model.templates[0], Session(model), []
    session.solve()
    number = max(int(churn * REQUESTS), 1)
    for turn in range(15):
        costs = rng.random((number, COLUMNS))
        gone = [model.requests[i] for i in rng.choice(REQUESTS, number, replace=False)]
        started = time.perf_counter()
        with model.batch():
            model.remove_requests(gone)
            model.add_requests([("new", turn, j) for j in range(number)], costs, template=template)
        edit_s = time.perf_counter() - started
        solution = session.solve()
        times.append((time.perf_counter() - started, edit_s, solution.pricing_passes))
    total, edit, passes = np.median(np.array(times), axis=0)
    print(f"| {100 * churn:g}% | {1e3 * edit:.1f} ms | {1e3 * total:.0f} ms | {passes:.0f} |")


def steady(turns: int = 10_000) -> None:
    """Memory over many rounds of steady churn, at a small size."""
    rng = np.random.default_rng(3)
    model = Model()
    for k in range(TYPES):
        model.add_resources(f"type-{k}", 100)
    template, session = model.add_template(usage_of(rng, 60)), Session(model)
    for request in range(40):
        model.add_request(request, rng.random(60), template=template)
    sizes = {}
    for turn in range(turns + 1):
        with model.batch():
            model.remove_request(model.requests[0])
            if turn % 2:
                model.add_request(("new", turn), rng.random(60), template=template)
            else:
                model.add_request(("own", turn), rng.random(60), usage_of(rng, 60))
        session.solve()
        if turn in (turns // 10, turns):
            sizes[turn] = resident_mib()
    print("memory at round " + ", at round ".join(f"{turn:,}: {size:.1f} MiB" for turn, size in sizes.items()))


PARTS: dict[str, Callable[[], None]] = {
    "templated": lambda: memory("templated"),
    "float32": lambda: memory("float32"),
    "generic": lambda: memory("generic"),
    "edits": edits,
    "churn-0.001": lambda: rounds(0.001),
    "churn-0.05": lambda: rounds(0.05),
    "steady": steady,
}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        PARTS[sys.argv[1]]()
    else:  # each in a process of its own, for the memory
        for part in PARTS:
            subprocess.run([sys.executable, "-m", "tests.copter.measure_edits", part], check=True)
