"""Sia's book of jobs: rows are given again, and a new base is in the numbers when they are looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policies.sia.job_book import LEAST_ROWS, NUMBERS, JobBook, JobState
from copter_frontends.vocabulary import DuplicateJobError, Job, UnknownJobError

NONE = np.zeros(0)


def state(book: JobBook, name: str) -> JobState:
    return JobState(Job(name, "bert"), book.new_rows(1)[0], NONE, NONE.astype(np.int64), NONE, NONE.astype(np.int32))


def keep(book: JobBook, *states: JobState) -> None:
    numbers = np.zeros(len(states), dtype=NUMBERS)
    numbers["worth"] = 2.0
    book.keep_all(states, numbers)


def test_more_jobs_than_rows_and_those_of_jobs_that_left_are_given_again() -> None:
    book = JobBook()
    names = [f"j{at}" for at in range(3 * LEAST_ROWS)]
    for name in names:
        keep(book, state(book, name))
    assert len(set(book.rows().tolist())) == len(book) == 3 * LEAST_ROWS
    assert (book.numbers["worth"][book.rows()] == 2.0).all()
    free = book[names[5]].row
    book.forget(names[5])
    assert book.new_rows(1)[0] == free
    with pytest.raises(UnknownJobError):
        book.state(names[5])
    with pytest.raises(DuplicateJobError):
        book.require_new_all([names[6]])


def test_a_new_base_is_there_when_the_numbers_are_looked_at_and_marks_the_job() -> None:
    book = JobBook()
    one, two = state(book, "one"), None
    keep(book, one)
    two = state(book, "two")
    keep(book, two)
    book.rebase(two.row, -1.5, -1.25, False)
    numbers = book.numbers[book.rows()]
    assert numbers["smallest"].tolist() == [0.0, -1.5]
    assert numbers["own_base"].tolist() == [0.0, -1.25]
    assert numbers["stale"].tolist() == numbers["rebased"].tolist() == [False, True]


def test_a_row_that_was_not_kept_is_free_and_clean() -> None:
    book = JobBook()
    failed = state(book, "fits-nowhere")
    book.rebase(failed.row, 1.0, 1.0, True)
    kept = state(book, "one")
    assert kept.row == failed.row
    keep(book, kept)
    assert not book.numbers["stale"][kept.row]
    with pytest.raises(ValueError, match="not those that were given last"):
        keep(book, failed)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-6, 6), max_size=30), st.booleans())
def test_the_rows_follow_whoever_comes_and_goes(steps: list[int], looked_at: bool) -> None:
    book, came = JobBook(), 0
    for step in steps:
        for _ in range(-step):
            if book:
                book.forget(list(book)[came % len(book)])
        if step > 0:
            rows = book.new_rows(step)
            keep(book, *(replace(state(book, f"j{came + at}"), row=row) for at, row in enumerate(rows)))
            came += step
        if looked_at:
            book.rows()
    assert book.rows().tolist() == [each.row for each in book.values()]
    assert len(set(book.rows().tolist())) == len(book)
