"""What an edit costs, in time and in memory: the scale bars of the differential model.

    python benchmarks/edits.py                       # everything, every part in a process of its own
    python benchmarks/edits.py --parts rate,removal  # some of it
    python benchmarks/edits.py --json

Times are the mean of processor time and the median of wall time; a rate is by the smaller of the two, as a busy machine
stretches one and a clock that ticks slowly the other. Writes edits.json and edits.md into --out (default
benchmarks/results).
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from edit_problems import COLUMNS, REQUESTS, TYPES, Floats, large, one_template, resident_mib, runs_usage, spread_usage
from families.sia import SiaRounds
from floor import machine
from memory import peak_rss_mb

from copter import Model, PrivateRows, Session, Settings

HERE = Path(__file__).parent
RATE_BAR = 1e6  # nonzeros a second
REMOVAL_BAR_S = 1e-3
CHURN_BAR = 0.1
MEMORY_BAR_MIB = {"templated": 1024.0, "templated-float32": 1024.0, "generic": 2560.0}
CHURNS = (0.001, 0.05)
GPUS = (1000, 4000, 10_000, 27_500)  # the last has 13.6 million columns
Row = dict[str, Any]


def medians(action: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Mean processor seconds (its clock may tick slowly) and median wall seconds of an action."""
    walls = []
    processor = time.process_time()
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        walls.append(time.perf_counter() - started)
    return (time.process_time() - processor) / repeats, float(np.median(walls))


def row(what: str, nonzeros: int, action: Callable[[], object], repeats: int) -> Row:
    """One line: an edit of so many nonzeros, its times and its rate."""
    gc.collect()
    processor_s, wall_s = medians(action, repeats)
    return {
        "what": what, "nonzeros": nonzeros, "processor_s": processor_s, "wall_s": wall_s,
        "nonzeros_per_s": nonzeros / max(min(processor_s, wall_s), 1e-9),
    }  # fmt: skip


# Rate -------------------------------------------------------------------------------------------------------------


def rate() -> list[Row]:
    """Nonzeros a second of adding, one by one and in batches, for every way to say what a request uses."""
    rows = []
    for n, entries, repeats in ((COLUMNS, 1, 100), (1000, 1, 200), (1000, 7, 200), (50, 1, 2000), (25, 2, 2000)):
        usage = spread_usage(np.random.default_rng(0), n, entries)
        rows += [rate_of(n, entries, how, usage, repeats) for how in ("template", "dict", "csr", "csc", "coo")]
    for k, n in ((100, COLUMNS), (100, 1000), (1000, 50)):
        rows += rate_in_batches(k, n)
    for each in rows:
        each["bar"], each["met"] = RATE_BAR, each["nonzeros_per_s"] >= RATE_BAR
    return rows


def rate_of(n: int, entries: int, how: str, usage: dict[str, Floats], repeats: int) -> Row:
    """Add requests of n columns one by one."""
    model, numbers = Model(), count()
    for resource in usage:
        model.add_resource(resource, 1e6)
    cost, source = np.random.default_rng(1).random(n), form_of(model, how, usage)
    what = f"add a request of {n:,} columns, {entries} entr{'y' if entries == 1 else 'ies'} a column, {how}"
    return row(what, n * entries, lambda: model.add_request(next(numbers), cost, **source), repeats)


def form_of(model: Model, how: str, usage: dict[str, Floats]) -> dict[str, Any]:
    """The arguments of add_request that say what it uses."""
    if how == "template":
        return {"template": model.add_template(usage)}
    if how == "dict":
        return {"usage": usage}
    return {"usage": sp.coo_array(np.array(list(usage.values()))).asformat(how), "resources": list(usage)}


def rate_in_batches(k: int, n: int) -> list[Row]:
    """Add k requests of n columns at once, of one template, and as a batch of requests with their own usage."""
    model, turns = Model(), count()
    usage = spread_usage(np.random.default_rng(0), n, 1)
    for resource in usage:
        model.add_resource(resource, 1e6)
    template, costs, source = (
        model.add_template(usage),
        np.random.default_rng(1).random((k, n)),
        form_of(model, "csr", usage),
    )

    def at_once() -> None:
        turn = next(turns)
        model.add_requests([(turn, j) for j in range(k)], costs, template=template)

    def in_a_batch() -> None:
        turn = next(turns)
        with model.batch():
            for j in range(k):
                model.add_request((turn, j), costs[j], **source)

    return [
        row(f"add {k:,} requests of {n:,} columns at once, one template", k * n, at_once, 10),
        row(f"add {k:,} of {n:,} in a batch, each with its own usage", k * n, in_a_batch, 5),
    ]


