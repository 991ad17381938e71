"""The program of a round: its rows, its columns, what is priced in, and its optimum beside HiGHS' with all columns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from copter import Settings
from copter_frontends.shards import ShardCluster, ShardFormulation, formulation
from copter_frontends.shards.formulation import PENALTY, even_shares

Floats = NDArray[np.float64]


def cluster_of(holds: list[list[int]], memory: float | list[float] = 9.0, **others: Any) -> ShardCluster:
    """A cluster by the servers that hold each shard."""
    n = others.pop("servers", 1 + max(server for own in holds for server in own))
    table = np.zeros((len(holds), n), dtype=np.bool_)
    for shard, own in enumerate(holds):
        table[shard, own] = True
    size = np.asarray(others.pop("size", np.ones(len(holds))), dtype=np.float64)
    return ShardCluster(size, np.broadcast_to(np.asarray(memory, dtype=np.float64), n).copy(), table, **others)


def optimum(cluster: ShardCluster, load: Floats) -> float:
    """SH2 with all columns, and with those that leave the band or the memory at a price, by HiGHS."""
    d, up = cluster.n_shards, np.flatnonzero(cluster.is_up)
    n = len(up)
    positive = load[load > 0.0]
    price = PENALTY * min(cluster.new_copy.max() / positive.min(), 1e4)
    of_server, of_shard = np.tile(np.eye(n), d), np.repeat(np.eye(d), n, axis=1)
    loads, sizes = of_server * np.repeat(load, n), of_server * np.repeat(cluster.size, n)
    one, none = np.eye(n), np.zeros((n, n))
    rows = np.block([[loads, one, -one, none], [-loads, -one, one, none], [sizes, none, none, -one]])
    room = np.concatenate((np.full(n, 1 + cluster.band), np.full(n, cluster.band - 1), cluster.memory[up]))
    cost = np.concatenate(((cluster.new_copy[:, None] * ~cluster.holds[:, up]).ravel(), np.full(3 * n, price)))
    fits = (cluster.size[:, None] <= cluster.memory[up]) | cluster.holds[:, up]
    most = np.concatenate((np.where(fits.ravel(), np.inf, 0.0), np.full(3 * n, np.inf)))
    whole = np.hstack((of_shard, np.zeros((d, 3 * n))))
    found = linprog(cost, rows, room, whole, np.ones(d), np.column_stack((np.zeros(len(most)), most)))
    return float(found.fun)


def rows_are_right(form: ShardFormulation, cluster: ShardCluster, load: Floats) -> None:
    """Bands and memories less what the constants take; a server that is down serves nothing."""
    there, size = np.zeros(form.n), np.zeros(form.n)
    np.add.at(there, form.fixed_on, form.fixed_share * load[form.fixed])
    np.add.at(size, form.fixed_on, form.fixed_share * cluster.size[form.fixed])
    for server in range(form.n):
        middle, width = (1.0, cluster.band) if cluster.is_up[server] else (0.0, 0.0)
        row = "load", server
        assert form.model.count(row) == pytest.approx(middle + width - there[server], abs=1e-12)
        assert form.model.lower_count(row) == pytest.approx(middle - width - there[server], abs=1e-12)
    for server in form.with_memory:
        left = cluster.memory[server] - size[server]
        assert form.model.count(("memory", server)) == pytest.approx(left, abs=1e-12)
    assert len(set(form.with_memory)) == len(form.with_memory)
    chosen = np.flatnonzero(form.has_choice)
    assert sorted(form.columns) == chosen.tolist()
    assert not np.isin(form.fixed, chosen).any()


# Optima ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loads", "size", "cost", "said"),
    [
        ([2.0, 0.0], [1.0, 1.0], "unit", 20.0 / 2.0 * 1.8),
        ([1.5, 0.5], [1.0, 1.0], "unit", 20.0 / 0.5 * 1.8),
        ([1.5, 0.5], [1.0, 3.0], "size", 20.0 * 3.0 / 0.5 * 1.8),
        ([2.0, 1e-6], [1.0, 1.0], "unit", 20.0 * 1e4 * 1.800001),
        ([0.0, 0.0], [1.0, 1.0], "unit", 20.0 * 1.8),
    ],
)
def test_what_leaves_the_band_has_its_price(loads: list[float], size: list[float], cost: str, said: float) -> None:
    """One server has all, and the other no memory: 0.9 too much here, 0.9 too little there."""
    cluster = cluster_of([[0], [0]], [9.0, 0.0], servers=2, size=size, cost=cost, band=0.1)
    form = ShardFormulation(cluster)
    found = form.solve(cluster, np.array(loads))
    assert found.objective == pytest.approx(said, rel=1e-9)
    assert found.bound <= found.objective * (1.0 + 1e-9)
    assert found.out_of_band == pytest.approx(sum(loads) - 1.1 + 0.9 if sum(loads) else 1.8)
    assert found.passes == 1
    rows_are_right(form, cluster, np.array(loads))


def test_memory_that_is_left_has_the_same_price() -> None:
    """A fifth of another shard must come: 0.15 of load at a copy's 0.2, and 0.2 more memory than there is."""
    cluster = cluster_of([[0], [1], [1]], [1.0, 4.0], band=0.1)
    load = np.array([0.75, 0.75, 0.5])
    form = ShardFormulation(cluster)
    found = form.solve(cluster, load)
    assert found.objective == pytest.approx(0.2 + 20.0 / 0.5 * 0.2)
    assert found.objective == pytest.approx(optimum(cluster, load))
    assert found.bound == pytest.approx(found.objective, rel=1e-5)
    assert found.out_of_band == pytest.approx(0.0, abs=1e-9)
    assert form.with_memory == [0]
    rows_are_right(form, cluster, load)


