"""Hops' rows, columns and the steps of its shim, each against a slow twin (docs/papers/hops.md, HP15 to HP27)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hops_instances import RandomSpeeds, small_groups, small_wishes

from copter import Settings
from copter_frontends.policies.hops import HopsPolicy, RequirementSet, shim
from copter_frontends.policies.hops.draft import Draft, Placed
from copter_frontends.policies.hops.formulation import GroupFormulation, Wish, telling_sizes
from copter_frontends.policies.hops.offers import PACKED, OfferRules
from copter_frontends.policies.hops.server_groups import ServerGroups
from copter_frontends.policies.hops.shim import HopsShim, _best_idle, _grow, _growths, fill, place_support, swap
from copter_frontends.vocabulary import Cluster, Job

COUNTS = {"k": (3, 4), "long": (2, 8)}


class Given:
    """A relaxation's solution that is given: {job: {column: share}}."""

    def __init__(self, shares: Mapping[str, Mapping[int, float]]) -> None:
        self.shares = shares

    def by_column(self) -> tuple[list[Hashable], Any, Any, Any]:
        every = [(at, column, x) for at, each in enumerate(self.shares.values()) for column, x in each.items()]
        at, column, x = (np.array([each[k] for each in every], dtype=kind) for k, kind in enumerate((int, int, float)))
        return list(self.shares), at, column, x


def instance(seed: int, jobs: int = 12) -> tuple[ServerGroups, dict[str, Wish], Draft]:
    """Groups of servers, some of whose GPUs are pinned, jobs, and a draft without them."""
    speeds = RandomSpeeds(seed, slow_server=0.8)
    groups = small_groups(speeds, COUNTS)
    wishes = small_wishes(jobs, groups, speeds, seed)
    draft = Draft(groups, groups.size, {}, lambda *_: 1.0, 0.0)
    for server, gpus in enumerate(np.random.default_rng(seed).integers(0, 3, len(groups.size)).tolist()):
        if gpus:
            draft.hold(f"pinned-{server}", ((server, gpus),), fixed=True)
    draft.admit(wishes)
    return groups, wishes, draft


