"""Sia's book of jobs: rows are given again, and a new base is in the numbers when they are looked at."""

from __future__ import annotations

import numpy as np
import pytest

from copter_frontends.policies.sia.job_book import LEAST_ROWS, JobBook, JobState
from copter_frontends.vocabulary import DuplicateJobError, Job, UnknownJobError

NONE = np.zeros(0)


def state(book: JobBook, name: str) -> JobState:
    made = JobState(Job(name, "bert"), book.new_row(), NONE, NONE.astype(np.int64), NONE, NONE.astype(np.int32))
    book.numbers[made.row]["worth"] = 2.0
    return made


def test_more_jobs_than_rows_and_those_of_jobs_that_left_are_given_again() -> None:
    book = JobBook()
    names = [f"j{at}" for at in range(3 * LEAST_ROWS)]
    for name in names:
        book.keep(state(book, name))
    assert len(set(book.rows().tolist())) == len(book) == 3 * LEAST_ROWS
    assert (book.numbers["worth"][book.rows()] == 2.0).all()
    free = book[names[5]].row
    book.forget(names[5])
    assert book.new_row() == free
    assert book.numbers["worth"][free] == 0.0, "nothing of the job that left"
    with pytest.raises(UnknownJobError):
        book.state(names[5])
    with pytest.raises(DuplicateJobError):
        book.require_new(names[6])


def test_a_new_base_is_there_when_the_numbers_are_looked_at_and_marks_the_job() -> None:
    book = JobBook()
    one, two = state(book, "one"), None
    book.keep(one)
    two = state(book, "two")
    book.keep(two)
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
    book.keep(kept)
    assert not book.numbers["stale"][kept.row]
    with pytest.raises(ValueError, match="not the one that was given last"):
        book.keep(failed)