def test_the_band_is_left_where_memory_is_short() -> None:
    """The large shard fits nowhere else, and one of the small ones does: 0.65 too much, 0.65 too little."""
    cluster = cluster_of([[1], [1], [1]], [1.0, 9.0], size=[5.0, 1.0, 1.0], band=0.1)
    load = np.array([1.5, 0.25, 0.25])
    form = ShardFormulation(cluster)
    found = form.solve(cluster, load)
    assert form.with_memory == [0]
    assert found.objective == pytest.approx(1.0 + 20.0 / 0.25 * 1.3)
    assert found.objective == pytest.approx(optimum(cluster, load))
    assert found.out_of_band == pytest.approx(1.3)
    rows_are_right(form, cluster, load)


def test_a_shard_is_served_once() -> None:
    """The third server lacks 0.1, and its shard could give that, were it served more than once."""
    cluster = cluster_of([[0], [1], [0, 2]], band=0.1)
    found = ShardFormulation(cluster).solve(cluster, np.array([1.1, 1.1, 0.8]))
    assert found.objective == pytest.approx(0.1 / 1.1)
    np.testing.assert_allclose(np.bincount(found.shard, found.share), 1.0)


def test_a_server_that_is_just_full_needs_no_row() -> None:
    cluster = cluster_of([[0], [0], [1], [1]], 2.0)
    form = ShardFormulation(cluster)
    found = form.solve(cluster, np.full(4, 0.5))
    assert (found.objective, found.passes, form.with_memory) == (0.0, 1, [])


def test_constants_take_memory() -> None:
    """The light shard of size 3 stays where it is, and of the second half the room is too small."""
    cluster = cluster_of([[0], [1], [1]], [4.0, 9.0], size=[3.0, 2.0, 2.0], band=0.1)
    load = np.array([0.3, 1.0, 0.7])
    form = ShardFormulation(cluster)
    found = form.solve(cluster, load)
    assert form.with_memory == [0]
    assert found.objective == pytest.approx(optimum(cluster, load))
    assert found.bound == pytest.approx(found.objective, rel=1e-5)
    rows_are_right(form, cluster, load)


def drawn(rng: np.random.Generator, d: int, n: int, seed: int) -> tuple[ShardCluster, Floats]:
    """A cluster with copies anywhere, perhaps a server down, and memory that is short in two of three."""
    size = rng.choice([1.0, 2.0, 3.0], d)
    holds = rng.random((d, n)) < 0.2
    up = np.ones(n, dtype=np.bool_)
    up[0] = seed % 2 == 0
    holds[:, ~up] = False
    holds[np.arange(d), rng.choice(np.flatnonzero(up), d)] = True
    memory = np.full(n, np.ceil(size.sum() / up.sum() * (1.05, 1.3, 9.0)[seed % 3]) + 3.0)
    load = rng.pareto(1.5, d) + 0.05
    cost = ("unit", "size")[seed % 2]
    return ShardCluster(size, memory, holds, 0.1, 1, cost, up), load * up.sum() / load.sum()


