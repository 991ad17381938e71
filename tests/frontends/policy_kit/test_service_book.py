"""The service of all jobs in arrays is what a record for each job would be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copter_frontends.policy_kit import BookedService, ServiceBook

steps = st.lists(st.tuples(st.sampled_from(["come", "go", "give", "take", "plan"]), st.integers(0, 99)), max_size=60)


@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_the_book_is_as_a_record_for_each_job(steps: list[tuple[str, int]]) -> None:
    book, here, now_s = ServiceBook(), dict[int, BookedService](), 0.0
    records = dict[int, dict[str, float]]()
    had = dict[int, int]()
    for number, (what, at) in enumerate(steps):
        job = sorted(here)[at % len(here)] if here else None
        if what == "come":
            here[number] = book.enter([float(at)], [float(at)])[0]
            records[number] = {"executed_s": 0.0, "gpu_s": 0.0, "waits_from_s": float(at), "gpus": 0}
        elif what == "plan":
            elapsed_s = float(at)
            now_s += elapsed_s
            for key, each in records.items():
                if each["gpus"] and had.get(key):
                    each["executed_s"] += elapsed_s
                    each["gpu_s"] += each["gpus"] * elapsed_s
                    each["waits_from_s"] = now_s
            book.serve(now_s, elapsed_s)
            book.note_plan()
            had = {key: int(each["gpus"]) for key, each in records.items()}
        elif job is not None and what == "go":
            book.leave(here.pop(job))
            del records[job]
            had.pop(job, None)
        elif job is not None:
            records[job]["gpus"] = 1 + at % 4 if what == "give" else 0
            book.gpus[here[job].row] = records[job]["gpus"]
    for key, service in here.items():
        assert service.executed_s == records[key]["executed_s"]
        assert service.gpu_s == records[key]["gpu_s"]
        assert service.waits_from_s == records[key]["waits_from_s"]
        assert service.waiting_s == max(now_s - records[key]["waits_from_s"], 0.0)


def test_a_book_grows_and_gives_rows_of_jobs_that_left_again() -> None:
    book = ServiceBook()
    services = book.enter([float(n) for n in range(200)], [0.0] * 200)
    assert len({each.row for each in services}) == 200
    assert [book.submit_s[each.row] for each in services] == list(range(200))
    services[0].gpu_s = 7.0
    services[0].executed_s = 3.0
    book.leave(services[0])
    (again,) = book.enter([5.0], [5.0])
    assert again.row == services[0].row
    assert (again.gpu_s, again.executed_s, again.progress) == (0.0, 0.0, 0.0)
    again.waiting_s = 2.0
    assert again.waiting_s == pytest.approx(2.0)
