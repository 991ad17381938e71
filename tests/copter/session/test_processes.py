"""Threads and processes: one at a time a session, many sessions at once, forks and spawns; always the same bits."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from copter import EditNotAllowedError, Model, Session, Settings, SnapshotError, Status
from copter.methods.proximal import newton, pricing
from copter.runtime import threads
from copter.testing import sia_like_model
from tests.copter.plain import innards


@pytest.fixture(autouse=True)
def every_size_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads price whatever the size of the model (by itself copter wakes them for large ones only)."""
    monkeypatch.setattr(pricing, "SMALL_MODEL", 0)


def answer(seed: int, n_threads: int) -> tuple[bytes, ...]:
    """The bits of three rounds of a model on which so many threads price."""
    model = sia_like_model(120, 1024, 4, seed=seed)
    session, rng, found = Session(model, Settings(threads=n_threads)), np.random.default_rng(seed), []
    for _ in range(3):
        model.rescale_costs(model.requests, 1.0 + 0.01 * rng.standard_normal(120))
        solution = session.solve()
        assert solution.status is Status.OPTIMAL
        found += [solution.x.tobytes(), solution.y.tobytes(), np.float64(solution.objective).tobytes()]
    return tuple(found)


def told(queue: Any, seed: int, n_threads: int) -> None:
    """Work of a child process, which a spawned one begins without the fixture."""
    pricing.SMALL_MODEL = newton.SMALL_WORKING_SET = 0
    queue.put(answer(seed, n_threads))


def in_child(method: str, work: Any, *arguments: Any) -> Any:
    """What a child process answers; it is given a minute."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=work, args=(queue, *arguments))
    child.start()
    try:
        found = queue.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0
    finally:
        if child.is_alive():
            child.kill()
            child.join()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_finds_the_same_bits(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent has used its threads, in passes and in Newton's steps; a forked child must not wait for them."""
    monkeypatch.setattr(newton, "SMALL_WORKING_SET", 0)
    expected = answer(1, 2)
    assert in_child(method, told, 1, 2) == expected
    assert answer(1, 2) == expected


def kept(queue: Any, session: Session) -> None:
    """Solve a session that was begun in the parent."""
    session.model.remove_request("job-5")
    queue.put((session.solve().x.tobytes(), threads.safe_threads(8)))


def test_a_forked_child_goes_on_with_its_copy() -> None:
    session = Session(sia_like_model(120, 1024, 4, seed=2), Settings(threads=2))
    session.solve()
    found, allowed = in_child("fork", kept, session)
    assert allowed == 1
    assert threads.safe_threads(8) == 8
    assert "job-5" in session.model
    session.model.remove_request("job-5")
    assert session.solve().x.tobytes() == found


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))])
def test_a_copy_goes_on_by_itself(copied: Any, tmp_path: Path) -> None:
    session = Session(sia_like_model(40, 64, 3), Settings(threads=1), journal=tmp_path / "j")
    session.model.add_request(("x", 1), [1.0], {"type-0": [1.0]})
    session.solve_integer()
    other = copied(session)
    assert innards(other.model) == innards(session.model)
    before = innards(session.model)
    assert other.solve().pricing_passes == 1
    other.model.remove_request("job-1")
    other.model.add_resources("type-0", 1)
    other.solve()
    assert innards(session.model) == before
    session.model.remove_request("job-1")
    session.model.add_resources("type-0", 1)
    assert session.solve().x.tobytes() == other.solve().x.tobytes()
    assert innards(copied(session.model)) == innards(session.model)
    session.journal(None)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))])
@pytest.mark.parametrize("model_first", [True, False])
def test_a_model_beside_its_session_is_copied_as_its_model(copied: Any, model_first: bool) -> None:
    session = Session(sia_like_model(12, 16, 3), Settings(threads=1))
    session.solve()
    both = {"model": session.model, "session": session}
    again = copied(both if model_first else dict(reversed(both.items())))
    assert again["session"].model is again["model"] is not session.model
    for each in (session, again["session"]):
        each.model.remove_request("job-1")
        each.model.add_request("new", [1.0], {"type-0": [1.0]})
    found, expected = again["session"].solve(), session.solve()
    assert found.x.tobytes() == expected.x.tobytes()
    assert np.array_equal(found.values_of(["new"])[1], expected.values_of(["new"])[1])


def test_a_model_that_is_edited_while_its_session_is_copied_is_refused() -> None:
    session = Session(sia_like_model(4, 16, 2), Settings(threads=1))
    build, arguments = session.__reduce__()
    session.model.remove_request("job-1")
    with pytest.raises(SnapshotError, match="edited while its session was copied"):
        build(*arguments)