@pytest.mark.parametrize("gpus", range(1, 33))
def test_a_size_tells_where_so_many_jobs_leave_gpus_idle_and_no_smaller_one_has_as_many_slots(gpus: int) -> None:
    expected = [
        r for r in range(2, gpus + 1) if (gpus // r) * r < gpus and all(gpus // s > gpus // r for s in range(1, r))
    ]
    assert telling_sizes(gpus) == expected


@pytest.mark.parametrize("all_slots", [False, True])
def test_rows_columns_and_values_are_those_of_the_page(all_slots: bool) -> None:
    groups, wishes, draft = instance(3)
    wishes = {job: wish._replace(stays=0 if at % 3 else wish.stays) for at, (job, wish) in enumerate(wishes.items())}
    form = GroupFormulation(groups, Settings(), all_slots=all_slots, stay_bonus=0.25)
    free = np.array(draft.free)
    for each in (groups.size, free, groups.size, free):
        form.set_free(each)
    form.set_wishes(wishes)
    for kind, group, size in form.rows:
        there = [int(n) for n, g in zip(free, groups.group, strict=True) if g == group]
        assert form.model.count((kind, group, size)) == sum(n // size for n in there)
        assert (kind, size > 1) in (("gpus", False), ("slots", True))
    sizes = {g: sorted(r for kind, at, r in form.rows if kind == "slots" and at == g) for g in range(len(groups))}
    for g, group in enumerate(groups.groups):
        assert sizes[g] == (list(range(2, group.gpus + 1)) if all_slots else telling_sizes(group.gpus))
    prices = np.random.default_rng(0).uniform(-0.1, 0.3, len(form.rows))
    for job, wish in wishes.items():
        usage, o = form.usage_of(wish.offers).toarray(), wish.offers
        profit = [0.0]
        for column in range(len(o.kind)):
            expected = [
                float(o.gpus[column]) if kind == "gpus" else float(o.kind[column] == PACKED and r <= o.gpus[column])
                for kind, g, r in form.rows
                if g == o.group[column]
            ]
            mine = [at for at, (_, g, _) in enumerate(form.rows) if g == o.group[column]]
            assert usage[mine, column].tolist() == expected
            assert usage[:, column].sum() == sum(expected)
            value = wish.weight * (float(o.gain[column]) + (0.25 if wish.stays == column else 0.0))
            assert form.model.cost(job)[column] == pytest.approx(value)
            profit.append(value - float(usage[:, column] @ np.maximum(prices, 0.0)))
        assert form.most_profit(wish, prices) == pytest.approx(max(profit))
    assert form.model.to_linear_program().integrality.all()
    assert form.prices(form.solve()).shape == (len(form.rows),)


def test_wishes_that_stay_are_weighed_anew_and_others_come_and_go() -> None:
    groups, wishes, draft = instance(5)
    form, fresh = (GroupFormulation(groups, Settings(), stay_bonus=0.1) for _ in range(2))
    for each in (form, fresh):
        each.set_free(np.array(draft.free))
    form.set_wishes(wishes)
    form.set_wishes({})
    assert not list(form.model.requests)
    form.set_wishes(wishes)
    jobs = list(wishes)
    later = {job: wishes[job]._replace(weight=0.5 + 0.01 * at) for at, job in enumerate(jobs[2:])}
    offers = replace(later[jobs[2]].offers, gain=later[jobs[2]].offers.gain * 2)
    later[jobs[2]] = later[jobs[2]]._replace(offers=offers)
    form.set_wishes(later)
    fresh.set_wishes(later)
    assert sorted(form.model.requests) == sorted(later)
    for job in later:
        np.testing.assert_allclose(form.model.cost(job), fresh.model.cost(job))
    assert form.solve().objective == pytest.approx(fresh.solve().objective, rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_whole_columns_are_placed_the_largest_first_then_fractional_ones_by_share(seed: int) -> None:
    _, wishes, draft = instance(seed)
    rng = np.random.default_rng(seed)
    shares: dict[str, dict[int, float]] = {}
    for job, wish in wishes.items():
        columns = rng.permutation(len(wish.offers.kind))[:3].tolist()
        way = int(rng.integers(0, 3))
        if way == 0:
            shares[job] = {columns[0]: 1.0}
        elif way == 1:
            shares[job] = dict(zip(columns, rng.dirichlet(np.ones(len(columns))) * 0.9, strict=True))
        else:
            shares[job] = {columns[0]: 1e-9} if seed % 2 else {}
    slow, done = draft.copy(), 0
    order: list[tuple[float, float, float, str, int]] = []
    for job, each in shares.items():
        o, weight = wishes[job].offers, wishes[job].weight
        for column, share in each.items():
            if share > 1 - 1e-6:
                order.append((0, -float(o.gpus[column]), -weight, job, column))
            elif share > 1e-6:
                order.append((1, -share, -weight * float(o.gain[column]), job, column))
        done += any(1e-6 < share < 1 - 1e-6 for share in each.values())
    for _, _, _, job, column in sorted(order):
        o = wishes[job].offers
        if job not in slow.placed:
            slow.place(job, int(o.kind[column]), int(o.group[column]), int(o.gpus[column]))
    assert place_support(draft, None, Given(shares)) == done  # type: ignore[arg-type]
    assert {job: each.shares for job, each in draft.placed.items()} == {
        job: each.shares for job, each in slow.placed.items()
    }


def test_jobs_that_have_been_placed_are_left_as_they_are() -> None:
    _, wishes, draft = instance(1)
    job, column = next(
        (job, column)
        for job, wish in wishes.items()
        for column in range(len(wish.offers.kind))
        if draft.place(job, *(int(each[column]) for each in (wish.offers.kind, wish.offers.group, wish.offers.gpus)))
    )
    o = wishes[job].offers
    before = dict(draft.placed)
    other = int(np.flatnonzero(np.arange(len(o.kind)) != column)[0])
    assert place_support(draft, None, Given({job: {other: 1.0}})) == 0  # type: ignore[arg-type]
    assert draft.placed == before


@pytest.mark.parametrize("seed", range(6))
def test_growths_are_the_larger_sizes_that_fit_beside_what_a_job_has(seed: int) -> None:
    groups, wishes, draft = instance(seed)
    seen = 0
    for job, wish in wishes.items():
        o = wish.offers
        packed = np.flatnonzero(o.kind == PACKED)
        if not len(packed) or not draft.place(job, PACKED, int(o.group[packed[0]]), int(o.gpus[packed[0]])):
            continue
        had = draft.placed[job]
        server = had.shares[0][0]
        expected = {}
        for column in packed.tolist():
            more, gpus = wish.weight * float(o.gain[column]) - had.value, int(o.gpus[column])
            on_group = int(o.group[column]) == int(groups.group[server])
            if on_group and had.gpus < gpus <= had.gpus + draft.free[server] and more > 0:
                expected[column] = (-more / (gpus - had.gpus), -more)
        found = _growths(draft, job, had)
        assert [each[3] for each in found] == list(expected)
        for per, most, _, column, _ in found:
            assert (per, most) == pytest.approx(expected[column])
        assert all(name == job and grows for _, _, name, _, grows in found)
        seen += len(expected)
    assert seen > 0 or seed


@pytest.mark.parametrize("seed", range(6))
def test_the_best_idle_job_is_known_for_every_server_and_room(seed: int) -> None:
    groups, wishes, draft = instance(seed)
    for job, wish in list(wishes.items())[::3]:
        o = wish.offers
        draft.place(job, int(o.kind[0]), int(o.group[0]), int(o.gpus[0]))
    table = _best_idle(draft)
    for g, group in enumerate(groups.groups):
        for room in range(group.gpus + 1):
            ways = [(0.0, "", 0)]
            for job, wish in wishes.items():
                for kind, at, gpus, gain in zip(*_columns(wish), strict=True):
                    if job not in draft.placed and kind == PACKED and at == g and gpus <= room:
                        ways.append((wish.weight * gain, job, gpus))
            assert table[g][room][0] == max(ways)[0]
            assert table[g][room] in ways


def _columns(wish: Wish) -> tuple[list[int], list[int], list[int], list[float]]:
    o = wish.offers
    return o.kind.tolist(), o.group.tolist(), o.gpus.tolist(), o.gain.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_fill_and_swap_only_gain_and_leave_nothing_that_fits(seed: int) -> None:
    groups, wishes, draft = instance(seed)
    poor = {job: wish._replace(weight=wish.weight * 0.01) for job, wish in list(wishes.items())[:4]}
    draft.admit({**wishes, **poor})
    for job, wish in poor.items():
        o = wish.offers
        draft.place(job, int(o.kind[0]), int(o.group[0]), int(o.gpus[0]))
    value = draft.value
    fill(draft)
    assert draft.value >= value
    for job, wish in draft.wishes.items():
        if job in draft.placed:
            continue
        for kind, g, gpus, gain in zip(*_columns(wish), strict=True):
            assert kind != PACKED or gain <= 0 or draft.largest_hole(g) < gpus, "an idle job would fit"
    for _ in range(3):
        value, moved = draft.value, swap(draft.copy())
        assert swap(draft) == moved
        assert draft.value > value if moved else draft.value == pytest.approx(value)
        _check(groups, draft)


def _check(groups: ServerGroups, draft: Draft) -> None:
    """What is placed and what is free add up, and the value is that of the placed."""
    used = np.zeros(len(groups.size), dtype=np.int64)
    for each in draft.placed.values():
        for server, gpus in each.shares:
            used[server] += gpus
    np.testing.assert_array_equal(groups.size - used, np.array(draft.free))
    assert draft.value == pytest.approx(sum(each.value for each in draft.placed.values()))


@pytest.mark.parametrize("seed", range(6))
def test_the_better_of_two_drafts_is_taken_where_the_gap_is_wide(seed: int) -> None:
    groups, wishes, draft = instance(seed)
    form, residual = GroupFormulation(groups, Settings()), GroupFormulation(groups, Settings(), all_slots=True)
    form.set_free(np.array(draft.free))
    form.set_wishes(wishes)
    solution = form.solve()

    def made(bound: float = solution.bound, seconds: float = 60.0, **knobs: Any) -> tuple[float, int]:
        found, split = HopsShim(**knobs)(draft.copy(), form, solution, bound, residual, seconds)
        return found.value, split

    plain, split = made(core_jobs=0)
    rounded = draft.copy()
    assert place_support(rounded, form, solution) == split
    assert plain >= rounded.value
    fill(rounded)
    assert made(core_jobs=0, swaps=0)[0] == pytest.approx(rounded.value)
    assert made(core_gap=0.0)[0] >= plain - 1e-9
    assert made(core_gap=0.0, seconds=0.0)[0] == pytest.approx(rounded.value), "no time for swaps or a second draft"
    assert made(core_gap=2.0)[0] == plain
    assert made(core_jobs=0, dives=3)[0] >= rounded.value - 1e-9
    assert HopsShim._gap(draft, 2.0) == pytest.approx((2.0 - draft.value) / 2.0)
    assert HopsShim._gap(draft, 0.0) == pytest.approx(-draft.value / 1e-12)


def test_dives_end_with_the_one_that_places_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, _, draft = instance(1)
    form, made = GroupFormulation(groups, Settings()), list[bool]()

    def dived(*_: object) -> bool:
        made.append(len(made) < 2)
        return made[-1]

    def dives(most: int) -> list[bool]:
        made.clear()
        knobs = HopsShim(dives=most, swaps=0, core_jobs=0)
        knobs(draft.copy(), form, Given({}), 1e9, form, 60.0)  # type: ignore[arg-type]
        return made.copy()

    monkeypatch.setattr(shim, "dive", dived)
    assert [dives(most) for most in (0, 1, 2, 3, 5)] == [[], [True], [True, True]] + 2 * [[True, True, False]]


def test_every_gpu_is_given_away_where_jobs_want_single_ones() -> None:
    speeds = RandomSpeeds()
    groups = small_groups(speeds, {"k": (1, 4)})
    wishes = small_wishes(6, groups, speeds, 0, most=1)
    draft = Draft(groups, groups.size, {}, lambda *_: 1.0, 0.0)
    draft.admit(wishes)
    fill(draft)
    assert (len(draft.placed), draft.idle) == (4, 0)


def one_job(gains: Mapping[int, float]) -> tuple[ServerGroups, Draft]:
    """A server of eight GPUs and a job "a" of weight 2 with the gain of every size."""
    groups = small_groups(RandomSpeeds(), {"long": (1, 8)})

    def rate(kind: str, gpus: int, nodes: int, servers: tuple[str, ...]) -> float:
        return gains.get(gpus, 0.0) if nodes == 1 else 0.0

    offers = OfferRules().make(Job("a", "any"), RequirementSet.of(sorted(gains)), groups, rate)
    assert offers is not None
    draft = Draft(groups, groups.size, {}, lambda *_: 1.0, 0.0)
    draft.admit({"a": Wish(offers, 2.0)})
    return groups, draft


@pytest.mark.parametrize("of_eight", [2.0, 3.0])
def test_a_job_grows_only_to_where_it_is_worth_more(of_eight: float) -> None:
    groups, draft = one_job({2: 1.0, 4: 3.0, 8: of_eight})
    assert draft.place("a", PACKED, 0, 2)
    assert _grow(draft, "a", 1)
    had = draft.placed["a"]
    assert (had.gpus, had.value) == (4, pytest.approx(6.0))
    assert not any(_grow(draft, "a", column) for column in range(3))
    assert draft.placed["a"] == had
    _check(groups, draft)


def test_a_job_that_got_its_best_size_per_gpu_grows_into_what_nobody_wants() -> None:
    _, draft = one_job({1: 1.0, 3: 2.0, 8: 4.0})
    fill(draft)
    assert (draft.placed["a"].gpus, draft.value) == (8, pytest.approx(8.0))


def test_a_type_is_worth_the_dearest_gpus_row_of_its_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = HopsPolicy(Cluster.of({"k": (4, 4), "long": (2, 8)}), RandomSpeeds(slow_server=0.7))
    programs = policy.programs
    rng = np.random.default_rng(0)
    for _ in range(5):
        prices = rng.uniform(-0.2, 1.0, len(programs.whole.rows))
        monkeypatch.setattr(programs.whole, "prices", lambda _, found=prices: found)
        expected = {
            name: max(
                [0.0]
                + [
                    float(price)
                    for (kind, g, _), price in zip(programs.whole.rows, prices, strict=True)
                    if kind == "gpus" and programs.groups.groups[g].gpu_type == name
                ]
            )
            for name in ("k", "long")
        }
        assert programs.type_prices(None) == expected  # type: ignore[arg-type]
    assert {kind for kind, _, _ in programs.whole.rows} == {"gpus", "slots"}


def test_dives_swaps_and_the_second_draft_have_their_parts_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step takes 10 s of 100: dives begin up to 30, exchanges up to 50, of the second draft up to 95."""
    groups, _, draft = instance(1)
    form = GroupFormulation(groups, Settings())
    now, log = [1e6], list[tuple[str, float]]()

    def step(name: str, *_: object) -> bool:
        log.append((name, now[0] - 1e6))
        now[0] += 10.0
        return True

    def settled(knobs: HopsShim, empty: Draft, _: object, __: object, limit_s: float) -> None:
        assert not empty.placed.keys() - draft.placed.keys()
        step(f"settle in {limit_s:g}")

    monkeypatch.setattr(shim, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(shim, "dive", partial(step, "dive"))
    monkeypatch.setattr(shim, "swap", partial(step, "swap"))
    monkeypatch.setattr(HopsShim, "_settle", settled)

    def steps(bound: float, **knobs: Any) -> list[tuple[str, float]]:
        log.clear()
        now[0] = 1e6
        shim_of = HopsShim(**{"dives": 9, "swaps": 9, **knobs})
        shim_of(draft.copy(), form, Given({}), bound, form, 100.0)  # type: ignore[arg-type]
        return log.copy()

    dives = [("dive", 0.0), ("dive", 10.0), ("dive", 20.0), ("dive", 30.0)]
    first = [("swap", 40.0), ("swap", 50.0)]
    second = [("settle in 20", 60.0), ("swap", 70.0), ("swap", 80.0), ("swap", 90.0)]
    assert steps(1e9) == dives + first + second
    assert steps(1e9, core_jobs=0) == dives + first
    assert steps(1e9, core_gap=1.0) == dives + first
    assert steps(1e9, dives=1, swaps=1) == [dives[0], ("swap", 10.0), ("settle in 60", 20.0), ("swap", 30.0)]
    assert steps(draft.value) == []
    assert steps(1e9, good_enough=1.0) == [("settle in 80", 0.0)], "nothing is placed: the gap is 1"
    filled = draft.copy()
    fill(filled)
    just = HopsShim._gap(filled, 1e3)
    assert steps(1e3, dives=0, good_enough=just) == [("settle in 80", 0.0)]


@pytest.mark.parametrize("seed", range(6))
def test_what_the_milp_chose_is_placed_the_largest_first_then_by_weight(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, wishes, draft = instance(seed)
    form, rng = GroupFormulation(groups, Settings()), np.random.default_rng(seed)
    form.set_free(np.array(draft.free))
    form.set_wishes(wishes)
    solution, slow = form.solve(), draft.copy()
    chosen = {job: int(rng.integers(0, len(wish.offers.kind))) for job, wish in wishes.items()}
    asked: list[tuple[Any, ...]] = []

    def choose(_: object, prices: Any, capacity: Any, *limits: float) -> dict[str, int]:
        asked.append((prices.tolist(), capacity.tolist(), *limits))
        return chosen

    monkeypatch.setattr(shim, "choose_columns", choose)
    HopsShim(core_jobs=7, core_nodes=8, core_gap_goal=0.5)._settle(draft, form, solution, 9.0)
    capacity = [form.model.count(row) for row in form.rows]
    assert asked == [(form.prices(solution).tolist(), capacity, 7, 8, 0.5, 9.0)]
    for job in sorted(chosen, key=lambda job: (-wishes[job].offers.gpus[chosen[job]], -wishes[job].weight)):
        kind, group, gpus, _ = (each[chosen[job]] for each in _columns(wishes[job]))
        slow.place(job, int(kind), int(group), int(gpus))
    assert draft.placed == slow.placed


@pytest.mark.parametrize("seed", range(10))
def test_idle_gpus_go_to_what_is_worth_most_per_gpu_and_exchanges_to_what_gains_most(seed: int) -> None:
    _, wishes, draft = instance(seed, jobs=8 + seed)
    for job, wish in list(wishes.items())[: seed % 4]:
        o = wish.offers
        draft.place(job, int(o.kind[0]), int(o.group[0]), int(o.gpus[0]))
    slow = draft.copy()
    draft = draft.copy()
    fill(draft)
    _slow_fill(slow)
    assert draft.placed == slow.placed
    cheap = {job: wish._replace(weight=wish.weight * 0.2) for job, wish in wishes.items() if job in draft.placed}
    again = Draft(draft.groups, draft.groups.size, {}, lambda *_: 1.0, 0.0)
    again.admit({**wishes, **cheap})
    for job, each in draft.placed.items():
        again.hold(job, each.shares, job in draft.fixed)
    slow = again.copy()
    again = again.copy()
    assert swap(again) == _slow_swap(slow)
    assert again.placed == slow.placed


def _slow_fill(draft: Draft) -> None:
    """HP27's first half, offer by offer."""
    done = True
    while draft.idle and done:
        offers: list[tuple[float, float, str, int, bool]] = []
        of_type = {group.gpu_type: 0 for group in draft.groups.groups}
        for server, free in enumerate(draft.free):
            of_type[draft.groups.groups[int(draft.groups.group[server])].gpu_type] += free
        for job, wish in draft.wishes.items():
            had = draft.placed.get(job)
            if had is not None:
                if had.kind == PACKED and job not in draft.fixed:
                    offers += _growths(draft, job, had)
                continue
            for column, (kind, g, gpus, gain) in enumerate(zip(*_columns(wish), strict=True)):
                there = [f for f, at in zip(draft.free, draft.groups.group, strict=True) if at == g]
                room = max(there) if kind == PACKED else of_type[draft.groups.groups[g].gpu_type]
                if gpus <= room:
                    offers.append((-wish.weight * gain / gpus, -wish.weight * gain, job, column, False))
        done = False
        for _, _, job, column, grows in sorted(offers):
            kind, g, gpus, _ = (each[column] for each in _columns(draft.wishes[job]))
            if grows:
                done |= _grow(draft, job, column)
            elif job not in draft.placed:
                done |= draft.place(job, int(kind), int(g), int(gpus))


def _slow_swap(draft: Draft) -> bool:
    """HP27's exchanges, by what idle jobs were worth before the first."""
    idle = [job for job in draft.wishes if job not in draft.placed]

    def best(had: Placed) -> tuple[float, str, int]:
        server = had.shares[0][0]
        found = (0.0, "", 0)
        for job in idle:
            for kind, g, gpus, gain in zip(*_columns(draft.wishes[job]), strict=True):
                if kind == PACKED and g == draft.groups.group[server] and gpus <= had.gpus + draft.free[server]:
                    found = max(found, (draft.wishes[job].weight * gain, job, gpus))
        return found

    running = [(job, had) for job, had in draft.placed.items() if had.kind == PACKED and job not in draft.fixed]
    trades = sorted((had.value - best(had)[0], job) for job, had in running)
    done = False
    for loss, job in trades:
        had = draft.placed[job]
        value, other, gpus = best(had)
        if loss < -1e-9 and value > had.value and other not in draft.placed:
            draft.take_back(job)
            assert draft.put(other, PACKED, gpus, ((had.shares[0][0], gpus),))
            done = True
    return done
