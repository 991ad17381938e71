"""Reservations of waiting jobs: small queues by hand, and the rule itself against a search of every time."""

from __future__ import annotations

from math import inf, isfinite

from hypothesis import given
from hypothesis import strategies as st

from copter_serve.queues.reservations import Choice, Profile, Reservation, reserved


def test_a_short_job_fills_the_hole_before_a_wide_one() -> None:
    # 4 GPUs, 3 of them until t = 10: the wide job waits for them, the short one fits beside, the long one must not.
    found = reserved(
        {"gpu": 1},
        [("gpu", 3, 10.0)],
        [
            ("wide", [Choice("gpu", 4, 5.0)]),
            ("long", [Choice("gpu", 1, 11.0)]),
            ("short", [Choice("gpu", 1, 10.0)]),
        ],
    )
    assert {job: (each.start_s, each.backfills) for job, each in found.items() if each} == {
        "wide": (10.0, False),
        "long": (15.0, False),
        "short": (0.0, True),
    }


def test_the_choice_that_ends_first_is_taken() -> None:
    slow, fast = Choice("t4", 4, 100.0), Choice("a100", 8, 20.0)
    for busy_s, chosen, start in ((50.0, fast, 50.0), (90.0, slow, 0.0)):
        found = reserved({"t4": 4, "a100": 0}, [("a100", 8, busy_s)], [("job", [slow, fast])])["job"]
        assert found == Reservation(chosen, start, False)


def test_what_is_not_known_is_not_promised() -> None:
    found = reserved(
        {"gpu": 2},
        [("gpu", 6, inf)],
        [("first", [Choice("gpu", 2, inf)]), ("second", [Choice("gpu", 1, 5.0)]), ("huge", [Choice("gpu", 9, 1.0)])],
    )
    assert found["first"] == Reservation(Choice("gpu", 2, inf), 0.0, False)
    assert found["second"] is None
    assert found["huge"] is None
    assert reserved({"gpu": 1}, [], [("other", [Choice("tpu", 1, 1.0)]), ("none", [])]) == {"other": None, "none": None}


SIZES, TIMES = st.integers(1, 6), st.one_of(st.integers(1, 12).map(float), st.just(inf))


@given(
    st.integers(0, 6),
    st.lists(st.tuples(SIZES, TIMES), max_size=5),
    st.lists(st.tuples(SIZES, TIMES), max_size=7),
)
def test_each_job_starts_at_the_first_time_that_delays_none_before_it(
    free: int, ends: list[tuple[int, float]], jobs: list[tuple[int, float]]
) -> None:
    found = reserved(
        {"gpu": free},
        [("gpu", units, seconds) for units, seconds in ends],
        [(str(k), [Choice("gpu", units, seconds)]) for k, (units, seconds) in enumerate(jobs)],
    )
    last = 200  # whole seconds; nothing changes after the last end
    room = [free + sum(units for units, seconds in ends if seconds <= at) for at in range(last)]
    for k, (units, seconds) in enumerate(jobs):
        stays = last if seconds == inf else int(seconds)
        start = next((at for at in range(last // 2) if min(room[at : at + stays]) >= units), None)
        each = found[str(k)]
        assert (None if each is None else each.start_s) == start
        if start is not None:
            for at in range(start, min(start + stays, last)):
                room[at] -= units
    assert min(room) >= 0


def test_a_profile_with_ends_at_one_time_has_one_step() -> None:
    profile = Profile(1, [(5.0, 2), (5.0, 1), (inf, 9), (-3.0, 1)])
    assert profile.times.tolist() == [0.0, 5.0]
    assert profile.free.tolist() == [2.0, 5.0]
    assert not isfinite(profile.earliest(6, 1.0))
