"""Plans: known optima, every edit in place equals a fresh build, exact feasibility, deadlines, bad input."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic_cases import drawn, drawn_case, judge_exactly, matrix_of, needs_data, optimum_by_scipy, small

from copter_frontends.traffic import (
    OBJECTIVES,
    STREAMS,
    DemandError,
    FlowPlan,
    Network,
    NetworkError,
    PathError,
    TrafficFormulation,
    feasible_flows,
    make_paths,
    make_scheme,
    max_min_fair,
    router_splits,
    simulate_traffic,
)
from copter_frontends.traffic.errors import UnknownPairError
from copter_frontends.traffic.generated import random_network
from copter_frontends.traffic.plan import is_stranded
from copter_frontends.traffic.published import instance
from copter_frontends.traffic.shim import KEEP, exact_sums

LINEAR = tuple(name for name in OBJECTIVES if name != "proportional")

SCHEMES = ("copter", "lp-all", "lp-top", "pinning", "pop-4", "dede", "greedy")


def judged(form: TrafficFormulation, plan: FlowPlan, tolerance: float = 1e-6) -> None:
    """Feasible exactly, worth what it says, optimal by scipy, within its own bound."""
    if form.objective != "utilisation":
        judge_exactly(form.paths, plan.flows, form.demands, form.capacity)
    wanted = np.where(form.stranded, 0.0, form.demands) if form.objective != "total" else form.demands
    alive = form.paths
    if (form.capacity <= 0.0).any() and form.objective != "total":
        kept = [
            [alive.nodes_of(p) for p in range(alive.first[at], alive.first[at + 1])
             if (form.capacity[alive.arcs_of(p)] > 0.0).all()] for at in range(alive.n_pairs)
        ]  # fmt: skip
        for at, own in enumerate(kept):
            alive = alive.with_paths(at, own)
    best = optimum_by_scipy(alive, wanted, form.capacity, form.objective)
    assert plan.objective == pytest.approx(best, rel=tolerance, abs=1e-9)
    better = plan.bound - plan.objective if form.objective != "utilisation" else plan.objective - plan.bound
    assert better >= -1e-9 * (1.0 + abs(plan.objective))
    assert plan.status == "optimal"


def test_a_tiny_network_by_hand() -> None:
    paths = make_paths(small(), [[0, 2], [1, 2], [0, 6]])
    plan = TrafficFormulation(paths, [10.0, 3.0, 2.0]).plan()
    # 0 has two links of 4 each: 8 leave it. 1 -> 2 has 3 of its own way and a detour.
    assert plan.total == pytest.approx(11.0)
    share = TrafficFormulation(paths, [10.0, 3.0, 2.0], "concurrent").plan()
    assert share.objective == pytest.approx(8.0 / 12.0)
    used = TrafficFormulation(paths, [10.0, 3.0, 2.0], "utilisation").plan()
    assert used.objective == pytest.approx(12.0 / 8.0)
    np.testing.assert_allclose(used.served, [10.0, 3.0, 2.0])


@pytest.mark.parametrize("objective", LINEAR)
@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 5), min_size=3, max_size=7))
def test_rounds_of_edits_equal_fresh_builds_and_scipy(objective: str, seed: int, kinds: list[int]) -> None:
    rng = np.random.default_rng(seed)
    paths, demands = drawn_case(int(rng.integers(4, 9)), seed)
    form = TrafficFormulation(paths, demands, objective)
    judged(form, form.plan())
    for kind in kinds:
        edit(form, kind, rng)
        plan = form.plan()
        judged(form, plan)
        fresh = TrafficFormulation(form.paths, form.demands, objective)
        fresh.set_capacity(np.arange(len(form.capacity)), form.nominal)
        for arc in form.down:
            fresh.fail_link(int(paths.network.source[arc]), int(paths.network.target[arc]))
        assert fresh.plan().objective == pytest.approx(plan.objective, rel=1e-6, abs=1e-9)
        held, built = form.model.to_linear_program(), fresh.model.to_linear_program()
        assert held.shape == built.shape
        assert held.A.nnz == built.A.nnz


def edit(form: TrafficFormulation, kind: int, rng: np.random.Generator) -> None:
    network = form.paths.network
    u, v = (int(end[rng.integers(network.n_arcs)]) for end in (network.source, network.target))
    link = int(rng.integers(network.n_arcs))
    ends = int(network.source[link]), int(network.target[link])
    if kind == 0:
        form.set_demands(form.demands * rng.uniform(0.9, 1.1, len(form.demands)))
    elif kind == 1:
        form.set_demands(np.where(rng.random(len(form.demands)) < 0.5, 0.0, rng.uniform(0, 5, len(form.demands))))
    elif kind == 2:
        form.fail_link(*ends)
    elif kind == 3:
        for arc in list(form.down):
            form.repair_link(int(network.source[arc]), int(network.target[arc]))
    elif kind == 4:
        form.set_capacity([link], [float(rng.integers(0, 9))])
    elif u != v:
        at = form.paths.pair(u, v)
        own = [form.paths.nodes_of(path) for path in range(form.paths.first[at], form.paths.first[at + 1])]
        longer = make_paths(network, [[u, v]], "shortest", 5)
        more = [nodes for nodes in (longer.nodes_of(path) for path in range(longer.n_paths)) if nodes not in own]
        if more:
            form.add_path(u, v, more[0])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 100_000), st.floats(0.1, 1e6), st.booleans())
def test_the_shim_is_exact_for_any_flows(seed: int, size: float, refill: bool) -> None:
    rng = np.random.default_rng(seed)
    paths, demands = drawn_case(int(rng.integers(3, 10)), seed)
    capacity = paths.network.capacity * rng.choice([0.0, 1.0, 1.0 / 3.0, size], paths.network.n_arcs)
    flows = rng.normal(0.3, 1.0, paths.n_paths) * size
    flows[rng.random(paths.n_paths) < 0.05] = np.nan
    found = feasible_flows(paths, flows, demands, capacity, refill)
    judge_exactly(paths, found, demands, capacity)
    again = feasible_flows(paths, found, demands, capacity, refill=False)
    np.testing.assert_array_equal(again, found)
    fitting = np.clip(feasible_flows(paths, np.zeros(paths.n_paths), demands, capacity), 0.0, None) * KEEP
    kept = feasible_flows(paths, fitting, demands, capacity, refill=False)
    least = 1e-12 * min(demands.max(initial=0.0), capacity.max(initial=0.0))
    np.testing.assert_allclose(kept, np.where(fitting > least, fitting, 0.0), rtol=1e-12)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 200))
def test_router_splits_are_whole_and_feasible(seed: int, buckets: int) -> None:
    paths, demands = drawn_case(7, seed)
    plan = TrafficFormulation(paths, demands).plan()
    found = router_splits(paths, plan.flows, paths.network.capacity, buckets)
    judge_exactly(paths, found.flows, demands, paths.network.capacity)
    sums = np.bincount(paths.pair_of, found.weight, paths.n_pairs)
    np.testing.assert_array_equal(sums, np.where(plan.served > 0.0, buckets, 0))
    if buckets >= 64:
        assert found.flows.sum() >= 0.9 * plan.total


def fair_by_scipy(paths, demands, capacity, weight):
    """Max-min fair shares by raising all, and asking of each pair whether it could have more."""
    from scipy.optimize import linprog

    n, m, k = paths.n_paths, paths.network.n_arcs, paths.n_pairs
    over, of = np.zeros((m, n)), np.zeros((k, n))
    np.add.at(over, (paths.arc, paths.path_of_entry), 1.0)
    of[paths.pair_of, np.arange(n)] = 1.0
    fixed, rising = np.zeros(k), demands > 0.0
    while rising.any():
        rows = np.vstack((np.hstack((over, np.zeros((m, 1)))), np.hstack((of, np.zeros((k, 1)))),
                          np.hstack((-of, np.where(rising, weight, 0.0)[:, None]))))  # fmt: skip
        right = np.concatenate((capacity, demands, np.where(rising, 0.0, -fixed + 1e-10)))
        most = float((demands[rising] / weight[rising]).min())
        level = -linprog(-np.eye(n + 1)[n], rows, right, bounds=[(0, None)] * n + [(0, most)]).fun
        floor = np.where(rising, level * weight, fixed)
        done = np.zeros(k, dtype=bool)
        for at in np.flatnonzero(rising):
            most_of = -linprog(-of[at], np.vstack((over, of, -of)),
                               np.concatenate((capacity, demands, -floor * (1 - 1e-9) + 1e-10))).fun  # fmt: skip
            done[at] = most_of <= floor[at] + 1e-6
        fixed[done], rising = floor[done], rising & ~done
        assert done.any()
    return fixed


@pytest.mark.parametrize("weight", ["demand", "equal"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_max_min_fair_flows_are_those_of_scipy(seed: int, weight: str) -> None:
    paths, demands = drawn_case(5, seed)
    demands = 4.0 * demands
    found = max_min_fair(paths, demands, weight=weight)
    judge_exactly(paths, found.flows, demands, paths.network.capacity)
    weights = demands if weight == "demand" else np.ones(len(demands))
    best = fair_by_scipy(paths, demands, paths.network.capacity, weights)
    np.testing.assert_allclose(paths.served(found.flows), best, atol=1e-5)
    assert found.settled[demands > 0.0].all()
    assert (np.diff(found.levels) >= -1e-9).all()


def test_pairs_that_can_rise_go_on_rising_where_prices_are_degenerate() -> None:
    """A search by the largest utilisation settled pairs with the bottleneck's that could rise by a third."""
    network = random_network(20, 1)
    paths = make_paths(network)
    demands = np.random.default_rng(1).uniform(0.0, 1.0, paths.n_pairs) ** 2
    demands *= 80.0 * float(network.capacity.mean()) / paths.n_pairs
    found = max_min_fair(paths, demands, weight="equal")
    judge_exactly(paths, found.flows, demands, network.capacity)
    assert np.sort(found.share)[313] == pytest.approx(117.858971, rel=1e-6)  # 115.922307 before
    assert found.levels[2] == pytest.approx(142.577616, rel=1e-6)


