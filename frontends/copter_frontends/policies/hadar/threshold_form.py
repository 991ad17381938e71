"""The threshold form of a round: an integer per (job, slowest type used), continuous GPUs (H8).

The compact LP of :mod:`copter_frontends.policies.hadar.formulation` relaxes this program. The shim solves it over the
few jobs with close decisions; tests solve it over all jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from copter import LinearProgram
from copter_frontends.policies.hadar.job_book import Floats, Ints

Matrix = sp.csc_array


@dataclass(frozen=True, slots=True)
class Choices:
    """Options of some jobs, taken from :class:`~copter_frontends.policies.hadar.round_values.RoundValues`.

    `gpus` (n,), `rate`, `pure`, `mixed` (n, types), `own` (n,) and `held` (n, types); see there.
    """

    gpus: Ints
    rate: Floats
    pure: Floats
    mixed: Floats
    own: Floats
    held: Ints


class ThresholdForm:
    """The program max sum P_jq p_jq + sum M_jr z_jr + sum K_j k_j over jobs with at most one option (H8).

    p_jq: W_j GPUs of type q. z_jr: a mixture whose slowest type is r, with n_jrq GPUs of the types q that are at least
    as fast. k_j: the job's current GPUs. For whole p, z and k the GPUs n are a transportation problem, whose vertices
    are whole.

    Parameters
    ----------
    choices : Choices
    left : int64 array (types,)
        GPUs of each type.
    mixtures : bool array (n,), optional
        Jobs that may get new mixtures, by default all; fewer make the program much smaller.
    posted : tuple of float64 array (types, segments) and int64 array (types,), optional
        Ascending posted prices of equal parts of the types' capacities, and the capacities: GPUs in use cost these
        prices, other jobs' GPUs counted first (H10).
    """

    def __init__(
        self,
        choices: Choices,
        left: Ints,
        mixtures: NDArray[np.bool_] | None = None,
        posted: tuple[Floats, Ints] | None = None,
    ) -> None:
        self.choices, self.left, self.posted = choices, left, posted
        n = len(choices.rate)
        self.pure = np.argwhere((choices.pure > 0) & (choices.gpus[:, None] <= left))
        own = (choices.own > 0) & (choices.held <= left).all(axis=1) & ~self._is_pure()
        self.own = np.flatnonzero(own)
        may_mix = np.ones(n, dtype=bool) if mixtures is None else mixtures
        self.mixed = np.argwhere((choices.mixed > 0) & (left > 0) & may_mix[:, None])
        eligible = choices.rate[self.mixed[:, 0]] >= choices.rate[self.mixed[:, 0], self.mixed[:, 1]][:, None]
        eligible &= left > 0
        room = (eligible * left).sum(axis=1) >= choices.gpus[self.mixed[:, 0]]
        several = eligible.sum(axis=1) > 1
        self.mixed, eligible = self.mixed[room & several], eligible[room & several]
        self.parts = np.argwhere(eligible)  # (threshold, type)
        self.whole = len(self.pure) + len(self.mixed) + len(self.own)  # number of integer columns, which come first
        self.jobs = n

    def _is_pure(self) -> NDArray[np.bool_]:
        held, gpus = self.choices.held, self.choices.gpus
        return np.asarray((held.sum(axis=1) == gpus) & (held.max(axis=1, initial=0) == gpus))

    def linear_program(self, whole: bool = True) -> LinearProgram:
        """Return the program as a maximisation; with `whole`, p, z and k are integer."""
        c = self.choices
        pure, mixed, own, parts = self.pure, self.mixed, self.own, self.parts
        n_pure, n_mixed, n_own, n_parts = len(pure), len(mixed), len(own), len(parts)
        kinds, columns = len(self.left), self.whole + n_parts
        cost = np.concatenate(
            [c.pure[pure[:, 0], pure[:, 1]], c.mixed[mixed[:, 0], mixed[:, 1]], c.own[own], np.zeros(n_parts)]
        )
        at_mixed, at_own, at_part = n_pure, n_pure + n_mixed, self.whole
        owner = np.concatenate([pure[:, 0], mixed[:, 0], own])
        use = [  # rows: one per job, then one per threshold, then one per type
            (owner, np.arange(self.whole), np.ones(self.whole)),
            (self.jobs + np.arange(n_mixed), at_mixed + np.arange(n_mixed), -c.gpus[mixed[:, 0]].astype(np.float64)),
            (self.jobs + parts[:, 0], at_part + np.arange(n_parts), np.ones(n_parts)),
            (self.jobs + n_mixed + pure[:, 1], np.arange(n_pure), c.gpus[pure[:, 0]].astype(np.float64)),
            (self.jobs + n_mixed + parts[:, 1], at_part + np.arange(n_parts), np.ones(n_parts)),
            (
                self.jobs + n_mixed + np.tile(np.arange(kinds), n_own),
                np.repeat(at_own + np.arange(n_own), kinds),
                c.held[own].ravel().astype(np.float64),
            ),
        ]
        row, column, value = (np.concatenate(each) for each in zip(*use, strict=True))
        rows = self.jobs + n_mixed + kinds
        upper = np.concatenate([np.ones(self.jobs), np.zeros(n_mixed), self.left.astype(np.float64)])
        lower = np.concatenate([np.full(self.jobs, -np.inf), np.zeros(n_mixed), np.full(kinds, -np.inf)])
        top = np.concatenate([np.ones(self.whole), self.left[parts[:, 1]].astype(np.float64)])
        integrality = np.full(columns, whole)
        if self.posted is not None:
            prices, capacity = self.posted
            segments = prices.shape[1]
            row = np.concatenate([row, np.repeat(rows - kinds + np.arange(kinds), segments)])
            column = np.concatenate([column, columns + np.arange(prices.size)])
            value = np.concatenate([value, np.full(prices.size, -1.0)])
            upper[rows - kinds :] = self.left - capacity  # all GPUs in use, including those of these jobs, are paid for
            cost = np.concatenate([cost, -prices.ravel()])
            top = np.concatenate([top, np.repeat(capacity / segments, segments)])
            integrality = np.concatenate([integrality, np.zeros(prices.size, dtype=bool)])
            columns += prices.size
        matrix = sp.csc_array((value, (row, column)), shape=(rows, columns))
        return LinearProgram(cost, matrix, lower, upper, np.zeros(columns), top, integrality.astype(np.int64), "max")

    def bundles(self, x: Floats) -> Ints:
        """Return the GPUs of each type for each job, (jobs, types), of a whole point."""
        c = self.choices
        result = np.zeros((self.jobs, len(self.left)), dtype=np.int64)
        taken = np.flatnonzero(x[: len(self.pure)] > 0.5)
        result[self.pure[taken, 0], self.pure[taken, 1]] = c.gpus[self.pure[taken, 0]]
        own = self.own[x[len(self.pure) + len(self.mixed) : self.whole] > 0.5]
        result[own] = c.held[own]
        amount = np.rint(x[self.whole : self.whole + len(self.parts)]).astype(np.int64)
        chosen = x[len(self.pure) : len(self.pure) + len(self.mixed)] > 0.5
        kept = chosen[self.parts[:, 0]] & (amount > 0)
        np.add.at(result, (self.mixed[self.parts[kept, 0], 0], self.parts[kept, 1]), amount[kept])
        return result