# Every edit -------------------------------------------------------------------------------------------------------


def removal() -> list[Row]:
    """Removing a request of 3,000 columns from the large models."""
    found = []
    for kind in ("templated", "generic"):
        model = large(kind)
        names = iter(model.requests)
        line = row(
            f"remove a request of {COLUMNS:,} columns from {model.n_columns:,} ({kind})",
            COLUMNS, lambda model=model, names=names: model.remove_request(next(names)), 200,
        )  # fmt: skip
        found.append(line | {"bar": REMOVAL_BAR_S, "met": line["wall_s"] < REMOVAL_BAR_S})
    return found


def every() -> list[Row]:
    """Every edit at 13.5 million columns."""
    model = large("templated")
    return [*adding(model), *changing(model), *keeping(model)]


def adding(model: Model) -> list[Row]:
    """Requests come and go."""
    rng, i = np.random.default_rng(1), count()
    template, usage = one_template(model), runs_usage(rng)
    cost, thousand = rng.random(COLUMNS), rng.random((1000, 20))
    small = model.add_template({"type-0": np.ones(20)})
    own, gone, crowd = count(), count(), [("s", j) for j in range(1000)]
    return [
        row("add a templated request", COLUMNS, lambda: model.add_request(("t", next(i)), cost, template=template), 50),
        row("add one with its own usage", COLUMNS, lambda: model.add_request(("o", next(own)), cost, usage), 50),
        row("remove one with its own usage", COLUMNS, lambda: model.remove_request(("o", next(gone))), 50),
        row("add 1,000 of 20 columns", 20_000, lambda: model.add_requests(crowd, thousand, template=small), 1),
        row("remove 1,000 of 20 columns", 20_000, lambda: model.remove_requests(crowd), 1),
        row("a batch of 10 removals, taken back", 10 * COLUMNS, lambda: taken_back(model), 5),
    ]  # fmt: skip


def changing(model: Model) -> list[Row]:
    """Costs, usage, limits and units of what is there."""
    rng = np.random.default_rng(2)
    template, usage, cost, scale = one_template(model), runs_usage(rng), rng.random(COLUMNS), rng.random(REQUESTS)
    everyone, who = list(range(REQUESTS)), count()

    def each(edit: Callable[[int], object]) -> Callable[[], object]:
        return lambda: edit(next(who) % REQUESTS)

    return [
        row("replace a request's costs", COLUMNS, each(lambda r: model.update_cost(r, cost)), 50),
        row("rescale a request's costs", COLUMNS, each(lambda r: model.rescale_cost(r, 1.1)), 50),
        row(f"rescale all {REQUESTS:,} requests", model.n_columns, lambda: model.rescale_costs(everyone, scale), 5),
        row("cost of one column", 1, each(lambda r: model.update_column_cost(r, 7, 0.5)), 50),
        row("usage of one request", COLUMNS, each(lambda r: model.update_usage(r, usage)), 50),
        row(f"usage of all {REQUESTS:,} requests", COLUMNS, lambda: model.update_template(template, usage), 10),
        row("limit of a request", 1, each(lambda r: model.update_limit(r, 1.0)), 50),
        row("bounds of a request", COLUMNS, each(lambda r: model.update_bounds(r, 0.0, 1.0)), 50),
        row("integrality of a request", 1, each(lambda r: model.update_integrality(r, True)), 50),
        row("fix a request on a column", 1, each(lambda r: model.fix(r, 5)), 50),
        row("units of a resource", 1, lambda: model.add_resource("type-0", 1), 50),
    ]  # fmt: skip


