"""Interrupts at any instruction: every public call either happened or did not, and whatever comes after it works.

A child process runs one call, and an exception is raised before its k-th instruction: of any function in Python that
the call runs, of copter, NumPy or the standard library, as a signal's handler may raise there. The child then judges
the model, the session, the journal and the tape.
"""

from __future__ import annotations

import os
import pickle
import random
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import copter
from copter import Model, Session, Settings, verify
from copter.session.playback import Playback, solved

AGREES = 1e-6
PATIENCE_S = 120.0  # for a child, which takes less than a second
HANGS = "a child process did not end"
ROUNDS = 60  # calls of a trial with a timer
LONGEST_S = 0.003  # until the timer's signal


@dataclass
class Scene:
    """A model with a session before the call."""

    model: Model
    template: Any
    session: Session
    folder: Path


class Name:
    """An id whose hash and equality are Python's: a signal may end a look-up too."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and other.text == self.text

    def __repr__(self) -> str:
        return self.text


def scene(folder: Path, journal: bool, tape: bool, names: bool) -> Scene:
    """A model of 26 requests with a session that has solved once; the same each time."""
    model = Model()
    for resource in range(4):
        model.add_resources(resource, 20.0)
    template = model.add_template({0: [1, 2, 3], 1: [0, 1, 2]})
    rng = np.random.default_rng(0)
    first = [Name(f"n{k}") if names else k for k in range(20)]
    model.add_requests(first, np.round(rng.uniform(0, 9, (20, 3)), 2), template=template, integer=True)
    for request in range(20, 26):
        model.add_request(request, [1.0, 2.0], {0: [1, 2], 2: [1, 1]}, integer=True)
    for request in (24, 25):
        model.remove_request(request)  # two free slots
    session = Session(model, Settings(threads=1))
    if journal:
        session.journal(folder / "journal")
    if tape:
        session.record(folder / "tape")
    session.solve_integer()
    return Scene(model, template, session, folder)


def batch(at: Scene) -> None:
    """Edits of several kinds, all or none."""
    with at.model.batch():
        at.model.set_count(1, 5.0)
        at.model.update_limits([20, 21], 2.0)
        at.model.remove_request(22)
        at.model.add_request("n", [1.0], {0: [1]})
        at.model.drop_resource(3)


def wrong_batch(at: Scene) -> None:
    """A batch that fails: the way back is interrupted too."""
    try:
        with at.model.batch():
            at.model.remove_requests([20, 21, 22])
            at.model.drop_resource(2)
            at.model.update_template(at.template, {0: [1, 2, 4], 1: [0, 1, 2]})
            at.model.remove_request("nobody")
    except copter.UnknownHandleError:
        pass


def first_of(at: Scene, count: int) -> list[Any]:
    """The first requests."""
    return list(at.model.requests[:count])


Call = Callable[[Scene], object]
CALLS: dict[str, Call] = {
    "remove_requests": lambda at: at.model.remove_requests(first_of(at, 10)),
    "remove_request": lambda at: at.model.remove_request(21),
    "add_requests": lambda at: at.model.add_requests(range(100, 112), np.ones((12, 3)), template=at.template),
    "add_request": lambda at: at.model.add_request("x", [1.0, 2.0], {0: [1, 1], 3: [1, 2]}),
    "add_own_requests": lambda at: at.model.add_own_requests(["a", "b"], [1, 2], [1.0, 2.0, 3.0], {0: [1, 1, 2]}),
    "update_cost": lambda at: at.model.update_cost(first_of(at, 1)[0], [1.0, 2.0, 3.0]),
    "update_costs": lambda at: at.model.update_costs(first_of(at, 10), [np.full(3, 7.0)] * 10),
    "update_column_cost": lambda at: at.model.update_column_cost(20, 1, 5.5),
    "rescale_costs": lambda at: at.model.rescale_costs(first_of(at, 5), np.full(5, 2.0), np.zeros(5)),
    "set_count": lambda at: at.model.set_count(0, 7.0),
    "update_counts": lambda at: at.model.update_counts([0, 1, 2], [7.0, 8.0, 9.0]),
    "new resources": lambda at: [at.model.add_resources("new", 7.0)],
    "remove_resources": lambda at: at.model.remove_resources(0, 3.0),
    "drop_resource": lambda at: at.model.drop_resource(2),
    "add_template": lambda at: at.model.add_template({0: [1, 1], 3: [2, 3]}),
    "update_template": lambda at: at.model.update_template(at.template, {0: [1, 2, 4], 1: [0, 1, 2]}),
    "update_usage": lambda at: at.model.update_usage(20, {0: [1, 1], 2: [1, 1]}),
    "update_limits": lambda at: at.model.update_limits(first_of(at, 8), 2.0),
    "update_bounds": lambda at: at.model.update_bounds(20, 0.0, 0.5),
    "update_columns": lambda at: at.model.update_columns(
        [20, 21], [2, 3], np.ones(5), {0: [1, 1, 1, 2, 2]}, kept=[0, -1, 1, -1, -1]
    ),
    "update_integrality": lambda at: at.model.update_integrality(20, False),
    "fix": lambda at: at.model.fix(20, 1),
    "batch": batch,
    "a batch that fails": wrong_batch,
    "compact": lambda at: at.session.compact(),
    "reset": lambda at: at.session.reset(),
    "solve": lambda at: at.session.solve(),
    "solve_integer": lambda at: at.session.solve_integer(),
    "save": lambda at: at.session.save(at.folder / "saved"),
    "load": lambda at: Session.load(at.folder / "before", journal=None),
    "record": lambda at: at.session.record(at.folder / "other") if at.model.ledger.tape is None else None,
    "record(None)": lambda at: at.session.record(None),
}
FILED = ("save", "load", "record", "record(None)")  # these write or read files, which no two children may share
PLAIN = frozenset(("save", "load", "compact", "reset", "solve", "solve_integer", "record", "record(None)"))


def contents(model: Model) -> tuple[Any, ...]:
    """All that a model holds."""
    lp = model.to_linear_program()
    matrix = lp.A.tocsc()
    matrix.sort_indices()
    arrays = (lp.c, matrix.data, matrix.indices, matrix.indptr, lp.row_lower, lp.row_upper, lp.col_lower, lp.col_upper)
    whole = tuple(model.is_integer(request) for request in model.requests)
    return (
        *(each.tobytes() for each in arrays),
        repr(model.requests),
        repr(model.resources),
        whole,
        len(model.templates),
    )


class Interrupt(BaseException):
    """What the handler of a signal raises."""


def interrupted(call: Callable[[], object], at: int) -> int:
    """Run a call and raise before its instruction number `at`; returns how many there were."""
    seen = 0

    def tracer(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename == __file__:
            return tracer
        frame.f_trace_opcodes = True
        return local

    def local(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal seen
        if event == "opcode":
            seen += 1
            if seen == at:
                sys.settrace(None)
                raise Interrupt
        return local

    sys.settrace(tracer)
    try:
        call()
    except Interrupt:
        pass
    finally:
        sys.settrace(None)
    return seen


def variant(name: str, seed: int) -> tuple[bool, bool, bool]:
    """Whether there is a journal, a tape, and ids whose hash is Python's (which neither of the two takes)."""
    draw = random.Random(f"{name} {seed}")
    names = name not in ("save", "load", "record", "record(None)") and draw.random() < 0.3
    journal = not names and draw.random() < 0.3
    return journal, not names and (name == "record(None)" or draw.random() < 0.2), names