@pytest.mark.parametrize("seed", range(12))
def test_rounds_in_one_session_have_highs_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(12, 26)), int(rng.integers(3, 6))
    form = None
    for _ in range(3):
        cluster, load = drawn(rng, d, n, seed)
        form = form or ShardFormulation(cluster)
        found = form.solve(cluster, load)
        best = optimum(cluster, load)
        assert found.objective == pytest.approx(best, rel=2e-6, abs=2e-6)
        assert best - 4e-6 * (1.0 + best) <= found.bound <= best + 1e-6 * (1.0 + best)
        assert found.passes < 20
        np.testing.assert_allclose(np.bincount(found.shard, found.share, d), 1.0, atol=1e-7)
        assert cluster.is_up[found.server].all()
        rows_are_right(form, cluster, load)


def cheap_ones_hidden() -> tuple[ShardCluster, Floats]:
    """The eight heaviest of a full server cost ten times as much as its others, which are no first columns."""
    size = np.array([10.0] * 8 + [1.0] * 4)
    load = np.array([1.01] * 8 + [1.0] * 4) * 2.0 / 12.08
    return cluster_of([[0]] * 12, 99.0, servers=2, size=size, cost="size", band=0.1), load


def test_columns_that_are_missing_are_priced_in() -> None:
    cluster, load = cheap_ones_hidden()
    form = ShardFormulation(cluster)
    found = form.solve(cluster, load)
    best = optimum(cluster, load)
    assert found.passes > 1
    assert found.objective == pytest.approx(best)
    assert found.bound == pytest.approx(best, rel=1e-5)
    rows_are_right(form, cluster, load)


