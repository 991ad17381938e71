"""What Hops keeps from round to round is what it would make anew: present GPUs, held drafts, weights, progress."""

from __future__ import annotations

import numpy as np
import pytest
from hops_instances import RandomSpeeds, small_groups, small_wishes
from policy_state import policy_state

from copter.runtime.errors import InvalidDataError
from copter_frontends.policies.hops import HopsPolicy
from copter_frontends.policies.hops.draft import Draft, Placed, Present
from copter_frontends.policies.hops.latency_ratio import Weights
from copter_frontends.policies.hops.offers import PACKED
from copter_frontends.policies.hops.presence import Presence
from copter_frontends.vocabulary import Cluster, Job, ToldAtOnce, UnknownJobError

COUNTS = {"k": (3, 4), "long": (2, 8)}


def policy() -> HopsPolicy:
    return HopsPolicy(Cluster.of({"k": (4, 4), "long": (3, 8)}), RandomSpeeds(1, 0.8), full_round_s=180.0)


def job(name: str, submit_s: float = 0.0) -> Job:
    return Job(name, "any", submit_s, min_gpus=1, max_gpus=4, work_samples=2e4)


@pytest.mark.parametrize("seed", range(4))
def test_what_jobs_have_is_what_a_new_look_finds_whatever_came_between(seed: int) -> None:
    rng, made = np.random.default_rng(seed), policy()
    for step in range(12):
        now_s = 60.0 * step
        for at in range(3):
            made.add_job(job(f"j{step}-{at}", now_s))
        for gone in [name for name in made.jobs if rng.random() < 0.1]:
            made.remove_job(gone)
        running = list(made.held)
        if running and rng.random() < 0.5:
            name = str(rng.choice(running))
            made.pin(name, made.held[name])
        if running and rng.random() < 0.3:
            made.update_job(str(rng.choice(running)), requirements=[1, 2])
        if step == 6:
            made.add_resources("k", 4)
        if step == 9:
            made.remove_resources("long", 8)
        made.plan(now_s)
        groups = made.groups
        fresh = Presence(made.book, made.programs.stay_bonus).of(made.held, made.jobs, groups)
        assert dict(made._presence.of(made.held, made.jobs, groups)) == dict(fresh)
        assert fresh.keys() == made.held.keys()


@pytest.mark.parametrize("seed", range(6))
def test_many_jobs_are_held_as_one_after_the_other(seed: int) -> None:
    speeds, rng = RandomSpeeds(seed, slow_server=0.8), np.random.default_rng(seed)
    groups = small_groups(speeds, COUNTS)
    wishes = small_wishes(10, groups, speeds, seed)
    one, many = (Draft(groups, groups.size, {}, lambda *_: 1.0, 0.0) for _ in range(2))
    one.admit(wishes)
    kept: dict[str, Present] = {}
    for name, wish in wishes.items():
        o = wish.offers
        for column in rng.permutation(len(o.kind)).tolist():
            shares = one.find(int(o.kind[column]), int(o.group[column]), int(o.gpus[column]))
            if shares is not None:
                one.hold(name, shares, fixed=False)
                gain = one.placed[name].value / wish.weight
                kept[name] = Present(int(o.kind[column]), int(o.gpus[column]), shares, column, gain)
                break
    many.hold_all(kept, [wishes[name].weight for name in kept])
    assert kept
    assert (many.free, many.left, many.idle) == (one.free, one.left, one.idle)
    order = [[list(servers) for servers in buckets] for buckets in many._with_free]
    assert order == [[list(servers) for servers in buckets] for buckets in one._with_free]
    assert list(many.placed) == list(one.placed)
    assert many.value == pytest.approx(one.value)
    for name in list(many.placed):
        each = many.at(name)
        assert each[:3] == one.placed[name][:3]
        assert each.value == pytest.approx(one.placed[name].value)