# Schemes and their protocol -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("stream", STREAMS)
def test_every_scheme_keeps_the_protocol_in_every_stream(name: str, stream: str) -> None:
    pytest.importorskip("highspy")
    network = drawn(8, 4)
    matrix = 3.0 * matrix_of(network, 4)
    paths = make_paths(network)
    scheme = make_scheme(name, paths, paths.demands_of(matrix))
    capacity, best = network.capacity.copy(), make_scheme("copter", paths, paths.demands_of(matrix))
    for event in STREAMS[stream](network, matrix, 4, 1):
        capacity[event.arcs] = event.capacity
        demands = paths.demands_of(event.matrix)
        given = demands.copy()
        for each in (scheme, best):
            if len(event.arcs):
                each.set_capacity(event.arcs, event.capacity)
            each.set_demands(demands)
        plan, most = scheme.plan(), best.plan()
        np.testing.assert_array_equal(demands, given)
        judge_exactly(paths, plan.flows, demands, capacity)
        assert plan.total <= most.total * (1.0 + 1e-6)
        assert plan.total > 0.3 * most.total
        if name == "lp-all":
            assert plan.total == pytest.approx(most.total, rel=1e-6)


def test_the_tracking_rules_serve_late_rounds_by_old_flows() -> None:
    network = drawn(8, 4)
    matrix = 3.0 * matrix_of(network, 4)
    paths = make_paths(network)

    class Slow(TrafficFormulation):
        def plan(self, deadline_s=None):
            found = super().plan(deadline_s)
            found.seconds["solve"] = 250.0
            return found

    runs = [
        simulate_traffic("x", kind(paths, paths.demands_of(matrix)), STREAMS["tracking"](network, matrix, 9, 1),
                         interval_s=100.0, carried=0.5) for kind in (TrafficFormulation, Slow)
    ]  # fmt: skip
    assert [each.stale for each in runs[1].rounds] == [False, True, True] * 3
    assert not any(each.stale for each in runs[0].rounds)
    assert runs[1].summary()["satisfied"] < runs[0].summary()["satisfied"] <= 1.0
    assert runs[0].rounds[1].demand > 0.0


