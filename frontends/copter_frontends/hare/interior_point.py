"""An interior-point method for the relaxation: primal-dual, with each job's rows eliminated (docs/hare.md)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from copter_frontends.hare.array_groups import Eliminated, JobPoint, WantedProducts
from copter_frontends.hare.formulation import Relaxation
from copter_frontends.hare.instance import Floats
from copter_frontends.hare.interior_kernels import (
    aim_central,
    aim_second_order,
    factor,
    reduce_rhs,
    shift,
    substitute,
)

Direction = tuple[float, float, Floats]  # largest primal and dual step, sums of x z, x dz, z dx, dx dz

CHUNKS, CHUNK = 16, 32  # most ranges of jobs, least jobs in one; sums go in their order, so that threads change no bits
BACK = 0.9  # share of the way to the boundary that a step goes, so that products stay alike
SHIFT = 1e-13  # share of the diagonal that is added to it, so that no factorisation fails near the end
LARGEST_SIGMA = 0.6  # a step aims at no more than this share of the present products
CORRECTORS = 6  # most of Gondzio's correctors; they end where one lengthens the step too little
LEAST_GAIN = 1.01  # least factor by which a corrector must lengthen the step
MARGIN = 0.5  # share of the largest dual of a job's work at which a cold start begins


@dataclass(slots=True)
class Iterate:
    """A strictly positive primal-dual point of the relaxation, in its scaled units.

    Attributes
    ----------
    v, z : ndarray (N, L, G)
        GPU seconds and their reduced costs.
    slack : ndarray (2, N, L)
        Slacks of HR5 and their duals.
    excess : ndarray (4, N)
        e, its dual, the surplus of HR8, its dual (which is HR8's own).
    lam : ndarray (N,)
        Duals of HR6.
    room : ndarray (2, L, G)
        Slacks of HR4 and their duals: the price of a GPU second.
    """

    v: Floats
    z: Floats
    slack: Floats
    excess: Floats
    lam: Floats
    room: Floats

    @property
    def of_jobs(self) -> JobPoint:
        """The jobs' own part, for the kernels: views, no copies."""
        return JobPoint(self.v, self.z, self.slack, self.excess)

    @property
    def products(self) -> WantedProducts:
        """The jobs' own part of wanted products, for the kernels: views, no copies."""
        return WantedProducts(self.v, self.slack[0], self.excess[0::2])

    def copy(self) -> Iterate:
        """A deep copy."""
        return Iterate(*(getattr(self, name).copy() for name in self.__slots__))

    def zeros(self) -> Iterate:
        """Zeros of the same shapes, for a step."""
        return Iterate(*(np.zeros_like(getattr(self, name)) for name in self.__slots__))


class InteriorPoint:
    """Mehrotra's predictor-corrector on one relaxation.

    Dual feasibility, HR5 and HR8 hold at every iterate; HR4 and HR6 are met in the limit. One iteration is some passes
    over the columns, one product of the columns of HR15 and one factorisation of an (L G, L G) matrix.
    """

    def __init__(self, relaxation: Relaxation, iterate: Iterate, threads: int = 0) -> None:
        self.data, self.at = relaxation, iterate
        n, intervals, types = relaxation.shape
        parts = max(1, min(CHUNKS, n // CHUNK))
        self.ranges = [(n * k // parts, n * (k + 1) // parts) for k in range(parts)]
        self.threads = threads or len(os.sched_getaffinity(0))
        self.step, self.spare, self.want = iterate.zeros(), iterate.zeros(), iterate.zeros()
        self.kept = Eliminated(
            ratio=np.zeros_like(iterate.v),
            inverse=np.zeros_like(iterate.v),
            row=np.zeros((4, n, intervals)),
            inner=np.zeros((n, 4)),
        )
        self.rows = np.zeros((n, 2))
        self.dinner, self.spare_dinner = np.zeros((n, 2)), np.zeros((n, 2))
        self.tall = np.zeros((2 * n, intervals * types))
        self.pairs = pairs(relaxation)
        self.iterations = 0
        self.product = self.complementarity()

    # One iteration ------------------------------------------------------------------------------------------------

    def iterate(self, pool: ThreadPoolExecutor) -> bool:
        """One predictor and one corrector step; False, and nothing moved, where the matrix is no longer positive."""
        if not self._factor(pool):
            return False
        self.want.v[:], self.want.slack[:], self.want.excess[:], self.want.room[:] = 0.0, 0.0, 0.0, 0.0
        primal, dual, sums = self._direction(pool)
        now = sums[0] / self.pairs
        ahead = (sums[0] + dual * sums[1] + primal * sums[2] + primal * dual * sums[3]) / self.pairs
        sigma = min(max(min(1.0, max(ahead, 0.0) / now) ** 3, 1e-6), LARGEST_SIGMA)
        self._aim_second_order(pool, sigma * now)
        primal, dual, sums = self._correct(pool, sigma * now, self._direction(pool))
        primal, dual = min(1.0, BACK * primal), min(1.0, BACK * dual)
        self._move(pool, primal, dual)
        ahead = sums[0] + dual * sums[1] + primal * sums[2] + primal * dual * sums[3]
        self.product = float(ahead) / self.pairs
        self.iterations += 1
        return True

    def _correct(self, pool: ThreadPoolExecutor, target: float, result: Direction) -> Direction:
        """Gondzio's correctors, while they lengthen the step."""
        for _ in range(CORRECTORS):
            self._aim_central(pool, target, min(1.0, 1.1 * result[0] + 0.1), min(1.0, 1.1 * result[1] + 0.1))
            self._swap()
            wider = self._direction(pool)
            gain = (wider[0] + wider[1]) / (result[0] + result[1])
            if gain < 1.0:
                self._swap()
                break
            result = wider
            if gain < LEAST_GAIN:
                break
        return result

    def _swap(self) -> None:
        """Exchange the step and the stored one."""
        self.step, self.spare = self.spare, self.step
        self.dinner, self.spare_dinner = self.spare_dinner, self.dinner

    def complementarity(self) -> float:
        """Mean of x z over all pairs."""
        at, usable = self.at, self.data.usable
        live = self.data.parallel > 0
        total = (at.v * at.z)[usable].sum() + (at.slack[0] * at.slack[1])[live].sum()
        total += at.excess[0] @ at.excess[1] + at.excess[2] @ at.excess[3] + (at.room[0] * at.room[1]).sum()
        return float(total) / self.pairs

    def shortfall(self) -> float:
        """The larger of HR4's residual (norm over the capacities' norm) and HR6's largest, last factorisation's."""
        rows = float(np.linalg.norm(self.short)) / float(np.linalg.norm(self.data.capacity))
        return max(rows, float(np.max(np.abs(self.kept.inner[:, 3]), initial=0.0)))

    def objectives(self) -> tuple[float, float]:
        """(primal, dual) objective, both without the constant."""
        data, at = self.data, self.at
        primal = data.weight @ at.excess[0]
        dual = at.lam.sum() - (data.parallel * at.slack[1]).sum() + data.excess @ at.excess[3]
        return float(primal), float(dual - (data.capacity * at.room[1]).sum())

    def gap(self) -> float:
        """The larger of the two objectives' difference and the sum of all products, in the objective's units."""
        primal, dual = self.objectives()
        return max(abs(primal - dual), self.product * self.pairs)

    # Inside -------------------------------------------------------------------------------------------------------

    def _each(self, pool: ThreadPoolExecutor, call: Callable[..., Any], parts: Sequence[Any]) -> None:
        """call(range, part) for every range of jobs, on the pool's threads where there are several."""
        list((pool.map if len(parts) > 1 else map)(call, self.ranges, parts))

    def _over(self, pool: ThreadPoolExecutor, call: Callable[..., Any], *shapes: tuple[int, ...]) -> list[Floats]:
        """Run call(low, high, *sums) over the ranges; the sums added up in the ranges' order."""
        parts = [tuple(np.zeros(shape) for shape in shapes) for _ in self.ranges]
        self._each(pool, lambda span, part: call(*span, *part), parts)
        return [np.sum([part[k] for part in parts], axis=0) for k in range(len(shapes))]

    def _factor(self, pool: ThreadPoolExecutor) -> bool:
        _, intervals, types = self.data.shape
        data, at = self.data, self.at
        jobs, point = data.rows, at.of_jobs
        blocks, used = self._over(
            pool,
            lambda low, high, b, u: factor(low, high, jobs, point, self.kept, self.tall, b, u),
            (intervals, types, types),
            (intervals, types),
        )
        blocks += np.tril(blocks, -1).transpose(0, 2, 1)
        room, size = at.room, intervals * types
        matrix = -(self.tall.T @ self.tall)
        for i in range(intervals):
            rows = i * types + np.arange(types)
            matrix[rows[:, None], rows] += blocks[i]
        diagonal = np.arange(size)
        matrix[diagonal, diagonal] += (room[0] / room[1]).ravel()
        matrix[diagonal, diagonal] += SHIFT * matrix[diagonal, diagonal]
        self.short = self.data.capacity - used - room[0]
        if not np.isfinite(matrix).all() or matrix[diagonal, diagonal].min() <= 0:
            return False
        self.scale = 1.0 / np.sqrt(matrix[diagonal, diagonal])
        try:
            matrix *= self.scale[:, None]
            matrix *= self.scale
            self.chol = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return False
        return True

    def _aim_second_order(self, pool: ThreadPoolExecutor, target: float) -> None:
        jobs, d, want = self.data.rows, self.step, self.want
        step, products = d.of_jobs, want.products
        self._over(pool, lambda low, high: aim_second_order(low, high, jobs, target, step, products))
        want.excess[0::2] = target - d.excess[0::2] * d.excess[1::2]
        want.room[0] = target - d.room[0] * d.room[1]

    def _aim_central(self, pool: ThreadPoolExecutor, target: float, primal: float, dual: float) -> None:
        jobs, d, want, at = self.data.rows, self.step, self.want, self.at
        point, step, products = at.of_jobs, d.of_jobs, want.products
        self._over(pool, lambda low, high: aim_central(low, high, jobs, target, primal, dual, point, step, products))
        for x, dx, aim in ((at.excess, d.excess, want.excess), (at.room, d.room, want.room)):
            product = (x[0::2] + primal * dx[0::2]) * (x[1::2] + dual * dx[1::2])
            near = np.clip(product, 0.1 * target, 10.0 * target) - product
            aim[0::2] += np.maximum(near, -10.0 * target)

    def _direction(self, pool: ThreadPoolExecutor) -> Direction:
        """Fill the step for the products wanted; the largest step lengths, and the sums of x z, x dz, z dx, dx dz."""
        d, room, droom, want, data, at = self.step, self.at.room, self.step.room, self.want, self.data, self.at
        jobs, point, products, step = data.rows, at.of_jobs, want.products, d.of_jobs
        (rhs,) = self._over(
            pool,
            lambda low, high, r: reduce_rhs(low, high, jobs, point, self.kept, products, self.rows, r),
            data.shape[1:],
        )
        move = want.room[0] / room[1] - room[0]
        rhs += self.short - move
        dy = (self.scale * cho_solve(self.chol, self.scale * rhs.ravel(), check_finite=False)).reshape(rhs.shape)
        droom[0], droom[1] = move + room[0] / room[1] * dy, -dy
        parts: list[Floats] = [np.zeros(6) for _ in self.ranges]
        rest = (jobs, point, self.kept, products, self.rows, dy, step, self.dinner)
        self._each(pool, lambda span, part: substitute(*span, *rest, part), parts)
        result = np.array(parts)
        primal = min(1.0 / max(float(result[:, 0].max()), BACK), _longest(room[0], droom[0]))
        dual = min(1.0 / max(float(result[:, 1].max()), BACK), _longest(room[1], droom[1]))
        sums = result[:, 2:].sum(axis=0)
        sums += [(room[0] * room[1]).sum(), (room[0] * droom[1]).sum(), (room[1] * droom[0]).sum(), 0.0]
        sums[3] += (droom[0] * droom[1]).sum()
        return min(primal, 1.0 / BACK), min(dual, 1.0 / BACK), sums

    def _move(self, pool: ThreadPoolExecutor, primal: float, dual: float) -> None:
        at, d = self.at, self.step
        point, step = at.of_jobs, d.of_jobs
        self._over(pool, lambda low, high: shift(low, high, self.data.first, primal, dual, point, step))
        for k, length in ((0, primal), (1, dual)):
            at.slack[k] += length * d.slack[k]
            at.room[k] += length * d.room[k]
            at.excess[k::2] += length * d.excess[k::2]
        at.lam += dual * self.dinner[:, 0]


def pairs(data: Relaxation) -> int:
    """Number of complementarity products: columns and slacks with their duals."""
    jobs, intervals, types = data.shape
    return int(data.usable.sum() + (intervals - data.first).sum()) + 2 * jobs + intervals * types


def _longest(x: Floats, step: Floats) -> float:
    falling = step < 0
    return float(np.min(-x[falling] / step[falling], initial=np.inf))


def cold_start(data: Relaxation) -> Iterate:
    """An interior starting point: every job spread evenly over all columns that it may use, and prices that fit."""
    types = data.shape[2]
    usable, live = data.usable, data.parallel > 0
    fastest = 1.0 / np.maximum(data.alpha.max(axis=1), 1e-300)
    share = fastest / fastest.sum()
    v = np.minimum(0.5 * data.parallel[:, :, None] / types, 0.5 * data.capacity * share[:, None, None])
    v = np.where(usable, v, 0.0)
    mean = np.einsum("nlg,ng,nl->n", v, data.alpha, data.start)
    slack = np.where(live, data.parallel - v.sum(axis=2), 1.0)
    room = data.capacity - v.sum(axis=0)
    target = float(data.weight @ (data.floor + np.maximum(data.excess + mean, 0.0))) / max(int(usable.sum()), 1)
    slack_dual = np.where(live, target / slack, 1.0)
    room_dual = target / np.maximum(room, 1e-300)
    behind = data.excess + mean
    small = 2.0 * target / data.weight
    e = np.where(behind > small, behind + small, small)
    nu = np.where(behind > small, data.weight - target / e, np.minimum(target / (e - behind), 0.5 * data.weight))
    base = slack_dual[:, :, None] + room_dual + (data.alpha * nu[:, None])[:, None, :] * data.start[:, :, None]
    top = np.where(usable, base / np.where(usable, data.alpha[:, None, :], 1.0), np.inf).min(axis=(1, 2))
    lam_n = MARGIN * top
    z = np.where(usable, base - data.alpha[:, None, :] * lam_n[:, None, None], 1.0)
    return Iterate(
        v=v,
        z=z,
        slack=np.stack((slack, slack_dual)),
        excess=np.stack((e, data.weight - nu, e - behind, nu)),
        lam=lam_n,
        room=np.stack((room, room_dual)),
    )
