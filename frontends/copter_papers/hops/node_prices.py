"""The formulation with one row per server, solved by column generation (HP18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from copter import Model, Session, Settings, Solution
from copter_frontends.policies.hops.draft import Shares
from copter_frontends.policies.hops.formulation import Wish
from copter_frontends.policies.hops.offers import PACKED, SPREAD, Floats, Ints
from copter_frontends.policies.hops.server_groups import ServerGroups

MOST_ROUNDS = 60  # most rounds of column generation (HP18)


@dataclass(frozen=True, slots=True)
class Generated:
    """Outcome of a column generation: the restricted LP's value, a bound for all columns, rounds and columns made."""

    solution: Solution
    objective: float
    bound: float
    rounds: int
    columns: int


class NodePriceFormulation:
    """The program with one resource per server, in which a job has only configurations that were attractive at some
    prices (HP18).

    A job's best configuration at given prices is found without listing all: on one server it is the cheapest server
    with room in each group; on several it is the cheapest window, found by a sliding sum.

    Parameters
    ----------
    groups : ServerGroups
    settings : copter.Settings
    """

    def __init__(self, groups: ServerGroups, settings: Settings) -> None:
        self.groups = groups
        self.model = Model(sense="max")
        for server in range(len(groups.ids)):
            self.model.add_resource(server, 0)
        self.session = Session(self.model, settings)
        self.wishes: dict[str, Wish] = {}
        self.free = np.zeros(len(groups.ids), dtype=np.int64)
        self.columns: dict[str, list[tuple[Shares, float]]] = {}

    def set_free(self, free: Ints) -> None:
        """Set the number of free GPUs on each server."""
        for server, delta in enumerate((free - self.free).tolist()):
            if delta > 0:
                self.model.add_resource(server, delta)
            elif delta < 0:
                self.model.remove_units(server, -delta)
        self.free = free.copy()

    def set_wishes(self, wishes: Mapping[str, Wish]) -> None:
        """Replace the jobs; remaining jobs keep their columns."""
        for job in [job for job in self.columns if job not in wishes]:
            self.model.remove_request(job)
            del self.columns[job]
        for job, known in self.columns.items():
            scale = wishes[job].weight / self.wishes[job].weight
            self.columns[job] = [(shares, value * scale) for shares, value in known]
            self.model.update_cost(job, [value for _, value in self.columns[job]])
        self.wishes = dict(wishes)

    def solve(self, gap: float = 1e-3, most_rounds: int = MOST_ROUNDS) -> Generated:
        """Alternate pricing and solving until the bound is within a relative gap of the restricted LP's value."""
        prices = np.zeros(len(self.free))
        solution, best = None, np.inf
        for number in range(1, most_rounds + 1):
            profit, fresh = self._price(prices)
            best = min(best, float(self.free @ prices) + profit) if number > 1 else best
            if solution is not None and best - solution.objective <= gap * abs(best):
                break
            if self._add(fresh) == 0:
                break
            solution = self.session.solve()
            prices = np.maximum([solution.price(server) for server in range(len(self.free))], 0.0)
        assert solution is not None
        return Generated(solution, solution.objective, best, number, sum(map(len, self.columns.values())))

    # Inside -------------------------------------------------------------------------------------------------------

    def _price(self, prices: Floats) -> tuple[float, dict[str, list[tuple[Shares, float]]]]:
        """Return the sum of all jobs' largest profits (plus the GPUs' prices, it is a bound), and each job's best
        columns.
        """
        cheapest = {}
        first = self.groups.first
        for g, group in enumerate(self.groups.groups):
            here = np.arange(first[g], first[g + 1])
            for gpus in range(1, group.gpus + 1):
                room = here[self.free[here] >= gpus]
                if len(room):
                    cheapest[g, gpus] = int(room[np.argmin(prices[room])])
        total, result = 0.0, {}
        for job, wish in self.wishes.items():
            offers, best, columns = wish.offers, 0.0, []
            for kind, g, gpus, gain in zip(
                offers.kind.tolist(), offers.group.tolist(), offers.gpus.tolist(), offers.gain.tolist(), strict=True
            ):
                shares = self._cheapest(kind, g, gpus, prices, cheapest)
                if shares is None:
                    continue
                value = wish.weight * gain
                profit = value - sum(prices[server] * count for server, count in shares)
                if profit > 1e-9:
                    columns.append((profit, shares, value))
                    best = max(best, profit)
            total += best
            columns.sort(key=lambda each: -each[0])
            result[job] = [(shares, value) for _, shares, value in columns[:2]]
        return total, result

    def _cheapest(
        self, kind: int, g: int, gpus: int, prices: Floats, cheapest: dict[tuple[int, int], int]
    ) -> Shares | None:
        if kind == PACKED:
            server = cheapest.get((g, gpus))
            return None if server is None else ((server, gpus),)
        assert kind == SPREAD
        return self._spread(g, gpus, prices)

    def _spread(self, g: int, gpus: int, prices: Floats) -> Shares | None:
        """Return the cheapest GPUs of a group on any servers, whose cost is at most that of any window."""
        here = np.arange(self.groups.first[g], self.groups.first[g + 1])
        here = here[self.free[here] > 0]
        order = here[np.argsort(prices[here], kind="stable")]
        shares, left = [], gpus
        for server in order.tolist():
            count = min(int(self.free[server]), left, gpus - 1)
            shares.append((server, count))
            left -= count
            if left == 0:
                return tuple(sorted(shares))
        return None

    def _add(self, fresh: Mapping[str, list[tuple[Shares, float]]]) -> int:
        """Add new columns to jobs: each request is removed and added again with all its columns."""
        added = 0
        for job, columns in fresh.items():
            known = self.columns.get(job, [])
            have = {shares for shares, _ in known}
            more = [each for each in columns if each[0] not in have]
            if not more:
                continue
            added += len(more)
            every = known + more
            servers = sorted({server for shares, _ in every for server, _ in shares})
            usage = {server: np.zeros(len(every)) for server in servers}
            for j, (shares, _) in enumerate(every):
                for server, count in shares:
                    usage[server][j] = count
            if known:
                self.model.remove_request(job)
            self.model.add_request(job, [value for _, value in every], usage, integer=True)
            self.columns[job] = every
        return added
