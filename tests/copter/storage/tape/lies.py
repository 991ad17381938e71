"""Tapes in which one number of an answer is better than the truth; a verifier must reject every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from copter import verify
from copter.storage.encoding import encode
from copter.storage.tape import Record, TapeReader, TapeWriter

TRIES = 10_000  # of lies in a row; those that are none are not told
BETTER = 1e-6  # relative, by which a bound or an objective is moved
Rng = np.random.Generator
Lie = Callable[[dict[str, Any], Any, Rng], bool]


def better_objective(values: dict[str, Any], program: Any, rng: Rng) -> bool:
    """An objective that its point is not worth."""
    values["objective"] -= program.sign * BETTER * (1 + abs(values["objective"]))
    return True


def better_bound(values: dict[str, Any], program: Any, rng: Rng) -> bool:
    """A bound that its prices do not prove."""
    if not values["certified"]:
        return False
    proved = program.sign * float(proof(program, values)) + program.offset if "prices" in values else values["bound"]
    values["bound"] = proved + program.sign * BETTER * (1 + abs(proved))
    return True


def proof(program: Any, answer: dict[str, Any]) -> Any:
    """What an answer's prices prove, exactly."""
    flat = verify.Flat(program)
    y = proof_multipliers(program, flat, answer)
    return max(verify.proven(flat, y, exact=True, box=box) for box in (False, True))


def proof_multipliers(program: Any, flat: Any, answer: dict[str, Any]) -> Any:
    """Of all rows, of the program as it is minimised."""
    return program.sign * verify.multipliers(program, flat, answer)


def turned_price(values: dict[str, Any], program: Any, rng: Rng) -> bool:
    """A price of the wrong sign, as large as it was, without which the bound is not proven: others may do as well."""
    large = np.flatnonzero(np.abs(values["prices"]) > 1e-2)
    if not values["certified"] or not len(large):
        return False
    values["prices"][rng.choice(large)] *= -1
    told = program.sign * (Fraction(values["bound"]) - Fraction(program.offset))
    return bool(proof(program, values) < told)


def larger_value(values: dict[str, Any], program: Any, rng: Rng) -> bool:
    """A column of the point that has one more, which costs something or is beyond its bound: else it may be as good."""
    flat, more = verify.Flat(program), np.ones(len(values["place"]) - len(values["x"]))  # those left out are 1
    values["x"] = np.append(values["x"], more)
    columns = flat.first[values["place"]] + values["column"]
    worse = np.flatnonzero((flat.cost[columns] != 0) | (values["x"] + 1.0 > flat.high[columns] + 0.5))
    if not len(worse):
        return False
    values["x"][rng.choice(worse)] += 1.0
    return True


def one_more(values: dict[str, Any], program: Any, rng: Rng) -> bool:
    """A plan that uses one unit more than there is of a resource, its objective told as it is."""
    names, column, flat = list(program.requests), values["column"], verify.Flat(program)
    for place in rng.permutation(len(names)).tolist():
        request, first, n = program.requests[names[place]], *flat.first[place : place + 2].tolist()
        if not request["integer"][0] or request["fixed"][0] >= 0:
            continue
        for choice in rng.permutation(n - first).tolist():
            before, cost = int(column[place]), flat.cost[first:n]
            if choice == before:
                continue
            column[place] = choice
            more = program.sign * (cost[choice] - (cost[before] if before >= 0 else 0.0))
            values["objective"] += more
            x = verify.planned(flat, values)
            if any("beyond" in fault for fault in verify.point_faults(program, flat, x, values["objective"])):
                return True
            column[place] = before
            values["objective"] -= more
    return False


def turned_ray(values: dict[str, Any], program: Any, rng: Rng, factor: float = -1.0) -> bool:
    """A ray with one wrong sign, without which nothing is proven."""
    if values["ray"] is None:
        return False
    flat = verify.Flat(program)
    parts = values["ray"]["prices"], values["ray"]["own"][2]
    largest = max(parts, key=lambda part: np.abs(part).max(initial=0.0))
    largest[np.argmax(np.abs(largest))] *= factor
    y = verify.multipliers(program, flat, values["ray"])
    return not any(found > 0 for found in verify.attempts(flat, y, False))


def no_ray(values: dict[str, Any], program: Any, rng: Rng) -> bool:
    """A ray that is zero where it mattered most."""
    return turned_ray(values, program, rng, 0.0)


OF_ANSWERS: tuple[Lie, ...] = (better_objective, better_bound, turned_price, larger_value)
OF_PLANS: tuple[Lie, ...] = (better_objective, better_bound, one_more)
OF_RAYS: tuple[Lie, ...] = (turned_ray, no_ray)


def told(path: Path, out: Path, rng: Rng, tries: int = TRIES) -> Iterator[str]:
    """Write one tape after another with one lie each: what the lie is, once the tape is there. It ends if no lie can be
    told.
    """
    records = [(record, record.value()) for record in TapeReader(path)]
    rounds = [at for at, (record, _) in enumerate(records) if record.kind in (b"ROUN", b"PLAN")]
    programs = {at: program_at(records, at) for at in rounds}
    for _ in range(tries):
        at = int(rng.choice(rounds))
        record, value = records[at]
        value = deepcopy(value)
        values = value if record.kind == b"PLAN" else value[-1]["answer"]
        plan = record.kind == b"PLAN"
        answer = records[at - 1][1][-1]["answer"] if plan else values
        if answer["status"] not in ("optimal", "primal_infeasible") or (plan and "column" not in values):
            continue  # the verifier counts these as unanswered
        infeasible = values["status"] == "primal_infeasible"
        lies = OF_PLANS if record.kind == b"PLAN" else OF_RAYS if infeasible else OF_ANSWERS
        lie = lies[int(rng.integers(len(lies)))]
        if lie(values, programs[at], rng):
            written(out, [(each, value if k == at else other) for k, (each, other) in enumerate(records)])
            yield f"{lie.__name__} at record {at} of {path.name}"


def program_at(records: list[tuple[Record, Any]], last: int) -> Any:
    """The verifier's model at a record."""
    programs: dict[int, Any] = {}
    for record, value in records[: last + 1]:
        if record.kind == b"BASE":
            programs[record.stream] = verify.Program(value["model"])
        elif record.kind == b"ROUN":
            for what, operations in value[:-1]:
                for operation in operations if what == "edit" else ():
                    programs[record.stream].do(*operation)
    return programs[records[last][0].stream]


def written(path: Path, records: list[tuple[Record, Any]]) -> None:
    """A tape of these values, sealed as a true one is."""
    path.unlink(missing_ok=True)
    writer = TapeWriter(path)
    for record, value in records:
        assert writer.append(record.kind, record.stream, encode(value))
    writer.close()
