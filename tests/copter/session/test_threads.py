"""What two threads may do with one session (method/differential.md): anything, one at a time; else a clear refusal."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from copter import EditNotAllowedError, Model, Session, Solution, Status
from copter.shims import IntegerPlan, RoundingShim
from tests.copter.consistent import require_consistent


def model_of(requests: int) -> Model:
    model = Model("max")
    for name in "abc":
        model.add_resources(name, 20)
    for i in range(requests):
        model.add_request(i, [1.0 + i % 7, 2.0 + i % 3], {"a": [1, 2], "b": [1, 0], "c": [0, 1]}, integer=True)
    return model


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def interleaved(session: Session, turns: int, work: list[Callable[[int], object]]) -> Counter[str]:
    """Try the work of each thread at least `turns` times and until it was done once; count refusals, raise the rest.

    The others end, so that a thread that was refused each time is not refused for ever: 100 times as many turns
    are an error.
    """
    counts: Counter[str] = Counter()
    raised: list[BaseException] = []
    together = threading.Barrier(len(work))

    def run(which: int) -> None:
        together.wait()
        for turn in range(100 * turns):
            if turn >= turns and counts[f"done {which}"]:
                return
            try:
                work[which](turn)
                counts[f"done {which}"] += 1
            except EditNotAllowedError:
                counts[f"refused {which}"] += 1
                time.sleep(0 if turn < turns else 1e-3)
            except BaseException as error:
                raised.append(error)
                return

    threads = [threading.Thread(target=run, args=(which,)) for which in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
    return counts


def edits(model: Model) -> Callable[[int], object]:
    """Edits of several kinds; the model does not grow, also where some are refused."""
    here: list[tuple[str, int]] = []

    def edit(turn: int) -> None:
        if turn % 3 == 0:
            model.set_count("a", float(10 + turn % 20))
        elif here:
            model.remove_request(here[-1])
            here.pop()
        else:
            model.add_request(("x", turn), [9.0, 9.0], {"a": [1, 2]}, integer=True)
            here.append(("x", turn))

    return edit


def require_two_threads_hold(turns: int) -> None:
    session = Session(model_of(30))
    work = [lambda _: session.solve_integer(), edits(session.model), lambda _: session.solve()]
    counts = interleaved(session, turns, work)
    assert sum(counts.values()) >= turns * len(work)
    assert all(counts[f"done {which}"] > 0 for which in range(len(work)))
    assert len(session.model.requests) <= 31
    require_consistent(session.model.ledger)
    assert session.solve().status is Status.OPTIMAL
    fresh = Session(session.model).solve()
    assert session.solve().objective == pytest.approx(fresh.objective, rel=1e-6)


def test_two_threads_in_turns(quick_switches: None) -> None:
    require_two_threads_hold(1_000)


@pytest.mark.long
def test_two_threads_in_many_turns(quick_switches: None) -> None:
    require_two_threads_hold(70_000)  # of each of three threads: 210,000 in all


def test_nothing_is_edited_while_a_shim_makes_a_plan() -> None:
    session = Session(model_of(20))
    inside, go_on = threading.Event(), threading.Event()
    refused: list[str] = []

    def slow(model: Model, solution: Solution, last: IntegerPlan | None) -> IntegerPlan:
        inside.set()
        assert go_on.wait(20.0)
        return RoundingShim()(model, solution, last)

    plans: list[IntegerPlan] = []
    worker = threading.Thread(target=lambda: plans.append(session.solve_integer(slow)))
    worker.start()
    assert inside.wait(20.0)
    for attempt in (
        lambda: session.model.remove_request(0),
        lambda: session.model.set_count("a", 1.0),
        lambda: session.solve(),
        lambda: session.solve_integer(),
        lambda: session.reset(),
        lambda: session.compact(),
    ):
        with pytest.raises(EditNotAllowedError) as error:
            attempt()
        refused.append(str(error.value))
    go_on.set()
    worker.join()
    assert plans[0].is_feasible
    assert all("being planned in another thread" in each for each in refused)


def test_a_shim_that_edits_its_model_is_told_so() -> None:
    session = Session(model_of(5))

    def edits_it(model: Model, solution: Solution, last: IntegerPlan | None) -> IntegerPlan:
        model.remove_request(0)
        raise AssertionError("not reached")

    with pytest.raises(EditNotAllowedError, match="being planned"):
        session.solve_integer(edits_it)
    assert 0 in session.model
    assert session.solve_integer().is_feasible


def test_the_last_solution_is_that_of_the_last_solve() -> None:
    session = Session(model_of(5))
    assert session.last_solution is None
    first = session.solve()
    assert session.last_solution is first
    session.model.remove_request(0)
    second = session.solve()
    assert session.last_solution is second
    session.solve_integer()
    assert session.last_solution is not second
    assert session.last_solution is not None
    assert session.last_solution.explain(1) is not None
