"""The work of proximal rounds: Newton steps, proximal steps, pricing passes, working columns; answers against HiGHS.

An answer stays right where a step is wasted, so that only its count tells. What a session of rounds took is below, in
the order of `WORK`; a tenth more or less is allowed for other processors' roundings. Less work is news, too.
"""

from __future__ import annotations

import numpy as np
import pytest
from judge import assert_optimal

from copter import Model, Session, Settings, Status

WORK = ("iterations", "proximal_steps", "pricing_passes", "working_columns")
ROUNDS = 6
SIZES = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def job(rng: np.random.Generator, kinds: int) -> dict[str, np.ndarray]:
    """Concave values of five sizes on every kind, and what they use."""
    value = np.concatenate([rng.uniform(0.5, 2.0) * SIZES ** rng.uniform(0.3, 0.9) for _ in range(kinds)])
    usage = {k: np.concatenate([SIZES if k == other else 0.0 * SIZES for other in range(kinds)]) for k in range(kinds)}
    return {"value": value, **{f"use {k}": each for k, each in usage.items()}}


def add(model: Model, name: object, rng: np.random.Generator, kinds: int, **further: object) -> None:
    made = job(rng, kinds)
    usage = {k: made[f"use {k}"] for k in range(kinds)}
    model.add_request(name, made["value"], usage, **further)


def jobs(rng: np.random.Generator, count: int, kinds: int, **further: object) -> Model:
    """A round in which the jobs want several times the resources that there are."""
    model = Model("max")
    for k in range(kinds):
        model.add_resources(k, float(2 * count // kinds))
    for name in range(count):
        add(model, name, rng, kinds, **further)
    return model


def wide(rng: np.random.Generator, count: int) -> Model:
    """Requests over many resources of which each uses a few, not grouped by one limit."""
    model = Model("max")
    for k in range(25):
        model.add_resources(k, 0.12 * count)
    for name in range(count):
        usage = {k: rng.uniform(0.2, 2.0, 6) * (rng.random(6) < 0.25) for k in range(25)}
        model.add_request(name, rng.uniform(0.2, 1.0, 6), usage, upper=1.0, limit=2.0)
    return model


def covering(rng: np.random.Generator, count: int) -> Model:
    """The cheapest supplies of ten demands, of which an eighth may be met more than once."""
    model = Model("min")
    for k in range(10):
        model.add_resources(k, (0.8 if k % 2 else 5.0) * count, lower=0.6 * count)
    for name in range(count):
        usage = {k: rng.uniform(0.5, 3.0, 8) * (rng.random(8) < 0.4) for k in range(10)}
        model.add_request(name, rng.uniform(0.2, 3.0, 8), usage, limit=4.0)
    return model


CASES = {
    "few jobs": lambda rng: jobs(rng, 60, 2, integer=True),
    "many jobs": lambda rng: jobs(rng, 900, 4),
    "bounded": lambda rng: jobs(rng, 80, 2, lower=0.01, upper=0.5, limit=1.5),
    "covering": lambda rng: covering(rng, 120),
    "wide": lambda rng: wide(rng, 250),
}
METHODS = {"proximal": Settings(method="proximal"), "descent": Settings(method="price_descent")}


def worked(case: str, method: str) -> dict[str, int]:
    """What rounds of a case take together; each answer is judged."""
    rng = np.random.default_rng(11)
    model = CASES[case](rng)
    names = list(model.requests)
    session = Session(model, METHODS[method])
    found = dict.fromkeys(WORK, 0)
    for number in range(ROUNDS):
        solution = session.solve()
        assert solution.status is Status.OPTIMAL
        lp = model.to_linear_program()
        assert_optimal(lp, solution.x, solution.y)
        for name in WORK:
            found[name] += int(getattr(solution, name))
        for _ in range(max(len(names) // 50, 1)):
            model.remove_request(names.pop(int(rng.integers(len(names)))))
        if case == "many jobs":
            names += [f"round {number}, {new}" for new in range(18)]
            for name in names[-18:]:
                add(model, name, rng, 4)
    return found


EXPECTED: dict[tuple[str, str], tuple[int, ...]] = {
    ("few jobs", "proximal"): (34, 18, 17, 473),
    ("many jobs", "proximal"): (104, 22, 20, 8555),
    ("bounded", "proximal"): (42, 12, 7, 4650),
    ("covering", "proximal"): (171, 10, 12, 196),
    ("wide", "proximal"): (248, 26, 7, 8610),
    ("few jobs", "descent"): (41, 18, 17, 473),
    ("many jobs", "descent"): (122, 24, 24, 8434),
    ("bounded", "descent"): (50, 12, 12, 4650),
    ("wide", "descent"): (333, 28, 12, 8610),
}


@pytest.mark.parametrize(("case", "method"), EXPECTED)
def test_rounds_take_the_work_that_they_did(case: str, method: str) -> None:
    found = worked(case, method)
    for name, known in zip(WORK, EXPECTED[case, method], strict=True):
        assert abs(found[name] - known) <= 0.1 * known + 1, f"{name}: {found}"
