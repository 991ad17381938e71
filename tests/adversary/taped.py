"""Tapes of random sessions: the verifier accepts every answer, and rejects each in which one number is a lie."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np

from copter import CopterError, Model, PrivateRows, Session, Settings, verify
from copter.session.playback import Playback
from tests.copter.storage.tape.lies import told

ROUNDS = 4
CROWDED = 50  # rounds of a session whose threads change places as often as they can
SWITCH_S = 1e-6
METHODS = ("auto", "auto", "auto", "proximal", "interior", "basis", "simplex")
Rng = np.random.Generator


def number(rng: Rng) -> float:
    """A small number, whole or not, of either sign."""
    return float(rng.choice([0.0, rng.integers(-3, 6), rng.normal(), rng.uniform(0, 4)]))


def request(model: Model, name: object, rng: Rng) -> None:
    """Add a request with any of the bounds that there are; one that the model refuses is left out."""
    n = int(rng.integers(1, 4))
    names = [each for each in model.resources if rng.random() < 0.7] or list(model.resources[:1])
    usage = {each: rng.choice([0.0, 1.0, 2.0, rng.uniform(0, 3), -1.0], n) for each in names}
    more: dict[str, Any] = {"limit": float(rng.choice([1.0, 2.0, 4.5, np.inf]))}
    if rng.random() < 0.4:
        more["at_least"] = float(rng.choice([0.0, 1.0, 0.5, -1.0]))
    if rng.random() < 0.3:
        more["lower"] = float(rng.choice([0.0, 1.0, 0.25, -1.0]))
    elif rng.random() < 0.1:
        more["lower"] = -np.inf
    if rng.random() < 0.3:
        more["upper"] = float(rng.choice([1.0, 2.0, 0.75]))
    if rng.random() < 0.2:
        more["private_rows"] = PrivateRows(
            rng.integers(-1, 3, (1, n)).astype(float), -np.inf, float(rng.integers(1, 4))
        )
    more["integer"] = bool(rng.random() < 0.3)
    with suppress(CopterError):
        model.add_request(name, [number(rng) for _ in range(n)], usage, **more)


def edited(model: Model, turn: int, rng: Rng) -> None:
    """A few edits; those that the model refuses are left out."""
    for k in range(int(rng.integers(1, 5))):
        names = list(model.requests)
        name = names[int(rng.integers(len(names)))] if names else None
        which = int(rng.integers(7))
        with suppress(CopterError):
            if which == 0 or name is None:
                request(model, ("later", turn, k), rng)
            elif which == 1:
                model.remove_request(name)
            elif which == 2:
                model.update_cost(name, [number(rng) for _ in model.cost(name)])
            elif which == 3:
                model.update_limit(name, float(rng.choice([1.0, 2.0, np.inf])))
            elif which == 4:
                model.fix(name, 0)
            elif which == 5:
                model.unfix(name)
            else:
                resource = model.resources[int(rng.integers(len(model.resources)))]
                count = float(rng.uniform(0, 9))
                model.set_count(resource, count, lower=float(rng.choice([-np.inf, 0.0, count / 2, count])))


def recorded(seed: int, path: Path) -> None:
    """Record a random session."""
    rng = np.random.default_rng(seed)
    model = Model(str(rng.choice(["max", "min"])), offset=number(rng))  # type: ignore[arg-type]
    for name in "gh"[: int(rng.integers(1, 3))]:
        model.set_count(name, float(rng.choice([4.0, 6.0, 0.5, rng.uniform(1, 9)])), lower=-np.inf)
    session = Session(model, Settings(threads=1, method=METHODS[seed % len(METHODS)], time_limit_s=5.0))
    session.record(path)
    for name in range(int(rng.integers(1, 6))):
        request(model, name, rng)
    for turn in range(ROUNDS):
        try:
            if rng.random() < 0.4:
                session.solve_integer()
            else:
                session.solve()
        except CopterError:
            session.settings = Settings(threads=1)  # a method that takes no such model
        edited(model, turn, rng)
    session.record(None)


def accepted(seed: int, folder: Path) -> str | None:
    """A tape of a random session, of which every answer is accepted."""
    path = folder / f"tape-{seed}"
    recorded(seed, path)
    try:
        for at, _, faults in verify.verify(path):
            if faults:
                return f"round {at} of a true tape is rejected: {faults[0]}"
    finally:
        path.unlink()
    return None


def rejected(seed: int, folder: Path) -> str | None:
    """A tape of a random session with one lie, which is rejected."""
    path, lie = folder / f"true-{seed}", folder / f"lie-{seed}"
    recorded(seed, path)
    what = next(told(path, lie, np.random.default_rng(seed), 100), None)
    path.unlink()
    if what is None:
        return None  # all rounds are unbounded, or each is infeasible for a request alone
    found = any(faults for _, _, faults in verify.verify(lie))
    lie.unlink()
    return None if found else f"{what} is accepted"


@contextmanager
def impatient() -> Iterator[None]:
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def unlost(seed: int, folder: Path) -> str | None:
    """A session of many requests is edited while its rounds are written: each is on the tape, with its own answer."""
    rng = np.random.default_rng(seed)
    count, path = int(rng.choice([100, 300, 1000], p=[0.4, 0.4, 0.2])), folder / f"crowded-{seed}"
    whole, batched = bool(rng.random() < 0.5), bool(rng.random() < 0.7)
    model = Model("max")
    model.add_resources("g", count)
    sizes = model.add_template({"g": [1, 2, 4]})
    for name in range(count):
        model.add_request(name, rng.uniform(1, 9, 3), template=sizes, integer=whole)
    session = Session(model, Settings(threads=1))
    added, answers = count, []
    with impatient():
        session.record(path)
        for _ in range(CROWDED):
            if whole:
                session.solve_integer()
            else:
                session.solve()
            answers.append((session.last_solution.objective, len(model.requests)))
            leaving, coming = int(rng.poisson(20)), int(rng.poisson(20))
            with model.batch() if batched else nullcontext():
                model.remove_requests(model.requests[:leaving])
                for name in range(added, added + coming):
                    model.add_request(name, rng.uniform(1, 9, 3), template=sizes, integer=whole)
                model.set_count("g", count + int(rng.integers(10)))
            added += coming
        session.record(None)
    try:
        faults = [faults for _, _, faults in verify.verify(path)]
        if len(faults) != CROWDED:
            return f"of {CROWDED} rounds {len(faults)} are on the tape"
        if any(faults):
            return f"a round of a true tape is rejected: {next(filter(None, faults))[0]}"
        played = [(each.mark["answer"]["objective"], len(each.session.model.requests)) for each in Playback(path)]
        if played != answers:
            return "the tape holds other rounds than were solved"
    finally:
        path.unlink()
    return None
