"""Tapes from outside scheduling: programs of one structure whose numbers change from round to round, made from a seed.

    python benchmarks/streams.py energy --rounds 60 --seed 1 --tape energy.tape

energy  a rolling horizon of a power system, written with PyPSA: every round is an hour later, with the weather, loads
        and stored energy of that hour on. What is stored at the start is drawn: the rounds are no solver's doing.
reopt   a series of the kind of the MIP Workshop 2023's competition on reoptimisation (Bolusani et al., 2023), whose
        series vary costs, right-hand sides, bounds or coefficients of one integer program: here the relaxation of
        packing with several knapsacks, of which each round changes one of the four.
bounds  bounds of columns and nothing else: the nodes of a dive, which fixes columns one after the other and takes some
        back, over a covering program.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from copter import LinearProgram, Session, Settings
from copter.interop.live_program import block_starts, edit, model_of

Stream = Callable[[int, int], Iterator[LinearProgram]]
HOURS, BUSES = 48, 20  # horizon and size of the power system
KNAPSACKS, ITEMS = 60, 3_000
ROWS, COLUMNS = 400, 2_000  # of the covering program
STEP = 5  # columns that a node of the dive fixes


def energy(rounds: int, seed: int) -> Iterator[LinearProgram]:
    """Dispatch over the hours ahead, round by round an hour later."""
    import pandas as pd
    import pypsa  # an extra of the benchmarks, and slow to load

    logging.getLogger("pypsa").setLevel(logging.ERROR)
    rng = np.random.default_rng(seed)
    network = pypsa.Network()
    network.set_snapshots(pd.RangeIndex(HOURS))
    total = HOURS + rounds
    hour = np.arange(total)
    loads, suns, winds = {}, {}, {}
    for bus in range(BUSES):
        network.add("Bus", f"b{bus}")
        network.add("Load", f"load{bus}", bus=f"b{bus}", p_set=0.0)
        network.add("Generator", f"gas{bus}", bus=f"b{bus}", p_nom=120.0, marginal_cost=float(rng.uniform(40, 80)))
        network.add("Generator", f"sun{bus}", bus=f"b{bus}", p_nom=float(rng.uniform(20, 80)), marginal_cost=0.1)
        network.add("Generator", f"wind{bus}", bus=f"b{bus}", p_nom=float(rng.uniform(20, 120)), marginal_cost=0.2)
        network.add("Generator", f"shed{bus}", bus=f"b{bus}", p_nom=1e3, marginal_cost=3e3)
        network.add("StorageUnit", f"store{bus}", bus=f"b{bus}", p_nom=20.0, max_hours=6.0, efficiency_store=0.95)
        loads[bus] = 60 + 30 * np.sin(2 * np.pi * (hour - 8 + rng.uniform(-2, 2)) / 24) + rng.normal(0, 4, total)
        suns[bus] = np.clip(np.sin(2 * np.pi * (hour - 6) / 24), 0.0, 1.0) * rng.uniform(0.4, 1.0, total)
        winds[bus] = np.clip(0.4 + 0.05 * np.cumsum(rng.normal(0, 1, total)), 0.02, 1.0)
    for bus in range(BUSES):
        for other in {(bus + 1) % BUSES, int((bus + 2 + rng.integers(BUSES - 4)) % BUSES)}:
            limit = float(rng.uniform(20, 60))
            network.add("Link", f"l{bus}-{other}", bus0=f"b{bus}", bus1=f"b{other}", p_nom=limit, p_min_pu=-1.0)
    for now in range(rounds):
        ahead = slice(now, now + HOURS)
        for bus in range(BUSES):
            network.loads_t.p_set[f"load{bus}"] = np.round(loads[bus][ahead], 3)
            network.generators_t.p_max_pu[f"sun{bus}"] = np.round(suns[bus][ahead], 3)
            network.generators_t.p_max_pu[f"wind{bus}"] = np.round(winds[bus][ahead], 3)
            network.storage_units.loc[f"store{bus}", "state_of_charge_initial"] = round(float(rng.uniform(20, 100)), 1)
        yield program_of(network.optimize.create_model(include_objective_constant=False))


def program_of(model: Any) -> LinearProgram:
    """The arrays of a linopy model."""
    found = model.matrices
    A = sp.csc_array(found.A)
    A.sort_indices()
    right, sense = np.asarray(found.b, dtype=np.float64), np.asarray(found.sense).astype(str)
    return LinearProgram(
        c=np.asarray(found.c, dtype=np.float64),
        A=A,
        row_lower=np.where(np.char.startswith(sense, "<"), -np.inf, right),
        row_upper=np.where(np.char.startswith(sense, ">"), np.inf, right),
        col_lower=np.asarray(found.lb, dtype=np.float64),
        col_upper=np.asarray(found.ub, dtype=np.float64),
        sense="min",
    )


def reopt(rounds: int, seed: int) -> Iterator[LinearProgram]:
    """Packing of items into knapsacks of several resources; costs, sides, bounds, coefficients in turn."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((KNAPSACKS, ITEMS), density=0.2, rng=rng, format="csc")
    A.data = np.ceil(100.0 * A.data) + 1.0
    lp = LinearProgram(
        c=np.round(rng.uniform(10.0, 100.0, ITEMS), 1),
        A=A,
        row_lower=np.full(KNAPSACKS, -np.inf),
        row_upper=np.round(0.2 * A.sum(axis=1)),
        col_lower=np.zeros(ITEMS),
        col_upper=np.ones(ITEMS),
        sense="max",
    )
    yield lp
    for now in range(1, rounds):
        some = rng.choice(ITEMS, ITEMS // 20, replace=False)
        if now % 4 == 1:
            c = lp.c.copy()
            c[some] = np.round(c[some] * rng.uniform(0.8, 1.2, len(some)), 1)
            lp = replace(lp, c=c)
        elif now % 4 == 2:
            lp = replace(lp, row_upper=np.round(lp.row_upper * rng.uniform(0.95, 1.05, KNAPSACKS)))
        elif now % 4 == 3:
            col_upper = np.ones(ITEMS)
            col_upper[some] = 0.0
            lp = replace(lp, col_upper=col_upper)
        else:
            moved = lp.A.copy()
            entries = rng.choice(moved.nnz, moved.nnz // 50, replace=False)
            moved.data[entries] = np.ceil(100.0 * rng.uniform(size=len(entries))) + 1.0
            lp = replace(lp, A=moved)
        yield lp


def bounds(rounds: int, seed: int) -> Iterator[LinearProgram]:
    """A dive: a few columns are fixed at 1 in every node, and one time in four the last ones are free again."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((ROWS, COLUMNS), density=0.02, rng=rng, format="csc")
    A.data[:] = 1.0
    cover = np.minimum(3.0, np.diff(A.tocsr().indptr).astype(np.float64))
    lp = LinearProgram(
        c=np.round(rng.uniform(1.0, 20.0, COLUMNS), 1),
        A=A,
        row_lower=cover,
        row_upper=np.full(ROWS, np.inf),
        col_lower=np.zeros(COLUMNS),
        col_upper=np.ones(COLUMNS),
        sense="min",
    )
    yield lp
    fixed: list[int] = []
    for now in range(1, rounds):
        if now % 4 == 0:
            del fixed[-STEP:]
        free = np.setdiff1d(np.arange(COLUMNS), fixed)
        fixed += rng.choice(free, STEP, replace=False).tolist()
        col_lower = np.zeros(COLUMNS)
        col_lower[fixed] = 1.0
        lp = replace(lp, col_lower=col_lower)
        yield lp


STREAMS: dict[str, Stream] = {"energy": energy, "reopt": reopt, "bounds": bounds}


def recorded(stream: Stream, rounds: int, seed: int, path: str, settings: Settings) -> None:
    """Solve a stream round by round in one session, and record it.

    Raises
    ------
    SnapshotError
        If the tape cannot be written.
    """
    programs = stream(rounds, seed)
    first = next(programs)
    starts = block_starts(first.shape[1])
    session = Session(model_of(first, starts), settings)
    session.record(path)
    session.solve()
    held = first
    for lp in programs:
        with session.model.batch():
            edit(session.model, starts, held, lp)
        held = lp
        session.solve()
    session.record(None)


def main() -> int:
    """Make the tape that is asked for; 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("stream", choices=sorted(STREAMS))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tape", required=True)
    parser.add_argument("--json", action="store_true", help="taken, as `copter simulate` takes it")
    given = parser.parse_args()
    recorded(STREAMS[given.stream], given.rounds, given.seed, given.tape, Settings(threads=given.threads))
    return 0


if __name__ == "__main__":
    sys.exit(main())