def keeping(model: Model) -> list[Row]:
    """Snapshots and journals."""
    cost, who, found = np.random.default_rng(3).random(COLUMNS), count(), []
    with tempfile.TemporaryDirectory() as folder:
        session, total = Session(model), model.n_columns
        found.append(row("save a snapshot", total, lambda: session.save(f"{folder}/s"), 3))
        found.append(row("load it", total, lambda: Session.load(f"{folder}/s"), 3))
        for sync in ("never", "always"):
            session = Session.load(f"{folder}/s")
            session.journal(f"{folder}/{sync}", sync)
            edit = session.model.update_cost
            found.append(
                row(f"replace costs, sync={sync}", COLUMNS, lambda edit=edit: edit(next(who) % REQUESTS, cost), 20)
            )
            session.journal(None)
    return found


def taken_back(model: Model) -> None:
    """A batch that removes ten requests and then fails."""
    try:
        with model.batch():
            model.remove_requests(list(range(300, 310)))
            raise KeyError
    except KeyError:
        pass


# Rounds -----------------------------------------------------------------------------------------------------------


def churn(gpus: int, rounds: int = 12, warm_up: int = 3) -> list[Row]:
    """Edit and solve, for two shares of a Sia model's jobs replaced a round; and the floor of one pass."""
    found: list[Row] = [churned(gpus, share, rounds, warm_up) for share in CHURNS]
    few, many = found
    few["ratio"], few["ratio_wall"] = (few[key] / many[key] for key in ("processor_s", "wall_s"))
    few["floor_ratio"] = few["floor_s"] / many["processor_s"]
    few["bar"], few["met"] = CHURN_BAR, few["ratio"] <= CHURN_BAR
    return found


def churned(gpus: int, share: float, rounds: int, warm_up: int) -> Row:
    """Medians of rounds that replace a share of the jobs."""
    family = SiaRounds(gpus, "full", 0.01, 0)
    family.edit()
    model, rng, numbers = family.model, np.random.default_rng(1), count(10**9)
    session = Session(model)
    session.solve()
    number, times = max(1, round(share * len(model.requests))), []
    for turn in range(rounds + warm_up):
        gone = [model.requests[i] for i in rng.choice(len(model.requests), number, replace=False)]
        costs, names = [family.new_base() for _ in gone], [next(numbers) for _ in gone]
        processor, wall = time.process_time(), time.perf_counter()
        model.remove_requests(gone)
        model.add_requests(names, costs, template=family.template, scale=-1.0, offset=1.1)
        edited = time.perf_counter() - wall
        solution = session.solve()
        processor, wall = time.process_time() - processor, time.perf_counter() - wall
        if turn >= warm_up:
            times.append((processor, wall, edited, solution.pricing_passes, solution.iterations))
    middle = np.median(np.array(times), axis=0).tolist()
    matrix, never = model.ledger.matrix, np.full(model.ledger.matrix.n_slots, -np.inf)
    floor_s, _ = medians(lambda: matrix.price(session._iterate.y, never, 1), 20)
    keys = ("processor_s", "wall_s", "edit_s", "passes", "newton_steps")
    return {
        "what": f"a round at {gpus:,} GPUs, {100 * share:g}% of the jobs replaced", "columns": model.n_columns,
        "replaced": number, "floor_s": floor_s, **dict(zip(keys, middle, strict=True)),
    }  # fmt: skip


# Memory -----------------------------------------------------------------------------------------------------------


def memory(kind: str) -> list[Row]:
    """Largest resident set of this process, with the interpreter and all, after the model was built and solved."""
    started = time.perf_counter()
    model = large(kind)
    built_mib, built_s = resident_mib(), time.perf_counter() - started
    solution = Session(model, Settings(time_limit_s=300)).solve()
    peak, bar = peak_rss_mb(), MEMORY_BAR_MIB[kind]
    return [{
        "what": f"{model.n_columns:,} columns, {kind}, built and solved", "built_mib": built_mib, "peak_mib": peak,
        "built_s": built_s, "solve_s": solution.solve_time_s, "status": solution.status.value,
        "bar": bar, "met": peak < bar,
    }]  # fmt: skip