def test_a_round_with_the_same_columns_keeps_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads and copies are other ones; a fresh session has the same program."""
    before = cluster_of([[0], [0], [1]], band=0.1)
    form = ShardFormulation(before)
    form.solve(before, np.array([1.3, 0.3, 0.4]))
    kept = {shard: servers.tolist() for shard, servers in form.columns.items()}
    gone: list[object] = []
    remove = form.model.remove_request
    monkeypatch.setattr(form.model, "remove_request", lambda request: (gone.append(request), remove(request)))
    after = cluster_of([[0, 1], [0], [1]], band=0.1)
    load = np.array([1.2, 0.5, 0.3])
    found = form.solve(after, load)
    assert gone == [formulation.SOFT]
    assert {shard: form.columns[shard].tolist() for shard in (0, 1)} == {shard: kept[shard] for shard in (0, 1)}
    fresh = ShardFormulation(after)
    again = fresh.solve(after, load)
    assert found.objective == pytest.approx(again.objective, abs=1e-9)
    held, built = form.model.to_linear_program(), fresh.model.to_linear_program()
    np.testing.assert_allclose(np.sort(held.c), np.sort(built.c))
    np.testing.assert_allclose(np.sort(held.A.data), np.sort(built.A.data))
    np.testing.assert_allclose(held.row_upper, built.row_upper)


# Which shards have a choice -------------------------------------------------------------------------------------------


def test_light_shards_and_those_with_one_server_are_constants() -> None:
    """Three servers: of the three heaviest shards two have two copies; the fourth has two, but is light."""
    cluster = cluster_of([[0], [0, 1], [1, 2], [0, 2], [2]], band=0.9)
    load = np.array([1.0, 0.8, 0.7, 0.3, 0.2])
    form = ShardFormulation(cluster)
    found = form.solve(cluster, load)
    assert {shard: servers.tolist() for shard, servers in form.columns.items()} == {1: [0, 1], 2: [1, 2]}
    assert sorted(zip(form.fixed.tolist(), form.fixed_on.tolist(), form.fixed_share.tolist(), strict=True)) == [
        (0, 0, 1.0), (3, 0, 0.5), (3, 2, 0.5), (4, 2, 1.0)]  # fmt: skip
    assert (found.objective, found.passes) == (0.0, 1)
    rows_are_right(form, cluster, load)
    assert form.model.is_integer(1)  # so that the optimum is a vertex, which splits few shards
    lighter = np.array([0.2, 0.3, 0.8, 1.0, 0.7])
    form.solve(cluster, lighter)
    assert {shard: servers.tolist() for shard, servers in form.columns.items()} == {2: [1, 2], 3: [0, 2]}
    rows_are_right(form, cluster, lighter)


def test_shares_that_stand_are_those_given_or_even() -> None:
    cluster = cluster_of([[0], [0, 1], [0, 1, 2], [2]], band=0.9)
    shard, server, share = even_shares(cluster)
    assert shard.tolist() == [0, 1, 1, 2, 2, 2, 3]
    assert server.tolist() == [0, 0, 1, 0, 1, 2, 2]
    np.testing.assert_allclose(share, [1.0, 0.5, 0.5, 1 / 3, 1 / 3, 1 / 3, 1.0])
    form = ShardFormulation(cluster)
    load = np.array([1.0, 0.1, 1.0, 0.9])
    given = shard, server, np.array([1.0, 0.8, 0.2, 0.4, 0.3, 0.3, 1.0])
    found = form.solve(cluster, load, given)
    light = found.shard == 1
    assert found.share[light].tolist() == [0.8, 0.2]


def test_settings_are_those_of_the_session() -> None:
    cluster, settings = cluster_of([[0], [1]]), Settings(interior_rows=7)
    assert ShardFormulation(cluster, settings).session.settings is settings


# Pricing --------------------------------------------------------------------------------------------------------------


def begun(cluster: ShardCluster, load: Floats, *also: tuple[int, int]) -> tuple[ShardFormulation, NDArray[np.bool_]]:
    """A program with the copies that there are, and some columns more."""
    form, allowed = ShardFormulation(cluster), cluster.holds.copy()
    for pair in also:
        allowed[pair] = True
    form._begin(cluster, load, allowed, even_shares(cluster))
    return form, allowed


def test_the_eight_best_servers_that_are_up_and_have_room_are_priced_in() -> None:
    up = np.ones(15, dtype=np.bool_)
    up[12] = False
    memory = np.full(15, 9.0)
    memory[13], memory[10] = 0.5, 1.0
    cluster = cluster_of([[0]], memory, servers=15, up=up)
    form, allowed = begun(cluster, np.ones(1), (0, 1))
    price = np.array([0.0, 0.5, *(1.0 + 0.1 * k for k in range(1, 10)), 0.0, 8.0, 8.0, 0.0])
    assert form._price_in(cluster, np.ones(1), allowed, price, np.zeros(15))
    assert np.flatnonzero(allowed[0]).tolist() == [0, 1, 3, 4, 5, 6, 7, 8, 9, 10]
    assert form.columns[0].tolist() == np.flatnonzero(allowed[0]).tolist()
    rows_are_right(form, cluster, np.ones(1))


def test_only_what_is_better_is_priced_in() -> None:
    cluster = cluster_of([[0]], servers=5)
    form, allowed = begun(cluster, np.ones(1), (0, 1))
    price = np.array([0.0, 0.5, 1.5, 1.0, 0.5])  # server 3 costs what the first does
    assert form._price_in(cluster, np.ones(1), allowed, price, np.zeros(5))
    assert np.flatnonzero(allowed[0]).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("gain", "added"), [(5e-7, True), (1e-9, False)])
def test_gains_that_count(gain: float, added: bool) -> None:
    cluster = cluster_of([[0], [1]])
    form, allowed = begun(cluster, np.ones(2))
    assert form._price_in(cluster, np.ones(2), allowed, np.array([0.0, 1.0 + gain]), np.zeros(2)) is added
    assert bool(allowed[0, 1]) is added
    assert sorted(form.columns) == [0] * added
    rows_are_right(form, cluster, np.ones(2))


def test_constants_are_priced_as_they_stand() -> None:
    """The light shard on both servers is better on the second alone; where the others are is best for them."""
    cluster = cluster_of([[0], [1], [0, 1]])
    load = np.array([2.0, 2.0, 1.0])
    form, allowed = begun(cluster, load)
    assert form._price_in(cluster, load, allowed, np.array([0.0, 0.2]), np.zeros(2))
    assert {shard: servers.tolist() for shard, servers in form.columns.items()} == {2: [0, 1]}
    rows_are_right(form, cluster, load)
    np.testing.assert_array_equal(allowed, cluster.holds)
    form, allowed = begun(cluster, load)
    assert not form._price_in(cluster, load, allowed, np.zeros(2), np.zeros(2))
    assert not form.columns


def test_shards_with_a_choice_and_constants_are_priced_in_together() -> None:
    cluster = cluster_of([[0], [0], [1]], servers=3)
    form, allowed = begun(cluster, np.ones(3), (0, 1))
    assert sorted(form.columns) == [0]
    assert form._price_in(cluster, np.ones(3), allowed, np.array([0.0, 0.0, 1.5]), np.zeros(3))
    assert {shard: servers.tolist() for shard, servers in form.columns.items()} == {0: [0, 1, 2], 1: [0, 2], 2: [1, 2]}
    rows_are_right(form, cluster, np.ones(3))


def test_the_shards_that_gain_most_are_priced_in_first() -> None:
    cluster = cluster_of([[0]] * 300, 999.0, servers=2)
    load = 1.0 + np.random.default_rng(0).permutation(300) / 300.0
    form, allowed = begun(cluster, load)
    assert form._price_in(cluster, load, allowed, np.array([0.0, 2.0]), np.zeros(2))
    assert np.flatnonzero(allowed[:, 1]).tolist() == np.sort(np.argsort(-load)[:256]).tolist()


# Passes ---------------------------------------------------------------------------------------------------------------


class Clocked:
    """A formulation on a clock that only its steps move: building 1, a solve 10, pricing 100."""

    def __init__(self, form: ShardFormulation, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.lefts, self.solutions = 5000.0, [], []  # type: ignore[var-annotated]
        monkeypatch.setattr(formulation, "time", SimpleNamespace(perf_counter=lambda: self.now))
        for owner, name, takes in ((form, "_begin", 1.0), (form.session, "solve", 10.0), (form, "_price_in", 100.0)):
            monkeypatch.setattr(owner, name, self.step(getattr(owner, name), takes))

    def step(self, does: Any, takes: float) -> Any:
        def stepped(*args: Any, **named: Any) -> Any:
            if "deadline_s" in named:
                self.lefts.append(named.pop("deadline_s"))
            found = does(*args, **named)
            self.now += takes
            if hasattr(found, "iterations"):
                self.solutions.append(found)
            return found

        return stepped


def test_time_is_that_of_edits_and_of_solves(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, load = cheap_ones_hidden()
    form = ShardFormulation(cluster)
    clock = Clocked(form, monkeypatch)
    found = form.solve(cluster, load)
    assert found.passes == len(clock.solutions) >= 2
    assert found.edit_s == 1.0 + 100.0 * (found.passes - 1)
    assert found.solve_s == pytest.approx(sum(each.solve_time_s for each in clock.solutions))
    assert found.iterations == sum(each.iterations for each in clock.solutions) > 0
    assert clock.lefts == [None] * found.passes


@pytest.mark.parametrize(
    ("deadline_s", "lefts"), [(1000.0, [999.0, 889.0]), (50.0, [49.0, 1e-3]), (5.0, [4.0]), (0.5, [1e-3])]
)
def test_solves_have_what_is_left_of_the_deadline(
    monkeypatch: pytest.MonkeyPatch, deadline_s: float, lefts: list[float]
) -> None:
    cluster, load = cheap_ones_hidden()
    form = ShardFormulation(cluster)
    clock = Clocked(form, monkeypatch)
    found = form.solve(cluster, load, deadline_s=deadline_s)
    assert clock.lefts[:2] == lefts
    if deadline_s < 1000.0:
        assert found.passes == len(lefts)
    else:
        assert found.objective == pytest.approx(optimum(cluster, load))


@pytest.mark.parametrize(("short", "priced"), [(1.8e-5, 0), (1.95e-5, 1)])
def test_a_bound_that_is_close_enough_ends_the_passes(
    monkeypatch: pytest.MonkeyPatch, short: float, priced: int
) -> None:
    """The optimum is 18, and enough is a millionth of 1 + 18."""
    cluster = cluster_of([[0]], [9.0, 0.0], servers=2, band=0.1)
    form, calls = ShardFormulation(cluster), []
    monkeypatch.setattr(formulation, "price_bound", lambda *_: (18.0 - short, np.zeros(1)))
    monkeypatch.setattr(form, "_price_in", lambda *_: bool(calls.append(1)))
    assert form.solve(cluster, np.array([2.0])).passes == 1
    assert len(calls) == priced


def test_the_bound_is_the_best_of_all_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of([[0]], [9.0, 0.0], servers=2, band=0.1)
    form, bounds, added = ShardFormulation(cluster), iter([17.0, 16.0]), iter([True, False])
    monkeypatch.setattr(formulation, "price_bound", lambda *_: (next(bounds), np.zeros(1)))
    monkeypatch.setattr(form, "_price_in", lambda *_: next(added))
    found = form.solve(cluster, np.array([2.0]))
    assert (found.bound, found.passes) == (17.0, 2)


@pytest.mark.parametrize(("more", "passes"), [(True, 20), (None, 1)])
def test_passes_end_when_there_is_nothing_to_add_or_after_twenty(
    monkeypatch: pytest.MonkeyPatch, more: bool | None, passes: int
) -> None:
    cluster = cluster_of([[0]], [9.0, 0.0], servers=2, band=0.1)
    form = ShardFormulation(cluster)
    monkeypatch.setattr(formulation, "price_bound", lambda *_: (-np.inf, np.zeros(1)))
    if more is not None:
        monkeypatch.setattr(form, "_price_in", lambda *_: more)
    assert form.solve(cluster, np.array([2.0])).passes == passes