def prepared(name: str, folder: Path, with_: tuple[bool, bool, bool]) -> Scene:
    """The scene of a call."""
    folder.mkdir(parents=True)
    at = scene(folder, *with_)
    if name in ("solve", "solve_integer"):
        at.model.update_column_cost(20, 1, 9.0)
    if name in ("load",):
        at.session.save(folder / "before", restart_journal=False)
    return at


FIRST = ("edit", "compact", "copy", "save")  # what comes first after an interrupted call


def judged(at: Scene, before: tuple[Any, ...], after: tuple[Any, ...], name: str, first: str = "edit") -> str | None:
    """What is wrong after an interrupted call; None if nothing is."""
    model, session = at.model, at.session
    now = contents(model)
    if now != before and now != after:
        return "half of it happened"
    if first == "compact":
        session.compact()
    elif first == "copy" and contents(pickle.loads(pickle.dumps(session)).model) != now:
        return "a copy is another one"
    elif first == "save":
        session.save(at.folder / f"first-{os.getpid()}", restart_journal=False)
        if contents(Session.load(at.folder / f"first-{os.getpid()}", journal=None).model) != now:
            return "what was saved then is another session"
    kept = at.folder / "saved"
    if kept.exists() and contents(Session.load(kept, journal=None).model) != before:
        return "a saved session is another one"
    if name == "load" and contents(Session.load(at.folder / "before", journal=None).model) != before:
        return "what was loaded is another session"
    model.update_column_cost(model.requests[0], 0, 1.5)
    model.remove_request(model.requests[-1])
    model.add_request("fresh", [3.0, 4.0], {0: [1, 2]}, integer=True)
    answer, plan = session.solve(), session.solve_integer()
    right = Session(model, Settings(threads=1)).solve()
    if answer.status is not right.status or abs(answer.objective - right.objective) > AGREES * (
        1.0 + abs(right.objective)
    ):
        return f"the next optimum is {answer.objective!r}, not {right.objective!r}"
    if not plan.is_feasible:
        return f"the next plan is {plan.status.value}"
    session.compact()
    if abs(session.solve().objective - right.objective) > AGREES * (1.0 + abs(right.objective)):
        return "compacted, the optimum is another"
    whole = contents(model)
    if model.ledger.journal is not None:
        session.journal(None)
        if contents(journaled(at.folder)) != whole:
            return "the journal holds other edits than the model"
    if model.ledger.tape is not None:
        session.record(None)
    for tape in ("tape", "other"):
        if (at.folder / tape).exists():
            for number, _, faults in verify.verify(at.folder / tape):
                if faults:
                    return f"{tape}: round {number}: {faults}"
            played = list(map(solved, Playback(at.folder / tape)))
            if tape == "tape" and name != "record(None)" and abs(played[-1][0].objective - right.objective) > 1e-5:
                return "the tape plays to another optimum"
    return None


