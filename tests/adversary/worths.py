"""Models with concave worths, edited and solved again: every round judged by Clarabel, some in exact arithmetic too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from copter import EditNotAllowedError, Model, Session, Solution, Status
from copter.verify.judge import verify
from tests.adversary.worth_peer import Book, Curve, Job

ROUNDS = 5
TAPED = 4  # one model of so many is recorded, and its tape is verified


def some_curve(rng: np.random.Generator) -> Curve | None:
    """Return a random worth; None for a linear request."""
    weight, floor = float(np.exp(2.0 * rng.normal())), float(rng.choice([0.0, 0.0, 0.01, 1.0]))
    kind = int(rng.integers(7))
    if kind == 0:
        return Curve("log", (weight, floor))
    if kind == 1:
        return Curve("power", (float(rng.choice([0.3, 0.5, 0.9, 1.1, 2.0, 4.0])), weight, floor))
    if kind == 2:
        lines = np.c_[rng.uniform(-1.0, 4.0, 4), rng.uniform(0.0, 4.0, 4)]
        return Curve("lines", tuple(map(tuple, lines.tolist())))  # type: ignore[arg-type]
    if kind == 3:
        return Curve("quadratic", (float(rng.uniform(-0.5, 3.0)), weight))
    if kind == 4:  # min(slope * z, most)
        return Curve("lines", ((weight, 0.0), (0.0, float(rng.uniform(0.1, 3.0)))))
    if kind == 5:
        points = int(rng.integers(3, 41))
        z = np.append(0.0, np.cumsum(rng.uniform(0.02, 0.5, points - 1)))
        slopes = np.sort(rng.normal(1.0, 1.0, points - 1))[::-1]
        values = rng.normal() + np.append(0.0, np.cumsum(slopes * np.diff(z)))
        return Curve("points", tuple(zip(z.tolist(), values.tolist(), strict=True)))
    return None


def some_job(rng: np.random.Generator, rows: int) -> Job:
    """Return a random request over so many resources."""
    n, curve = int(rng.integers(1, 8)), some_curve(rng)
    usage = np.round((rng.random((rows, n)) < 0.5) * rng.uniform(0.1, 3.0, (rows, n)), 2)
    return Job(
        rng.normal(size=n) * (rng.random() < 0.3),
        usage,
        float(rng.choice([1.0, 0.25, 4.0, 50.0])),
        bool(rng.random() < 0.05),
        curve,
        None if curve is None else some_rates(rng, n),
    )


def some_rates(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Return rates, some of them zero, not all."""
    rates = np.maximum(rng.uniform(-0.5, 3.0, n), 0.0)
    rates[0] = max(rates[0], 0.1)
    return rates