@pytest.mark.parametrize("deadline_s", [0.01, 0.03, 0.1, 1.0])
def test_plans_are_feasible_at_every_deadline(deadline_s: float) -> None:
    paths, demands = drawn_case(24, 7)
    form = TrafficFormulation(paths, 2.0 * demands)
    rng = np.random.default_rng(1)
    for _ in range(4):
        plan = form.plan(deadline_s)
        judge_exactly(paths, plan.flows, form.demands, form.capacity)
        assert plan.objective <= plan.bound * (1.0 + 1e-9)
        filled = feasible_flows(paths, np.zeros(paths.n_paths), form.demands, form.capacity)
        assert plan.total >= 0.8 * filled.sum()
        form.set_demands(form.demands * rng.uniform(0.5, 1.5, len(demands)))
        cut = int(rng.integers(paths.network.n_arcs))
        form.fail_link(int(paths.network.source[cut]), int(paths.network.target[cut]))


@pytest.mark.parametrize("objective", ["concurrent", "utilisation"])
def test_a_new_path_over_a_link_without_capacity_is_shut(objective: str) -> None:
    """And what rounding leaves on it does not count as a link that is over-used without end."""
    paths = make_paths(small(), [[0, 2], [1, 2]], "shortest", 1)
    form = TrafficFormulation(paths, [2.0, 3.0], objective)
    network = paths.network
    form.set_capacity(network.link(4, 5), 0.0)
    form.add_path(1, 2, [1, 4, 5, 2])
    lp = form.model.to_linear_program()
    assert (lp.col_upper == 0.0).sum() == 1
    form.add_path(0, 2, [0, 3, 2])
    assert (form.model.to_linear_program().col_upper == 0.0).sum() == 1
    judged(form, form.plan())
    last = int(form.paths.first[2]) - 1
    assert (form.capacity[form.paths.arcs_of(last)] == 0.0).any()
    flows = form.plan().flows.copy()
    flows[last] = 1e-17
    assert not form._shim(flows)[last]
    assert form._shim(flows).sum() == pytest.approx(form.plan().total)
    form.set_capacity(network.link(4, 5), 4.0)
    assert not (form.model.to_linear_program().col_upper == 0.0).any()
    judged(form, form.plan())


