"""A thousand rounds of edits at random deadlines: every plan feasible in exact arithmetic, within its bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_traffic_plans import edit
from traffic_cases import drawn_case, judge_exactly

from copter_frontends.traffic import TrafficFormulation


@pytest.mark.parametrize(("rounds", "objective"), [
    (25, "total"), (15, "concurrent"),
    pytest.param(1000, "total", marks=pytest.mark.long), pytest.param(1000, "concurrent", marks=pytest.mark.long),
])  # fmt: skip
def test_rounds_of_edits_at_any_deadline(rounds: int, objective: str) -> None:
    rng = np.random.default_rng(rounds)
    paths, demands = drawn_case(14, 3)
    form = TrafficFormulation(paths, 2.0 * demands, objective)
    for _ in range(rounds):
        edit(form, int(rng.integers(6)), rng)
        deadline_s = None if rng.random() < 0.3 else float(rng.choice([0.01, 0.02, 0.05, 0.2]))
        plan = form.plan(deadline_s)
        judge_exactly(form.paths, plan.flows, form.demands, form.capacity)
        assert plan.objective <= plan.bound * (1.0 + 1e-9) + 1e-9
        if deadline_s is None:
            assert plan.gap <= 1e-6


ROUND = st.tuples(st.integers(0, 5), st.sampled_from([None, 0.01, 0.015, 0.02, 0.05, 0.2]))


@pytest.mark.long
@pytest.mark.parametrize("objective", ["total", "concurrent"])
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 16), st.lists(ROUND, min_size=10, max_size=10))
def test_any_network_any_edits_any_deadline(
    objective: str, seed: int, nodes: int, rounds: list[tuple[int, float | None]]
) -> None:
    """A hundred sequences of ten rounds, drawn: nothing is over-committed in any of the thousand plans."""
    rng = np.random.default_rng(seed)
    paths, demands = drawn_case(nodes, seed)
    form = TrafficFormulation(paths, float(rng.uniform(0.5, 4.0)) * demands, objective)
    for kind, deadline_s in rounds:
        edit(form, kind, rng)
        plan = form.plan(deadline_s)
        judge_exactly(form.paths, plan.flows, form.demands, form.capacity)
        assert plan.objective <= plan.bound * (1.0 + 1e-9) + 1e-9
        if deadline_s is None:
            assert plan.gap <= 1e-6