class Trial:
    """A model and its book, edited side by side."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        jobs = int(self.rng.choice([1, 3, 10, 40], p=[0.25, 0.35, 0.3, 0.1]))
        self.book = Book(self.rng.uniform(0.1, 1.5, int(self.rng.integers(1, 7))) * jobs, offset=0.5)
        self.model, self.added = Model(sense="max", offset=0.5), 0
        for at, count in enumerate(self.book.counts.tolist()):
            self.model.add_resource(at, count)
        for _ in range(jobs):
            self.add()

    def add(self) -> None:
        """Add a random request."""
        job, name = some_job(self.rng, len(self.book.counts)), self.added
        more = {} if job.curve is None else {"worth": job.curve.made(), "rates": job.rates}
        least = job.limit if job.exact else -np.inf
        usage = dict(enumerate(job.usage))
        self.model.add_request(name, job.cost, usage, limit=job.limit, at_least=least, **more)  # type: ignore[arg-type]
        self.book.jobs[name] = job
        self.added += 1

    def edit(self) -> None:
        """Make one random edit on both sides."""
        rng, model, book = self.rng, self.model, self.book
        name = int(rng.choice(list(book.jobs)))
        job, row, kind = book.jobs[name], int(rng.integers(len(book.counts))), int(rng.integers(9))
        if kind == 0 and len(book.jobs) > 1:
            model.remove_request(name)
            del book.jobs[name]
        elif kind == 1:
            self.add()
        elif kind == 2:
            more = float(rng.uniform(0.0, 2.0))
            model.add_resource(row, more)
            book.counts[row] += more
        elif kind == 3:  # units fail, now and then all of them
            less = float(book.counts[row]) * (1.0 if rng.random() < 0.1 else float(rng.uniform(0.0, 0.9)))
            model.remove_units(row, less)
            book.counts[row] = model.count(row)
        elif kind == 4:
            job.cost = rng.normal(size=len(job.cost))
            model.update_cost(name, job.cost)
        elif kind == 5:
            job.limit = float(rng.choice([0.5, 2.0]))
            model.update_limit(name, job.limit, job.limit if job.exact else -np.inf)
        elif kind == 6 and job.curve is not None:
            job.rates = some_rates(rng, len(job.cost))
            model.update_worth(name, rates=job.rates)
        elif job.curve is not None and rng.random() < 0.1:
            model.drop_worth(name)
            job.curve = job.rates = None
        else:
            job.curve = some_curve(rng) or Curve("log", (1.0, 0.1))
            job.rates = some_rates(rng, len(job.cost)) if job.rates is None else job.rates
            model.update_worth(name, job.curve.made(), job.rates)

    def judged(self, session: Session) -> str | None:
        """Solve; return what Clarabel, or the numbers themselves, say against the answer."""
        starved = self.book.starved()
        try:
            found = session.solve()
        except EditNotAllowedError as error:
            if not starved:
                return f"refused: {error}"
            for name in starved:  # the next round goes on without them
                self.model.remove_request(name)
                del self.book.jobs[name]
            if not self.book.jobs:
                self.add()
            return None
        if starved and found.status is not Status.PRIMAL_INFEASIBLE:
            return f"{found.status.value}, but requests {starved} are worth -inf"
        return None if starved else self.against(found)

    def against(self, found: Solution) -> str | None:
        """Return what is wrong with an answer: its point, or a bound below what a point of Clarabel's is worth."""
        book = self.book
        status, theirs = book.optimum()
        if found.status is Status.PRIMAL_INFEASIBLE:
            return None if found.ray is not None and status != "Solved" else f"infeasible; Clarabel: {status}"
        if found.status is not Status.OPTIMAL:
            return f"no answer: {found.status.value}, gap {found.gap:.1e}; Clarabel: {status}"
        x = {name: found.of(name) for name in book.jobs}
        own, size = book.value(x), 1.0 + abs(found.objective)
        if abs(own - found.objective) > 1e-9 * size:
            return f"objective {found.objective}, the point is worth {own}"
        if book.violation(x) > 1e-6:
            return f"the point breaks a row by {book.violation(x):.1e}"
        if found.gap > 1.001e-6 or not found.bound - found.objective <= 3e-6 * size:
            return f"bound {found.bound} of {found.objective}, gap {found.gap}"
        if status == "PrimalInfeasible":
            return f"optimal {found.objective}; Clarabel: infeasible"
        if "Solved" not in status or any(job.exact for job in book.jobs.values()):
            return None  # nothing mends a point whose sums must be whole; the tapes' verifier judges these
        most = book.value(book.mended(theirs))
        return f"bound {found.bound} below a point worth {most}" if found.bound < most - 1e-13 * size else None


def trial(seed: int, folder: Path) -> str | None:
    """Solve a random model and four edits of it; return the first fault."""
    each, path = Trial(seed), folder / f"worths{seed}"
    session, taped = Session(each.model), seed % TAPED == 0
    if taped:
        session.record(path)
    wrong = None
    for number in range(ROUNDS):
        if number:
            each.edit()
        wrong = wrong or ((fault := each.judged(session)) and f"round {number}: {fault}")
    if taped:
        session.record(None)
        for at, _, faults in verify(path):
            wrong = wrong or (f"round {at}: {faults[0]}" if faults else None)
        path.unlink()
    return wrong
