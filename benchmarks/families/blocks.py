"""Families whose requests have patterns of their own, and every kind of change that such a program can see."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from copter import Model
from families.protocol import At, Floats, Ints, amount_of, chosen
from families.uniform import UniformFamily

REPRICED = 2.5  # requests with new costs a round, for each request replaced
MOST = 2.0  # upper bound of a column, in usual limits
SOME = (0.5, 1.5)  # between which a limit is drawn anew, in usual limits


@dataclass(frozen=True, slots=True)
class Blocks:
    """New requests: costs (n, k), rows and coefficients (n, k, h) padded with zeros, limits (n,)."""

    cost: Floats
    row: Ints
    coefficient: Floats
    limit: Floats

    def usage(self, rows: int) -> sp.csc_array:
        """Usage of all requests' columns, request after request."""
        return usage_of(self.row, self.coefficient, rows)


def usage_of(row: Ints, coefficient: Floats, rows: int) -> sp.csc_array:
    """A matrix (rows, n * k) of rows and coefficients, each (n, k, h) and padded with zeros."""
    n, k, _ = coefficient.shape
    request, column, entry = np.nonzero(coefficient)
    start = np.concatenate(([0], np.cumsum(np.bincount(request * k + column, minlength=n * k))))
    found = (coefficient[request, column, entry], row[request, column, entry], start)
    return sp.csc_array(found, shape=(rows, n * k))


class BlockFamily(UniformFamily):
    """Base of the generic families.

    Parameters
    ----------
    blocks : Blocks
        The first round's requests.
    capacity : ndarray (rows,)
    change : str
        Kind of change: `churn` replaces requests by new ones, and gives 2.5 times as many new costs; for `costs`,
        `limits`, `some-limits` and `link` see :data:`families.protocol.CHANGES`.
    amount : float, optional
        How much.
    rng : Generator
    """

    changes: ClassVar[tuple[str, ...]] = ("churn", "costs", "limits", "some-limits", "link")
    integer = False

    def __init__(
        self, blocks: Blocks, capacity: Floats, change: str, amount: float | None, rng: np.random.Generator
    ) -> None:
        self.rng, self.change, self.amount = rng, change, amount_of(change, amount)
        self.capacity = capacity
        self.columns = blocks.cost.shape[1]
        self.model = Model(sense="max")
        for row, count in enumerate(capacity.tolist()):
            self.model.add_resource(row, count)
        n = len(blocks.cost)
        self.cost, self.row, self.coefficient = blocks.cost, blocks.row, blocks.coefficient
        self.usual_cost = blocks.cost.copy()
        self.usual, self.limit = blocks.limit.copy(), blocks.limit.copy()  # by request; the other arrays are by place
        self.place, self.ids, self.next_id = np.arange(n), np.arange(n), n
        self.departed, self.arrived = np.zeros(0, dtype=np.int64), self.ids
        self.repriced = self.limited = self.recounted = self.departed  # places in requests, and rows, that change
        self.outage = Outage(rng, list(np.arange(len(capacity))[:, None]))
        self.waiting: sp.csc_array | None = blocks.usage(len(capacity))  # made beforehand, as it is the caller's

    @property
    def requests(self) -> Ints:
        """Ids in the model."""
        return self.ids

    @property
    def limits(self) -> Floats:
        """Largest sums."""
        return self.limit

    @property
    def upper(self) -> Floats:
        """Upper bounds: limits of whole requests; beyond any limit that is drawn for the others."""
        return self.limit if self.integer else MOST * self.usual

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the resources' rows."""
        return int(np.count_nonzero(self.coefficient))

    def costs(self, at: At) -> Floats:
        """Objective coefficients, (m, k)."""
        return self.cost[self.place[at]]

    def pattern(self, at: At) -> tuple[Ints, Floats]:
        """(rows, coefficients), each (m, k, h)."""
        return self.row[self.place[at]], self.coefficient[self.place[at]]

    # What changes -------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Draw the round's changes; the arrays then describe the coming round."""
        none = np.zeros(0, dtype=np.int64)
        self.departed = self.arrived = self.repriced = self.limited = self.recounted = none
        n, rng = len(self.ids), self.rng
        if self.change == "churn":
            count = len(chosen(n, rng, self.amount))
            self.replace(rng.choice(n, count, replace=False))
            self.repriced = rng.choice(n - count, min(n - count, round(REPRICED * count)), replace=False)
            self.cost[self.place[self.repriced]] = self.new_costs(self.repriced)
        elif self.change == "costs":
            self.repriced = np.arange(n)
            factor = rng.uniform(1.0 - self.amount, 1.0 + self.amount, (n, self.columns))
            self.cost[self.place] = self.usual_cost[self.place] * factor
        elif self.change == "link":
            self.recounted = self.outage.next(self.capacity)
        else:
            self.limited = drawn_limits(rng, self.change, self.amount, self.usual, self.limit)

    @abstractmethod
    def draw(self, count: int) -> Blocks:
        """Blocks of new requests."""

    def new_costs(self, at: Ints) -> Floats:
        """Costs of requests that are priced anew, (m, k)."""
        return np.asarray(self.costs(at) * self.rng.uniform(0.9, 1.1, (len(at), self.columns)))

    def replace(self, doomed: Ints) -> None:
        """Let new requests take the places of those doomed in the arrays, and stand at the end of the order."""
        blocks = self.draw(len(doomed))
        free = self.place[doomed]
        keep = np.ones(len(self.ids), dtype=bool)
        keep[doomed] = False
        self.departed, self.arrived = self.ids[doomed], np.arange(self.next_id, self.next_id + len(doomed))
        self.next_id += len(doomed)
        self.cost[free], self.row[free], self.coefficient[free] = blocks.cost, blocks.row, blocks.coefficient
        self.usual_cost[free] = blocks.cost
        self.ids = np.concatenate((self.ids[keep], self.arrived))
        self.place = np.concatenate((self.place[keep], free))
        self.limit = np.concatenate((self.limit[keep], blocks.limit))
        self.usual = np.concatenate((self.usual[keep], blocks.limit))
        self.waiting = blocks.usage(len(self.capacity))

    def edit(self) -> None:
        """Apply the round's changes to the model."""
        if len(self.departed):
            self.model.remove_requests(self.departed.tolist())
        if len(self.repriced):
            self.model.update_costs(self.ids[self.repriced].tolist(), self.cost[self.place[self.repriced]])
        if len(self.limited):
            set_limits(self.model, self.ids[self.limited].tolist(), self.limit[self.limited])
        if len(self.recounted):
            set_counts(self.model, self.recounted.tolist(), self.capacity[self.recounted])
        if self.waiting is not None:
            self.arrive(self.waiting)
        self.waiting = None

    def arrive(self, usage: sp.csc_array) -> None:
        """Add the new requests, which stand at the end of the order."""
        at = np.arange(len(self.ids) - len(self.arrived), len(self.ids))
        self.model.add_own_requests(
            self.ids[at].tolist(),
            np.full(len(at), self.columns),
            self.cost[self.place[at]].ravel(),
            usage,
            resources=range(len(self.capacity)),
            limit=self.limit[at],
            upper=np.repeat(self.upper[at], self.columns),
            integer=self.integer,
        )