@pytest.mark.slow
def test_a_spawned_child_is_given_a_session() -> None:
    session = Session(sia_like_model(120, 1024, 4, seed=2), Settings(threads=2))
    session.solve()
    found, allowed = in_child("spawn", kept, session)
    assert allowed == 8
    session.model.remove_request("job-5")
    assert session.solve().x.tobytes() == found


def test_no_copy_in_a_batch() -> None:
    session = Session(sia_like_model(4, 16, 2))
    for each in (session, session.model):
        with pytest.raises(EditNotAllowedError, match="in a batch"), session.model.batch():
            pickle.dumps(each)


def edited(queue: Any, session: Session) -> None:
    """Try to write the parent's journal; then go on without."""
    before = innards(session.model)
    try:
        session.model.remove_request("job-1")
    except EditNotAllowedError as error:
        message = str(error)
    same = innards(session.model) == before
    session.journal(None)
    session.model.remove_request("job-1")
    queue.put((message, same, len(session.model.requests)))


def test_a_forked_child_does_not_write_the_journal(tmp_path: Path) -> None:
    session = Session(sia_like_model(4, 16, 2), journal=tmp_path / "j")
    message, same, left = in_child("fork", edited, session)
    assert "forked from" in message
    assert same
    assert left == 3
    session.model.remove_request("job-2")
    session.journal(None)
    again = Session.load(tmp_path / "j")
    assert again.model.requests == ("job-0", "job-1", "job-3")
    again.journal(None)


@pytest.mark.slow
def test_sessions_in_parallel_threads_find_the_same_bits() -> None:
    expected = [answer(seed, 1) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, range(4), [1] * 4)) == expected


def test_several_threads_are_at_work() -> None:
    """The other tests would prove nothing if a pass was made by one thread all the same."""
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("threads of a process are counted in /proc")
    before = len(os.listdir("/proc/self/task"))
    answer(0, before + 2)
    assert len(os.listdir("/proc/self/task")) > before


def test_the_number_of_threads_that_price_changes_no_bits() -> None:
    assert answer(3, 1) == answer(3, 2)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_a_number_of_threads_finds_the_same_bits_again(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton's steps in parallel pieces add up in the order of the pieces."""
    monkeypatch.setattr(newton, "SMALL_WORKING_SET", 0)
    assert answer(3, n_threads) == answer(3, n_threads)


class Elsewhere:
    """A solve in another thread, held up in its callback until it is let go."""

    def __init__(self, model: Model) -> None:
        self.inside, self.outside = threading.Event(), threading.Event()
        self.worker = threading.Thread(target=lambda: Session(model).solve(callback=self.wait))

    def wait(self, *_: object) -> None:
        self.inside.set()
        assert self.outside.wait(30)

    def __enter__(self) -> None:
        self.worker.start()
        assert self.inside.wait(30)

    def __exit__(self, *_: object) -> None:
        self.outside.set()
        self.worker.join(30)


def test_an_edit_during_a_solve_elsewhere_says_so(tmp_path: Path) -> None:
    model = sia_like_model(5, 8, 2)
    before, other = innards(model), Session(model)
    with Elsewhere(model):
        for misuse in (
            lambda: model.remove_request("job-0"),
            lambda: model.add_resources("type-0", 1),
            lambda: model.batch().__enter__(),
            other.solve,
            other.compact,
            lambda: other.save(tmp_path / "s"),
            lambda: other.journal(tmp_path / "j"),
        ):
            with pytest.raises(EditNotAllowedError, match="in another thread"):
                misuse()
    assert innards(model) == before
    assert not list(tmp_path.iterdir())
    assert other.solve().status is Status.OPTIMAL


def test_an_edit_during_a_batch_elsewhere_says_so() -> None:
    model, errors = sia_like_model(5, 8, 2), []

    def edit() -> None:
        try:
            model.remove_request("job-1")
        except EditNotAllowedError as error:
            errors.append(str(error))

    with model.batch():
        model.remove_request("job-0")
        worker = threading.Thread(target=edit)
        worker.start()
        worker.join()
    assert len(errors) == 1
    assert "in another thread" in errors[0]
    assert model.requests == ("job-1", "job-2", "job-3", "job-4")


def test_threads_that_edit_one_model_lose_nothing() -> None:
    """Edits that say they were done were done, and no others, however threads get into each other's way."""
    model, done = Model(), [0] * 4
    model.add_resources("a", 1e9)
    until = time.perf_counter() + 0.5

    def work(which: int) -> None:
        number = 0
        while time.perf_counter() < until:
            try:
                model.add_request((which, number), [1.0], {"a": [1.0]})
                done[which] += 1
            except EditNotAllowedError:
                pass
            number += 1

    workers = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(done) > 0
    assert len(model.requests) == sum(done) == model.n_columns
    assert model.to_linear_program().shape == (1 + sum(done), sum(done))
