"""Conversion of a kept basis to plain arrays and back, for snapshots and copies of sessions."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from copter.methods.blocks.answer import BlockAnswer
from copter.methods.blocks.basis import BlockWarmBasis, LastRound, cold_work, dual_of
from copter.methods.blocks.program import BlockProgram
from copter.methods.blocks.slotted_program import SlottedProgram
from copter.methods.blocks.sparse_dual import SparseDual
from copter.methods.blocks.working_inverse import WorkingInverse
from copter.methods.choose import MOST_FAILURES

PATIENCE = ("failures", "resting", "unsettled", "waiting", "ties")  # counts of a basis


def basis_state(basis: BlockWarmBasis | None) -> dict[str, Any] | None:
    """Return everything the next round needs; sparse factors are made anew from the basis."""
    if basis is None:
        return None
    last, answer, patience = basis.last, basis.answer, [getattr(basis, name) for name in PATIENCE]
    if last is None:
        return {"patience": patience} if any(patience) else None
    dual = last.dual
    own = {"norms": dual.norms} if isinstance(dual, SparseDual) else {"inverse": dual.inverse.entries}
    return {
        "patience": patience,
        "program": {field.name: getattr(last.program, field.name) for field in fields(BlockProgram)},
        "slots": last.slots,
        "generation": last.generation,
        "scale": last.scale,
        "factor": last.factor,
        **own,
        "prices": dual.prices,
        "heads": dual.heads,
        "keys": dual.keys,
        "at_uppers": dual.at_uppers,
        "answer": None if answer is None else [answer.x, answer.y, answer.private],
    }


def basis_from(state: dict[str, Any] | None) -> BlockWarmBasis | None:
    """Rebuild the basis; raises ValueError if the arrays are not a basis."""
    if state is None:
        return None
    basis = BlockWarmBasis()
    for name, count in zip(PATIENCE, state.get("patience", ()), strict=False):  # earlier files have fewer
        require(0 <= int(count) < 2**MOST_FAILURES or (name == "ties" and int(count) >= 0), "its counts are none")
        setattr(basis, name, int(count))
    require(max(basis.failures, basis.unsettled) <= MOST_FAILURES, "its counts are none")
    if "program" not in state:
        return basis
    program = BlockProgram(**{name: plain(value) for name, value in state["program"].items()})
    slots, generation, scale = (plain(state[name]) for name in ("slots", "generation", "scale"))
    heads, keys, high = (plain(state[name]) for name in ("heads", "keys", "at_uppers"))
    require_program(program)
    blocks, n, m = len(program.column_start) - 1, program.n_columns, program.n_rows
    prices = plain(state["prices"])
    shapes: list[tuple[NDArray[Any], tuple[int, ...]]] = [
        (slots, (blocks,)),
        (generation, (blocks,)),
        (scale, (m,)),
        (heads, (m,)),
        (keys, (blocks,)),
    ]
    shapes += [(high, (n + blocks + m,)), (prices, (m,))]
    require(all(array.shape == shape for array, shape in shapes), "its arrays differ in length")
    within = keys == n + np.arange(blocks)
    within |= (keys >= program.column_start[:-1]) & (keys < program.column_start[1:])
    require(bool(within.all()), "a key is not of its block")
    require(bool(((heads >= -1) & (heads < n + blocks + m)).all()), "a basic variable is none of the program's")
    basic = np.sort(heads[heads >= 0])
    require(bool((np.diff(basic) > 0).all()) and not np.isin(keys, basic).any(), "a variable is basic twice")
    factor = float(state["factor"])
    sound = np.isfinite(scale).all() and (scale > 0.0).all() and np.isfinite(prices).all()
    require(bool(sound) and np.isfinite(factor) and factor > 0.0, "a scale or price is no number")
    with np.errstate(all="ignore"):
        dual = dual_of(program, scale, factor, slots)
    if isinstance(dual, SparseDual):
        norms = plain(state.get("norms"))
        require(norms is None or (norms.shape == (m,) and bool((norms > 0.0).all())), "a row has no length")
        rests = dual.enter(prices, heads, keys, high, norms)
    else:
        inverse, entries = WorkingInverse(m), plain(state["inverse"])
        require(entries.shape == (m, m) and bool(np.isfinite(entries).all()), "an entry of its inverse is no number")
        inverse.entries[:] = entries
        rests = dual.take(inverse, prices, heads, keys, high)
    require(rests, "a variable rests at no bound")
    basis.last = LastRound(program, slots, generation, scale, factor, dual, cold_work(program))
    if state["answer"] is not None:
        x, y, private = (plain(each) for each in state["answer"])
        own = len(program.lower) - n - m
        require(x.shape == (n,) and y.shape == (m,) and private.shape == (own,), "its answer differs in length")
        basis.answer = BlockAnswer(x, y, 0, private, vertex=True)
    each = np.arange(blocks + 1)
    if np.array_equal(np.sort(slots), each[:-1]) and np.array_equal(program.private_start, each):
        basis.slotted, basis.stays = SlottedProgram.holding(program, slots, generation), basis.answer is not None
    return basis


def require_program(program: BlockProgram) -> None:
    """Raise ValueError unless the program's arrays are consistent and all indices are in range."""
    n, m = program.n_columns, program.n_rows
    blocks, own = len(program.column_start) - 1, len(program.lower) - program.n_columns - program.n_rows
    ends = (
        (program.column_start, n, blocks + 1),
        (program.private_start, own, blocks + 1),
        (program.start, len(program.row), n + 1),
        (program.own_start, len(program.own_row), n + 1),
    )
    for array, last, length in ends:
        sound = array.shape == (length,) and array[0] == 0 and array[-1] == last and bool((np.diff(array) >= 0).all())
        require(sound, "its arrays do not belong together")
    same = len(program.value) == len(program.row) and len(program.own_value) == len(program.own_row)
    require(same and len(program.upper) == len(program.lower), "its arrays differ in length")
    inside = bool(((program.row >= 0) & (program.row < m)).all()) and not program.own_row.any()
    require(inside, "an entry is in no row")


def require(holds: bool, why: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not holds:
        raise ValueError(f"the basis is damaged: {why}")


def plain(value: Any) -> Any:
    """Return a writable copy of an array; other values unchanged."""
    return np.array(value) if isinstance(value, np.ndarray) else value