# Changes that other families draw too ---------------------------------------------------------------------------------


def drawn_limits(rng: np.random.Generator, change: str, amount: float, usual: Floats, limit: Floats) -> Ints:
    """Draw limits anew, in place: all of them (`limits`) or a share (`some-limits`); the places of those drawn."""
    if change == "limits":
        limit[:] = usual * rng.uniform(1.0 - amount, 1.0 + amount, len(usual))
        return np.arange(len(usual))
    places = np.sort(chosen(len(usual), rng, amount))
    limit[places] = usual[places] * rng.uniform(*SOME, len(places))
    return places


class Outage:
    """Takes the capacity of a link's rows away in one round, and gives it back in the next.

    Parameters
    ----------
    rng : Generator
    links : list of ndarray
        The rows of each link.
    """

    def __init__(self, rng: np.random.Generator, links: Sequence[Ints]) -> None:
        self.rng, self.links = rng, links
        self.out: tuple[Ints, Floats] | None = None

    def next(self, capacity: Floats) -> Ints:
        """Change capacities in place; the rows that changed."""
        if self.out is None:
            rows = self.links[int(self.rng.integers(len(self.links)))]
            self.out, capacity[rows] = (rows, capacity[rows].copy()), 0.0
        else:
            rows, before = self.out
            self.out, capacity[rows] = None, before
        return rows


# Edits in bulk, where the model has them ------------------------------------------------------------------------------


def set_limits(model: Model, requests: Sequence[Hashable], limits: Floats) -> None:
    """Change the limits of many requests."""
    if hasattr(model, "update_limits"):
        model.update_limits(requests, limits)
        return
    for request, limit in zip(requests, limits.tolist(), strict=True):
        model.update_limit(request, limit)


def set_counts(model: Model, resources: Sequence[Hashable], counts: Floats) -> None:
    """Change how much there is of many resources."""
    if hasattr(model, "update_counts"):
        model.update_counts(resources, counts)
        return
    for resource, count in zip(resources, counts.tolist(), strict=True):
        more = count - model.count(resource)
        if more > 0:
            model.add_resource(resource, more)
        elif more < 0:
            model.remove_units(resource, -more)
