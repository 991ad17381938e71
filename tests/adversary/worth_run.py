"""Many random models with concave worths, edited and solved again, every round judged by the verifier.

Usage::

    python -m tests.adversary.worth_run --seconds 60 --first 0

Prints how many rounds ended how, and every round that the verifier rejects or that ended without an answer. The exit
status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from copter import Model, Session, Status, worth
from copter.problem.worth import Worth
from copter.verify.judge import verify

ANSWERS = (Status.OPTIMAL, Status.PRIMAL_INFEASIBLE)


def some_worth(rng: np.random.Generator) -> Worth | None:
    """A random worth; None for a linear request."""
    weight, floor, kind = float(np.exp(2 * rng.normal())), float(rng.choice([0.0, 0.01, 1.0])), int(rng.integers(6))
    if kind == 0:
        return worth.log(weight, floor)
    if kind == 1:
        return worth.power(float(rng.choice([0.3, 0.9, 1.1, 2.0, 4.0])), weight, floor)
    if kind == 2:
        return worth.minimum(np.c_[rng.uniform(-1.0, 4.0, 4), rng.uniform(0.0, 4.0, 4)])
    if kind == 3:
        return worth.quadratic(float(rng.uniform(-0.5, 3.0)), weight)
    return worth.saturating(weight, float(rng.uniform(0.1, 3.0))) if kind == 4 else None


def add(model: Model, name: int, rng: np.random.Generator) -> None:
    """Add a random request."""
    n, types = int(rng.integers(1, 8)), len(model.resources)
    usage = np.round((rng.random((types, n)) < 0.5) * rng.uniform(0.1, 3.0, (types, n)), 2)
    own, limit = some_worth(rng), float(rng.choice([1.0, 0.25, 4.0, 50.0]))
    rates = np.maximum(rng.uniform(-0.5, 3.0, n), 0.0)
    rates[0] = max(rates[0], 0.1)
    least = limit if rng.random() < 0.05 else -np.inf
    cost = rng.normal(size=n) * (rng.random() < 0.3)
    columns = {at: usage[at] for at in range(types)}
    if own is None:
        model.add_request(name, cost, columns, limit=limit, at_least=least)
    else:
        model.add_request(name, cost, columns, limit=limit, at_least=least, worth=own, rates=rates)


def edit(model: Model, name: int, rng: np.random.Generator) -> None:
    """One random edit."""
    request = model.requests[int(rng.integers(len(model.requests)))]
    kind = int(rng.integers(5))
    if kind == 0 and len(model.requests) > 1:
        model.remove_request(request)
    elif kind == 1:
        add(model, name, rng)
    elif kind == 2:
        model.add_resources(0, float(rng.uniform(0.0, 2.0)))
    elif model.worth(request) is not None:
        model.update_worth(request, some_worth(rng) or worth.log(floor=0.1))
    else:
        model.update_cost(request, rng.normal(size=len(model.cost(request))))


def rounds_of(seed: int, path: Path) -> list[str]:
    """Solve one model's rounds onto a tape; returns how each ended, and what the verifier says against it."""
    rng, model = np.random.default_rng(seed), Model(sense="max", offset=0.5)
    jobs = int(rng.choice([1, 3, 10, 40]))
    for at in range(int(rng.integers(1, 7))):
        model.add_resources(at, float(rng.uniform(0.1, 1.5) * jobs))
    for name in range(jobs):
        add(model, name, rng)
    session = Session(model)
    session.record(path)
    found = [session.solve()]
    for number in range(4):
        edit(model, jobs + number, rng)
        found.append(session.solve())
    session.record(None)
    faults = {at: wrong for at, _, wrong in verify(path) if wrong}
    path.unlink()
    return [
        "; ".join(faults.get(at, [])) or (each.status.value if each.status in ANSWERS else f"no answer: {each.status}")
        for at, each in enumerate(found)
    ]


def main() -> int:
    """Run models until the time is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    count, end, seed, wrong = Counter[str](), time.monotonic() + given.seconds, given.first, False
    answers = {each.value for each in ANSWERS}
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for at, ended in enumerate(rounds_of(seed, Path(folder) / "tape")):
                count[ended if ended in answers else "wrong or none"] += 1
                if ended not in answers:
                    wrong = True
                    print(f"seed {seed}, round {at}: {ended}")
            seed += 1
    print(f"{seed - given.first} models: " + ", ".join(f"{number} {ended}" for ended, number in count.most_common()))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