def test_edits_are_part_of_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """What edits took is not there for the solve: the last flows, made feasible, are the plan."""
    paths, demands = drawn_case(12, 7)
    form = TrafficFormulation(paths, 2.0 * demands)
    form.plan()
    form.fail_link(int(paths.network.source[0]), int(paths.network.target[0]))
    form.edit_s = 2.0
    monkeypatch.setattr(form.session, "solve", None)
    plan = form.plan(1.0)
    judge_exactly(paths, plan.flows, form.demands, form.capacity)
    assert plan.status in ("kept_previous", "optimal")
    assert plan.seconds["edit"] == 2.0
    assert plan.objective <= plan.bound * (1.0 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_sums_of_pairs_and_arcs_are_exact_to_two_roundings(seed: int) -> None:
    paths, _ = drawn_case(8, seed % 5)
    rng = np.random.default_rng(seed)
    flows = 10.0 ** rng.uniform(-12.0, 12.0, paths.n_paths) * (rng.random(paths.n_paths) < 0.7)
    served, load = exact_sums(paths, flows)
    pairs, arcs = [Fraction(0)] * paths.n_pairs, [Fraction(0)] * paths.network.n_arcs
    for path, flow in enumerate(flows.tolist()):
        pairs[paths.pair_of[path]] += Fraction(flow)
        for arc in paths.arcs_of(path).tolist():
            arcs[arc] += Fraction(flow)
    for found, exact in zip((*served.tolist(), *load.tolist()), (*pairs, *arcs), strict=True):
        assert abs(Fraction(found) - exact) <= abs(exact) * Fraction(2) ** -52


def test_a_pair_is_stranded_when_all_its_paths_are_cut() -> None:
    paths, _ = drawn_case(10, 3)
    rng = np.random.default_rng(2)
    for _ in range(20):
        capacity = np.where(rng.random(paths.network.n_arcs) < 0.3, 0.0, 1.0)
        alive = [
            any((capacity[paths.arcs_of(p)] > 0.0).all() for p in range(paths.first[at], paths.first[at + 1]))
            for at in range(paths.n_pairs)
        ]
        np.testing.assert_array_equal(is_stranded(paths, capacity), ~np.array(alive))


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", LINEAR)
@pytest.mark.parametrize("name", ["copter", "greedy"])
def test_bad_demands_and_capacities_are_one_error_and_change_nothing(objective: str, name: str) -> None:
    paths, demands = drawn_case(6, 0)
    objective = "total" if name == "greedy" else objective
    scheme = make_scheme(name, paths, demands, objective)
    before = scheme.plan()
    for value in (np.nan, -1.0, np.inf, 1e300):
        wrong = demands.copy()
        wrong[3] = value
        with pytest.raises(DemandError, match="'n0' -> 'n4'"):
            scheme.set_demands(wrong)
        with pytest.raises(NetworkError, match="capacity"):
            scheme.set_capacity(np.array([0, 1]), np.array([5.0, value]))
    with pytest.raises(DemandError, match="shape"):
        scheme.set_demands(demands[1:])
    with pytest.raises(UnknownPairError, match="no arc 999"):
        scheme.set_capacity(np.array([999]), np.array([1.0]))
    after = scheme.plan()
    assert after.objective == pytest.approx(before.objective, rel=1e-9)


def test_unknown_pairs_links_and_paths_are_refused() -> None:
    paths, demands = drawn_case(6, 0)
    form = TrafficFormulation(paths, demands)
    version = form.model.version
    for wrong, says in (
        (lambda: form.set_demand("n0", "n9", 1.0), "no node 'n9'"),
        (lambda: form.set_demand(2, 2, 1.0), "not among"),
        (lambda: form.fail_link(0, 77), "no node 77"),
        (lambda: form.set_paths("n0", "n1", [["n0"]]), "from the one node"),
        (lambda: make_scheme("best", paths, demands), "unknown scheme 'best'"),
        (lambda: make_scheme("greedy", paths, demands, "concurrent"), "total flow only"),
        (lambda: router_splits(paths, np.zeros(paths.n_paths), paths.network.capacity, 0), "0 buckets"),
        (lambda: max_min_fair(paths, demands, weight="x"), "unknown weight"),
        (lambda: TrafficFormulation(paths, demands, "fastest"), "unknown objective"),
        (lambda: form.set_capacity([0, 0], [1.0, 1.0]), "given twice"),
    ):
        with pytest.raises((DemandError, NetworkError, UnknownPairError, PathError), match=says):
            wrong()
    assert form.model.version == version


@pytest.mark.parametrize("objective", LINEAR)
def test_odd_but_sound_cases(objective: str) -> None:
    paths, demands = drawn_case(6, 0)
    form = TrafficFormulation(paths, np.zeros(len(demands)), objective)
    plan = form.plan()
    assert not plan.flows.any()
    assert plan.status == "optimal"
    assert plan.objective == {"total": 0.0, "concurrent": 1.0, "utilisation": 0.0}[objective]
    form.set_demands(demands)
    network = paths.network
    for arc in np.flatnonzero((network.source == 0) | (network.target == 0)).tolist():  # node 0 is cut off
        form.fail_link(int(network.source[arc]), int(network.target[arc]))
    plan = form.plan()
    lost = (demands > 0.0) & (paths.pairs == 0).any(axis=1)
    np.testing.assert_array_equal(plan.stranded, np.flatnonzero(lost))
    assert not plan.served[lost].any()
    judged(form, plan)
    form.set_capacity(np.arange(network.n_arcs), 0.0)
    plan = form.plan()
    assert not plan.flows.any()
    assert len(plan.stranded) == (demands > 0.0).sum()


def test_a_disconnected_pair_is_stranded_and_the_rest_is_served() -> None:
    network = Network.from_links(list("abcd"), [(0, 1, 5.0), (2, 3, 5.0)])
    paths = make_paths(network, [[0, 1], [0, 3], [2, 3]])
    for objective, best in (("total", 5.0), ("concurrent", 1.0), ("utilisation", 0.6)):
        plan = TrafficFormulation(paths, [2.0, 9.0, 3.0], objective).plan()
        assert plan.objective == pytest.approx(best)
        assert plan.stranded.tolist() == [1]
    assert max_min_fair(paths, np.array([2.0, 9.0, 3.0])).share.tolist() == pytest.approx([1.0, 0.0, 1.0])


def test_huge_and_tiny_demands_beside_each_other() -> None:
    paths, demands = drawn_case(6, 1)
    form = TrafficFormulation(paths, np.where(np.arange(len(demands)) % 2, 1e12, 1e-6))
    plan = form.plan()
    judge_exactly(paths, plan.flows, form.demands, form.capacity)
    assert plan.total == pytest.approx(optimum_by_scipy(paths, form.demands, form.capacity, "total"), rel=1e-6)


# Published optima -----------------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(("objective", "topology", "seed"), [
    ("total", "GtsCe", 1321948195), ("total", "UsCarrier", 581796794), ("concurrent", "GtsCe", 1321948195),
])  # fmt: skip
def test_published_optima(objective: str, topology: str, seed: int) -> None:
    one = instance(topology, seed, objective)
    matrix = one.demands()
    paths = make_paths(one.network(), np.argwhere(matrix > 0.0))
    plan = TrafficFormulation(paths, paths.demands_of(matrix), objective).plan()
    assert plan.objective == pytest.approx(one.optimum, rel=1e-5)
    assert plan.gap <= 1e-6