def journaled(folder: Path) -> Model:
    """The model that a journal leads to: from its own beginning, or from the snapshot that the call still saved."""
    try:
        return Session.load(folder / "journal").model
    except copter.SnapshotError:
        return Session.load(folder / "saved").model


def in_child(work: Callable[[], str | None], patience_s: float = PATIENCE_S) -> str | None:
    """What a child process finds wrong; its end by a signal is wrong too, and no end in two children.

    One child may hang at its beginning: a lock of the C library or of a sanitizer, which another thread held at the
    fork, stays locked in it.
    """
    found = _in_one_child(work, patience_s)
    return _in_one_child(work, patience_s) if found == HANGS else found


def _in_one_child(work: Callable[[], str | None], patience_s: float) -> str | None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        sys.unraisablehook = lambda _: None  # Python prints what is raised in a weak reference's callback, and goes on
        try:
            found = work() or ""
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        os.write(write, found.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        hangs = not select.select([pipe], [], [], patience_s)[0]
        if hangs:
            os.kill(child, signal.SIGKILL)
        found = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if hangs:
        return HANGS
    return f"the process ended by {signal.Signals(-code).name}" if code < 0 else found or None


@cache
def shared(name: str, with_: tuple[bool, bool, bool], folder: Path) -> Scene:
    """The scene of a call, which each child has a copy of; not with files, which children would share."""
    return prepared(name, folder / f"shared-{os.getpid()}-{name}-{with_}".replace(" ", ""), with_)


@cache
def measured(name: str, with_: tuple[bool, bool, bool], folder: Path) -> tuple[Any, Any, int]:
    """Contents before and after a call, and the number of its instructions."""
    at = prepared(name, folder / f"measured-{os.getpid()}-{abs(hash((name, with_)))}", with_)
    before = contents(at.model)
    count = interrupted(lambda: CALLS[name](at), -1)
    after = contents(at.model)
    if at.model.ledger.tape is not None:
        at.session.record(None)
    if at.model.ledger.journal is not None:
        at.session.journal(None)
    return before, after, count


def at_an_instruction(seed: int, folder: Path) -> str | None:
    """One call, interrupted before one of its instructions."""
    names = list(CALLS)
    name = names[seed % len(names)]
    with_ = variant(name, seed // len(names) % 7)
    before, after, count = measured(name, with_, folder)
    if not count:
        return None  # nothing of it is run by Python
    place = random.Random(seed).randrange(1, count + 1)

    ready = None if with_[0] or with_[1] or name in FILED else shared(name, with_, folder)
    # ids whose hash is Python's go into no file
    first = random.Random(f"first {seed}").choice(FIRST[:3] if with_[2] else FIRST)

    def work() -> str | None:
        at = ready or prepared(name, folder / f"at-{seed}", with_)
        interrupted(lambda: CALLS[name](at), place)
        return judged(at, before, after, name, first)

    found = in_child(work)
    return None if found is None else f"{name}, instruction {place} of {count}, {with_}, then {first}: {found}"


def by_a_timer(seed: int, folder: Path) -> str | None:
    """Many calls in one process, each ended by a timer's signal somewhere, in C too."""

    def rung(number: int, frame: FrameType | None) -> None:
        if frame is None or frame.f_code.co_filename != __file__:  # a later signal may come while this file judges
            raise Interrupt

    def work() -> str | None:
        draw = random.Random(seed)
        signal.signal(signal.SIGALRM, rung)
        at = None
        for turn in range(ROUNDS):
            name = draw.choice([each for each in CALLS if each not in ("record", "record(None)", "load", "save")])
            if at is None or draw.random() < 0.2:
                at = prepared(name, folder / f"timer-{seed}-{turn}", (False, False, draw.random() < 0.3))
            before = contents(at.model)
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, LONGEST_S), draw.choice([0.0, 1e-4]))
                try:
                    CALLS[name](at)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
            except Interrupt:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                if contents(at.model) != before:
                    at = None  # it happened, or half of it: the other trial tells; here nothing may break
                else:
                    at.session.solve()
            except copter.CopterError:
                at = None  # what an earlier call removed
        return None

    return in_child(work)
