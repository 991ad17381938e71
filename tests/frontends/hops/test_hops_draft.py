"""Drafts of Hops's plans: many columns given in one pass are those given one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hops_instances import RandomSpeeds, small_groups, small_wishes

from copter_frontends.policies.hops import draft as drafts
from copter_frontends.policies.hops.draft import Draft
from copter_frontends.policies.hops.offers import PACKED


def draft_of(seed: int, jobs: int, few: list[tuple[str, int]]) -> Draft:
    """Servers partly in use, jobs of which some run, and into `few` entries (job, column) in random order."""
    rng, speeds = np.random.default_rng(seed), RandomSpeeds(seed, slow_server=0.7)
    groups = small_groups(speeds, {"a": (9, 8), "b": (12, 4)})
    wishes, held = small_wishes(jobs, groups, speeds, seed), {}
    for job, wish in wishes.items():
        column = int(rng.integers(len(wish.offers.gpus)))
        kind, group, gpus = wish.offers.of(column)
        if kind == PACKED and rng.random() < 0.4:
            server = int(rng.integers(groups.first[group], groups.first[group + 1]))
            held[job] = ((server, gpus),)
            wishes[job] = replace_stays(wish, column)
        if rng.random() < 0.3:
            few.append((job, int(rng.integers(len(wish.offers.gpus)))))
        few.append((job, column))
    few[:] = [few[i] for i in rng.permutation(len(few)).tolist()]
    draft = Draft(groups, groups.size, held, lambda *_: 0.9, 0.05)
    draft.admit(wishes)
    for job, column in few[:8]:
        draft.give(job, column)
    return draft


def replace_stays(wish: drafts.Wish, column: int) -> drafts.Wish:
    """A wish of a job that has this column now."""
    return wish._replace(stays=column)


def state(draft: Draft) -> tuple[object, ...]:
    """All that later steps of a plan read, orders included."""
    lists = [[list(each) for each in group] for group in draft._with_free]
    return draft.placed, list(draft.placed), list(draft.changed), draft.free, draft.left, draft.idle, draft.value, lists


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("in_a_row", [0, 3, 100])
def test_given_in_one_pass(seed: int, in_a_row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass gives jobs the servers, and leaves the order of servers, that giving one by one does."""
    monkeypatch.setattr(drafts, "FEW", in_a_row)
    entries: list[tuple[str, int]] = []
    one, many = draft_of(seed, 40, entries), draft_of(seed, 40, [])
    before = len(one.placed)
    for job, column in entries:
        if job not in one.placed:
            one.give(job, column)
    many.give_all(many.asked(entries))
    assert len(one.placed) > before + 8
    assert state(many) == state(one)


def test_order_of_asking() -> None:
    """The most GPUs come first, then the largest weight, then the job's name."""
    draft = draft_of(3, 60, [])
    draft.wishes = {job: wish._replace(weight=round(wish.weight, 1)) for job, wish in draft.wishes.items()}
    entries = [(job, column) for job, wish in draft.wishes.items() for column in range(0, len(wish.offers.gpus), 7)]
    asked = draft.asked(entries).largest_first()
    wanted = sorted((-draft.wishes[j].offers.of(c)[2], -draft.wishes[j].weight, j, c) for j, c in entries)
    assert list(zip(asked.jobs, asked.columns, strict=True)) == [(job, column) for _, _, job, column in wanted]
