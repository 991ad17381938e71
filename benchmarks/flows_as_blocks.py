"""Flows of commodities over days, as the pds programs are, given as blocks: a commodity is a request with own rows.

python benchmarks/flows_as_blocks.py --size 8 --deadline 900

Size 1 has 6,196 rows and 28,226 columns; 2.7, 8 and 13 are about as large as pds-10, -30 and -50.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from lp_structures import evacuation

from copter import LinearProgram, Model, PrivateRows, Session, Solution

COMMODITIES = 11  # of lp_structures.evacuation


def model_of(lp: LinearProgram) -> Model:
    """The program of :func:`lp_structures.evacuation` with seats as resources and balances as private rows."""
    matrix = lp.A.tocsr()
    seats = int(np.isneginf(lp.row_lower).sum())
    nodes = (matrix.shape[0] - seats) // COMMODITIES
    arcs = matrix.shape[1] // COMMODITIES - 2 * nodes
    model = Model(sense="min")
    for seat, count in enumerate(lp.row_upper[nodes * COMMODITIES :].tolist()):
        model.add_resource(seat, count)
    for at in range(COMMODITIES):
        lost = arcs * COMMODITIES + at * nodes
        parts = ((at * arcs, arcs), (lost, nodes), (lost + nodes * COMMODITIES, nodes))
        columns = np.concatenate([np.arange(first, first + count) for first, count in parts])
        own = slice(at * nodes, (at + 1) * nodes)
        balance = lp.row_lower[own]
        model.add_request(
            at,
            lp.c[columns],
            matrix[nodes * COMMODITIES :, columns],
            resources=range(seats),
            limit=np.inf,
            upper=np.inf,
            private_rows=PrivateRows(matrix[own][:, columns], balance, balance),
        )
    return model


def solved(size: float, deadline_s: float, seed: int = 0) -> tuple[LinearProgram, Solution, float]:
    """(program, solution, seconds of processor time) of a size."""
    lp = evacuation(size, np.random.default_rng(seed))
    session = Session(model_of(lp))
    start = time.process_time()
    solution = session.solve(deadline_s=deadline_s)
    return lp, solution, time.process_time() - start


def main() -> None:
    """Solve one and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deadline", type=float, default=900.0, help="seconds")
    arguments = parser.parse_args()
    lp, solution, seconds = solved(arguments.size, arguments.deadline, arguments.seed)
    rows, columns = lp.shape
    worst = solution.residuals.primal_absolute
    print(f"{rows:,} rows, {columns:,} columns: {solution.status.value}, {solution.objective:,.4f},", end=" ")
    print(f"gap {solution.residuals.gap:.0e}, largest violation {worst:.0e}, {seconds:.1f} s of processor time")


if __name__ == "__main__":
    main()