def test_a_job_that_keeps_its_gpus_has_a_wish_when_it_loses_them() -> None:
    speeds = RandomSpeeds()
    groups = small_groups(speeds, COUNTS)
    name, wish = next(iter(small_wishes(3, groups, speeds, 0).items()))
    column = int(np.flatnonzero(wish.offers.kind == PACKED)[0])
    group, gpus = int(wish.offers.group[column]), int(wish.offers.gpus[column])
    draft = Draft(groups, groups.size, {}, lambda *_: 1.0, 0.0, lambda asked: wish if asked == name else None)
    server = int(groups.first[group])
    draft.hold_all({name: Present(PACKED, gpus, ((server, gpus),), column, 2.0)}, [0.5])
    assert (draft.wishes, draft.value) == ({}, 1.0)
    assert draft.take_back(name) == Placed(PACKED, gpus, ((server, gpus),), 1.0)
    assert draft.wishes == {name: wish}
    assert draft.value == 0.0
    assert draft.give(name, column)
    assert draft.wish("nobody") is None


def test_weights_of_many_are_those_of_each_and_of_those_weighed_alone() -> None:
    values = {"a": 3.0, "b": 0.5, "gone": 90.0}
    weight = Weights(values, 2.0, [3.0, 0.5])
    assert weight["a"] == 1.0
    assert weight.of(["b", "a"]) == [weight["b"], weight["a"]]
    assert Weights({"a": -5.0, "b": 0.0}, 1e6).of(["a", "b"]) == [1e-9, 1.0]
    assert len(weight) == 3
    assert set(weight) == set(values)


def test_progress_of_many_jobs_is_told_as_of_each() -> None:
    one, many = policy(), policy()
    for made in (one, many):
        assert isinstance(made, ToldAtOnce)
        for name in ("a", "b", "c"):
            made.add_job(job(name))
        made.plan(0.0)
    told = {"a": {"progress": 0.25}, "b": {"progress": 0.5, "restarts": 1}, "c": {"restarts": 2}}
    many.update_jobs(told)
    for name, facts in told.items():
        one.update_job(name, **facts)
    assert {name: had.progress for name, had in many.service.items()} == {"a": 0.25, "b": 0.5, "c": 0.0}
    assert policy_state(many) == policy_state(one)
    with pytest.raises(InvalidDataError, match="must be a fraction"):
        many.update_jobs({"a": {"progress": 1.5}})
    with pytest.raises(UnknownJobError):
        many.update_jobs({"nobody": {"progress": 0.5}})


@pytest.mark.parametrize("seed", range(6))
def test_many_jobs_get_and_lose_their_gpus_as_one_after_the_other(seed: int) -> None:
    rng, one, many = np.random.default_rng(seed), policy(), policy()
    for made in (one, many):
        for at in range(12):
            made.add_job(job(f"j{at}"))
        made.plan(0.0)
    running = [name for name in one.held if rng.random() < 0.6]
    given = {name: one.held[name] for name in rng.permutation(running).tolist()}
    assert len(given) > 2
    for name in running:
        one.release(name)
    many.release_all(running)
    assert policy_state(many) == policy_state(one)
    for name, allocation in given.items():
        one.hold(name, allocation)
    many.hold_all(given)
    assert policy_state(many) == policy_state(one)
    assert list(many.held) == list(one.held)
    assert all(many.nodes.nodes_by_free(kind) == one.nodes.nodes_by_free(kind) for kind in many.nodes.types)


def test_the_terms_of_an_age_are_made_once_for_jobs_with_the_same_offers() -> None:
    made = HopsPolicy(Cluster.of({"k": (4, 4)}), ALike(), full_round_s=180.0)
    for at in range(20):
        made.add_job(job(f"j{at}"))
    assert len(made.book._terms) == 1
    alone = HopsPolicy(Cluster.of({"k": (4, 4)}), ALike(), full_round_s=180.0)
    alone.add_job(job("j7"))
    assert made.book.age_s["j7"] == alone.book.age_s["j7"] > 0.0
    made.add_resources("k", 8)
    made.add_job(job("late"))
    assert made.book._terms.keys() == {id(made.book.offers["late"])}


class ALike(RandomSpeeds):
    """Rates that are the same for all jobs."""

    def key(self, job: Job) -> str:
        return "any"

    def rate(self, job: Job, gpu_type: str, gpus: int, nodes: int, servers: object) -> float:
        return 2.0 * gpus
