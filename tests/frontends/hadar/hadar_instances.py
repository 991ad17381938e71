"""Seeded instances of Hadar's round, and the same round by HiGHS in its threshold form."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp

from copter import LinearProgram, Settings
from copter_frontends.policies.hadar.formulation import HadarFormulation
from copter_frontends.policies.hadar.round_values import RoundTerms
from copter_frontends.policies.hadar.threshold_form import Choices, ThresholdForm
from copter_frontends.policies.hadar.utility import UTILITIES
from copter_frontends.vocabulary import Job

NAMES = tuple(UTILITIES)


def random_round(seed: int, spread_cost: float | None = None, restart_s: float = 10.0) -> HadarFormulation:
    """Jobs of 1 to 8 GPUs on 2 to 5 types, some of them unusable; in odd seeds, some jobs already have GPUs."""
    rng = np.random.default_rng(seed)
    kinds, jobs = int(rng.integers(2, 6)), int(rng.integers(3, 25))
    capacity = rng.integers(1, 13, kinds)
    utility = UTILITIES[NAMES[seed % len(NAMES)]]()
    made = HadarFormulation([f"t{q}" for q in range(kinds)], capacity, utility, Settings(threads=1))
    for j in range(jobs):
        gpus = int(rng.choice([1, 2, 3, 4, 6, 8]))
        rates = gpus * rng.uniform(0.5, 10, kinds) * (rng.random(kinds) > 0.15)
        if not (rates > 0).any():
            rates[0] = 1.0
        job = Job(f"j{j}", "any", submit_s=float(rng.uniform(0, 3600)), requested_gpus=gpus)
        made.book.add(job, gpus, float(rng.uniform(100, 100_000)), rates)
    if seed % 2:
        _hold_some(made, rng)
    cost = float(rng.choice([0.0, 0.05, 0.2])) if spread_cost is None else spread_cost
    made.refresh(RoundTerms(3600.0, 360.0, restart_s, cost, made.capacity))
    return made


def _hold_some(made: HadarFormulation, rng: np.random.Generator) -> None:
    left, book = made.capacity.copy(), made.book
    for row, job in enumerate(book.jobs):
        bundle, missing = np.zeros(len(left), dtype=np.int64), int(book.gpus[row])
        for q in rng.permutation(len(left)):
            if book.rates[row, q] > 0:
                bundle[q] = min(missing, left[q])
                missing -= int(bundle[q])
        if missing == 0 and rng.random() < 0.6:
            left -= bundle
            made.hold(job.id, bundle, spread=bool((bundle > 0).sum() > 1))


def choices(made: HadarFormulation) -> Choices:
    """The jobs' options, as the threshold form takes them."""
    values, book = made.values, made.book
    assert values is not None
    return Choices(book.gpus, values.rate, values.pure, values.mixed, values.own, book.held)


def threshold_form(made: HadarFormulation) -> ThresholdForm:
    """The round as a program over (job, slowest type used)."""
    return ThresholdForm(choices(made), made.capacity)


def by_highs(program: LinearProgram, whole: bool) -> OptimizeResult:
    """A maximisation by HiGHS; `fun` is the largest value, at the scale of the program."""
    scale = float(program.c.max(initial=0.0)) or 1.0
    found = milp(
        -program.c / scale,
        integrality=program.integrality if whole else None,
        bounds=Bounds(program.col_lower, program.col_upper),
        constraints=LinearConstraint(program.A, program.row_lower, program.row_upper),
        options={"mip_rel_gap": 1e-7},
    )
    assert found.x is not None
    found.fun = -found.fun * scale
    return found


def paper_form(made: HadarFormulation) -> LinearProgram:
    """The LP as formulated from the paper: z_jr, n_jrq; sum_r z <= 1, sum_q n = W z, capacity; nothing eliminated."""
    values, book = made.values, made.book
    assert values is not None
    n, kinds = values.rate.shape
    rows, columns, entries, cost = [], [], [], []
    links = {}
    for j in range(n):
        for r in range(kinds):
            if values.worth[j, r] <= 0:
                continue
            eligible = [q for q in range(kinds) if values.rate[j, q] >= values.rate[j, r]]
            if made.capacity[eligible].sum() < book.gpus[j]:
                continue  # no whole plan can use this threshold
            z, link = len(cost), n + kinds + len(links)
            links[j, r] = link
            cost.append(values.worth[j, r])
            rows += [j, link]
            columns += [z, z]
            entries += [1.0, -float(book.gpus[j])]
            for q in eligible:
                rows += [link, n + q]
                columns += [len(cost), len(cost)]
                entries += [1.0, 1.0]
                cost.append(0.0)
    height = n + kinds + len(links)
    matrix = sp.csc_array((entries, (rows, columns)), shape=(height, len(cost)))
    upper = np.concatenate([np.ones(n), made.capacity.astype(float), np.zeros(len(links))])
    lower = np.concatenate([np.full(n + kinds, -np.inf), np.zeros(len(links))])
    return LinearProgram(cost, matrix, lower, upper, np.zeros(len(cost)), np.full(len(cost), np.inf), sense="max")