def steady(turns: int = 10_000) -> list[Row]:
    """Memory over many rounds of steady churn at a small size: a request in, one out, a solve."""
    rng, model = np.random.default_rng(3), Model()
    for k in range(TYPES):
        model.add_resource(f"type-{k}", 100)
    template, session = model.add_template(runs_usage(rng, 60)), Session(model)
    for request in range(40):
        model.add_request(request, rng.random(60), template=template)
    sizes = {}
    for turn in range(1, turns + 1):
        with model.batch():
            model.remove_request(model.requests[0])
            source: dict[str, Any] = {"template": template} if turn % 2 else {"usage": runs_usage(rng, 60)}
            model.add_request(("new", turn), rng.random(60), **source)
        session.solve()
        if turn in (turns // 10, turns):
            gc.collect()
            sizes[turn] = resident_mib()
    before, after = sizes.values()
    return [{
        "what": f"{turns:,} rounds of steady churn", "mib_at_a_tenth": before, "mib_at_the_end": after,
        "slots": model.ledger.matrix.n_slots, "bar": 1.0, "met": after - before < 1.0,
    }]  # fmt: skip


# In bulk ----------------------------------------------------------------------------------------------------------


def bulk(k: int = 20_000, resources: int = 50, shapes: int = 200) -> list[Row]:
    """Edits of many requests with private rows in one call, and reading a solution of them."""
    rng, model = np.random.default_rng(0), Model()
    for name in range(resources):
        model.add_resource(name, 4000.0)
    own = PrivateRows([[1, 1, 0, 0], [0, 0, 1, -1]], [-np.inf, 0], [3, 0])
    for first in range(0, k, k // shapes):
        one, other = rng.choice(resources, 2, replace=False).tolist()
        template = model.add_template({one: [1, 0, 1, 0], other: [0, 1, 0, 1]}, private_rows=own)
        costs = rng.uniform(1, 2, (k // shapes, 4))
        model.add_requests(range(first, first + k // shapes), costs, template=template, limit=5.0)
    ids, limits, costs = list(range(k)), rng.uniform(4, 6, k), rng.uniform(1, 2, (k, 4))
    upper, counts = np.column_stack((rng.uniform(2, 3, k), np.zeros(k))), rng.uniform(3000, 4000, resources)
    solution = Session(model).solve()
    reads: list[tuple[str, int, Callable[[], object]]] = [
        ("values of all", 4 * k, lambda: solution.values_of(ids)),
        ("duals of private rows of all", 2 * k, lambda: solution.private_duals(ids)),
    ]
    edits: list[tuple[str, int, Callable[[], object]]] = [
        ("limits of all", k, lambda: model.update_limits(ids, limits)),
        ("limits of all, one by one", k, lambda: [model.update_limit(each, 5.0) for each in ids]),
        ("counts of all", resources, lambda: model.update_counts(range(resources), counts)),
        ("costs of all", 4 * k, lambda: model.update_costs(ids, costs)),
        ("bounds of all private rows", 2 * k, lambda: model.update_row_bounds(ids, upper=upper)),
        ("bounds of one private row of each", k, lambda: model.update_row_bounds(ids, upper=upper[:, 0], row=0)),
    ]
    return [row(what, count, action, 9) for what, count, action in (*reads, *edits)]


# All of it --------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], list[Row]]] = {
    "rate": rate,
    "removal": removal,
    "every": every,
    **{f"churn-{gpus}": (lambda gpus=gpus: churn(gpus)) for gpus in GPUS},  # type: ignore[misc]
    **{f"memory-{kind}": (lambda kind=kind: memory(kind)) for kind in MEMORY_BAR_MIB},  # type: ignore[misc]
    "steady": steady,
    "bulk": bulk,
}


def figure(value: Any) -> str:
    """A figure as a table has it."""
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(rows: list[Row]) -> str:
    """Markdown."""
    keys = list(dict.fromkeys(key for each in rows for key in each))
    lines = ["| " + " | ".join(key.replace("_", " ") for key in keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(figure(each.get(key, "")) for key in keys) + " |" for each in rows]
    return "\n".join(lines)


def measured(part: str) -> list[Row]:
    """One part in a process of its own, for the memory."""
    command = [sys.executable, str(HERE / "edits.py"), "--only", part]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return rows


def main() -> None:
    """Parse, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--only", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(PARTS[arguments.only]()))
        return
    parts = arguments.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}: they are {', '.join(PARTS)}")
    found: dict[str, Any] = {"machine": machine(), "parts": {}}
    page = []
    for part in parts:
        found["parts"][part] = measured(part)
        page.append(f"## {part}\n\n{table(found['parts'][part])}\n")
        if not arguments.json:
            print(page[-1], flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "edits.json").write_text(json.dumps(found, indent=1))
    (arguments.out / "edits.md").write_text("\n".join(page))
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
