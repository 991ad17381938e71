"""The priority-weighted program over server groups, on the differential model (HP15 to HP18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import is_not, itemgetter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from copter import Model, Session, Settings, Solution, Template
from copter_frontends.policies.hops.offers import PACKED, Floats, Ints, Offers, OfferTable
from copter_frontends.policies.hops.server_groups import ServerGroups, group_servers, in_places_of, regrouped
from copter_frontends.policies.hops.throughputs import PlacedThroughputs
from copter_frontends.policy_kit import NodeInventory

NONE = -1  # column of a job without a configuration
SPARE_TEMPLATES = 64  # number of unused templates that are kept before they are reused for other offers
MOST_EMPTY = 4  # the programs are rebuilt if empty groups exceed this multiple of the other groups
MOST_TEMPLATES = 4  # with more templates per job, a change of groups makes the program anew
MOST_ROWS = 1024  # up to this many rows, these programs are solved faster by prices than by interior points
MOST_COLUMNS = 200_000  # up to this many columns, a round's few changes are solved faster by pivots than by prices
MOST_USAGES = 4096  # most cached usage blocks; the oldest is dropped first


class Wish(NamedTuple):
    """A job in the service window.

    Attributes
    ----------
    offers : Offers
    weight : float
        w_i, in (0, 1].
    stays : int
        Column of the job's current offer, which is worth the stay bonus more; -1 for none.
    """

    offers: Offers
    weight: float
    stays: int = NONE


OFFERS, WEIGHT, STAYS = map(itemgetter, range(3))  # the fields of a wish, many at a time


def offers_in(wishes: Mapping[str, Wish]) -> dict[str, Offers]:
    """Return the offers of every job."""
    return dict(zip(wishes, map(OFFERS, wishes.values()), strict=True))


class GroupFormulation:
    """The program max sum w_i G_ij x_ij over (kind, group, size) columns; resources are GPUs and slots by group (HP16).

    The slots rows are cuts: a server with f free GPUs has room for at most floor(f / r) jobs of r GPUs or more.

    Parameters
    ----------
    groups : ServerGroups
    settings : copter.Settings
    all_slots : bool
        Whether to write a slots row for every size, which partly used servers need. Otherwise only for sizes whose row
        the GPUs of an empty server do not imply.
    stay_bonus : float
        sigma of HP15: gain added to a job's current offer.
    """

    def __init__(
        self, groups: ServerGroups, settings: Settings, *, all_slots: bool = False, stay_bonus: float = 0.0
    ) -> None:
        self.groups, self.stay_bonus = groups, stay_bonus
        self.all_slots = all_slots
        self.model = Model(sense="max")
        self.rows: list[tuple[str, int, int]] = []
        self._cuts: list[list[tuple[int, int]]] = []  # (r, row) of each group's slots rows
        self.row_at: dict[tuple[str, int, int], int] = {}
        self._capacity: Ints = np.zeros(0, dtype=np.int64)
        self._add_rows()
        self.session = Session(self.model, settings)
        self.wishes: dict[str, Wish] = {}
        self._templates: dict[bytes, Template] = {}
        self._spare: dict[int, list[Template]] = {}  # unused templates, by number of columns
        self._usages: dict[bytes, sp.csc_array] = {}

    @property
    def templates(self) -> int:
        """Number of usage blocks in the model, unused ones included."""
        return len(self._templates) + sum(map(len, self._spare.values()))

    # Edits --------------------------------------------------------------------------------------------------------

    def regroup(self, groups: ServerGroups) -> None:
        """Adopt groups that keep the positions of the former ones; new groups get rows, and the session continues."""
        self.groups = groups
        if len(groups) > len(self._cuts):
            self._add_rows()
            self._usages.clear()

    def set_free(self, free: Ints) -> None:
        """Set the number of free GPUs on each server, (servers,)."""
        wanted = self.capacities(free)
        for row, delta in zip(self.rows, (wanted - self._capacity).tolist(), strict=True):
            if delta > 0:
                self.model.add_resource(row, delta)
            elif delta < 0:
                self.model.remove_units(row, -delta)
        self._capacity = wanted

    def capacities(self, free: Ints) -> Ints:
        """Return the right-hand sides for these free GPUs, (rows,)."""
        result = np.zeros(len(self.rows), dtype=np.int64)
        for i, (_, g, r) in enumerate(self.rows):
            result[i] = (free[self.groups.first[g] : self.groups.first[g + 1]] // r).sum()
        return result

    def set_wishes(self, wishes: Mapping[str, Wish]) -> None:
        """Update the requests: remove jobs that left the window, add new ones, send weights."""
        with self.model.batch():
            known, offers = offers_in(self.wishes), offers_in(wishes)
            moved, fresh = {}, {}  # jobs whose gains are others, and those whose columns are
            for job in compress(wishes, map(is_not, map(known.get, wishes), offers.values())):
                if job in known and known[job].key == offers[job].key:
                    moved[job] = offers[job].gain
                else:
                    fresh[job] = offers[job]
            self.model.remove_requests([job for job in known if job not in wishes or job in fresh])
            self.model.update_costs(list(moved), list(moved.values()))
            alike = dict[bytes, list[str]]()
            for job, each in fresh.items():
                alike.setdefault(each.key, []).append(job)
            for jobs in alike.values():
                gains = [fresh[job].gain for job in jobs]
                self.model.add_requests(jobs, gains, template=self._template(fresh[jobs[0]]), integer=True)
            self._weigh(wishes, list(offers.values()))
        self.wishes = dict(wishes)
        if len(self._templates) > len(self.wishes) + SPARE_TEMPLATES:
            self._retire_templates()

    def _retire_templates(self) -> None:
        """Keep templates that no job uses for other offers of as many columns: a model's templates stay for good."""
        used = {wish.offers.key for wish in self.wishes.values()}
        for key in [key for key in self._templates if key not in used]:
            template = self._templates.pop(key)
            self._spare.setdefault(template.n_columns, []).append(template)

    def _weigh(self, wishes: Mapping[str, Wish], offers: Sequence[Offers]) -> None:
        many, bonus = len(wishes), self.stay_bonus
        if not many:
            return
        weight = np.fromiter(map(WEIGHT, wishes.values()), dtype=np.float64, count=many)
        column, own = np.full(many, NONE, dtype=np.int32), np.zeros(many)
        if bonus:
            column = np.fromiter(map(STAYS, wishes.values()), dtype=np.int32, count=many)
            table, here = OfferTable.of(offers), np.flatnonzero(column != NONE)
            own[here] = table.gain[table.start[here] + column[here]] + bonus
        self.model.rescale_costs(list(wishes), weight, 0.0, column, weight * own)

    # The solve ----------------------------------------------------------------------------------------------------

    def solve(self, deadline_s: float | None = None) -> Solution:
        """Solve the relaxation from the last round's state; its bound holds for every placement (HP17)."""
        return self.session.solve(deadline_s=deadline_s)

    def prices(self, solution: Solution) -> Floats:
        """Return the dual of every row, (rows,)."""
        return np.array([solution.price(row) for row in self.rows])

    def most_profit(self, wish: Wish, prices: Floats) -> float:
        """Return max(0, max_j v_ij - a_j'pi), the largest contribution of a job outside the model to the bound
        (HP17).
        """
        value = wish.weight * wish.offers.gain
        if wish.stays != NONE:
            value[wish.stays] += wish.weight * self.stay_bonus
        return max(0.0, float((value - self.usage_of(wish.offers).T @ np.maximum(prices, 0.0)).max()))

    # Inside -------------------------------------------------------------------------------------------------------

    def _add_rows(self) -> None:
        """Add rows for groups without any."""
        first = len(self.rows)
        for g in range(len(self._cuts), len(self.groups)):
            gpus = self.groups.groups[g].gpus
            self.rows.append(("gpus", g, 1))
            sizes = list(range(2, gpus + 1)) if self.all_slots else telling_sizes(gpus)
            self._cuts.append([(r, len(self.rows) + i) for i, r in enumerate(sizes)])
            self.rows += [("slots", g, r) for r in sizes]
        for i, row in enumerate(self.rows[first:], first):
            self.row_at[row] = i
            self.model.add_resource(row, 0)
        self._capacity = np.concatenate([self._capacity, np.zeros(len(self.rows) - first, dtype=np.int64)])

    def usage(self, offers: Offers) -> sp.csc_array:
        """Return the usage of a job's columns, a matrix (rows, columns)."""
        entries: list[tuple[int, int, float]] = []
        for j, (kind, g, gpus) in enumerate(
            zip(offers.kind.tolist(), offers.group.tolist(), offers.gpus.tolist(), strict=True)
        ):
            entries.append((self.row_at["gpus", g, 1], j, float(gpus)))
            if kind == PACKED:
                entries += [(i, j, 1.0) for r, i in self._cuts[g] if r <= gpus]
        row, column, value = zip(*entries, strict=True)
        return sp.csc_array((value, (row, column)), shape=(len(self.rows), len(offers.kind)))

    def _template(self, offers: Offers) -> Template:
        if offers.key not in self._templates:
            usage, spare = self.usage_of(offers), self._spare.get(len(offers.kind))
            if spare:
                self.model.update_template(spare[-1], usage, self.rows)
                self._templates[offers.key] = spare.pop()
            else:
                self._templates[offers.key] = self.model.add_template(usage, self.rows)
        return self._templates[offers.key]

    def usage_of(self, offers: Offers) -> sp.csc_array:
        """Return :meth:`usage`, cached for all jobs with equal offers."""
        if offers.key not in self._usages:
            self._usages[offers.key] = self.usage(offers)
            if len(self._usages) > MOST_USAGES:
                del self._usages[next(iter(self._usages))]
        return self._usages[offers.key]


class RoundPrograms:
    """A policy's two linear programs over the current server groups.

    Parameters
    ----------
    nodes : NodeInventory
        The servers; read at every :meth:`regroup`.
    throughputs : PlacedThroughputs
        Gives the servers' speeds.
    settings : copter.Settings
        Settings of the solver. Programs with few coupling rows are solved by prices at first, then by pivots from the
        last round's basis.
    speed_bin, stay_bonus : float
        See :class:`.HopsPolicy`.

    Attributes
    ----------
    groups : ServerGroups
    whole : GroupFormulation
        The program of rounds that plan all GPUs without pins.
    idle : GroupFormulation
        The program of the idle GPUs on partly used servers.
    """

    def __init__(
        self,
        nodes: NodeInventory,
        throughputs: PlacedThroughputs,
        settings: Settings,
        speed_bin: float,
        stay_bonus: float,
    ) -> None:
        self.nodes, self.throughputs = nodes, throughputs
        most_rows = max(settings.interior_rows, MOST_ROWS)
        most_columns = max(settings.basis_columns, MOST_COLUMNS)
        self.settings = replace(settings, interior_rows=most_rows, basis_columns=most_columns)
        self.speed_bin, self.stay_bonus = speed_bin, stay_bonus
        self._stale, self._version = False, self._speeds_version()
        self.groups: ServerGroups
        self.whole: GroupFormulation
        self.idle: GroupFormulation
        self._build(self._grouped())

    def servers_changed(self) -> None:
        """Note that servers have changed, so that the next :meth:`regroup` examines them."""
        self._stale = True

    def regroup(self) -> bool:
        """Group the servers again if servers or their speeds changed; returns whether all GPUs must be planned again.

        A server whose speed bin changes moves to another group. Then only right-hand sides change, and the sessions
        keep their state.
        """
        version = self._speeds_version()
        if not self._stale and version == self._version:
            return False
        came_or_went, self._stale, self._version = self._stale, False, version
        fresh = self._grouped()
        if came_or_went:
            groups = in_places_of(self.groups, fresh)
        else:
            groups = regrouped(self.groups, fresh, self.throughputs.server_speed)
        if groups.key == self.groups.key and not (groups.speeds != self.groups.speeds).any():
            return False
        full = self.whole.templates > MOST_TEMPLATES * (len(self.whole.wishes) + SPARE_TEMPLATES)
        if len(groups) > MOST_EMPTY * len(fresh) or (full and not groups.has_columns_of(self.groups)):
            self._build(fresh)
            return True
        self.groups = groups
        self.whole.regroup(groups)
        self.idle.regroup(groups)
        return came_or_went

    def _speeds_version(self) -> int:
        version: int | None = getattr(self.throughputs, "speeds_version", None)  # an attribute of LearnedThroughputs
        return self.throughputs.version if version is None else version

    def type_prices(self, solution: Solution) -> dict[str, float]:
        """Return the worth of one more GPU of each type in a solution of `whole`: the largest over the type's
        groups.
        """
        result = dict.fromkeys(self.nodes.types, 0.0)
        for (kind, group, _), price in zip(self.whole.rows, self.whole.prices(solution).tolist(), strict=True):
            if kind == "gpus":
                gpu_type = self.groups.groups[group].gpu_type
                result[gpu_type] = max(result[gpu_type], price)
        return result

    def _grouped(self) -> ServerGroups:
        servers = {kind: (self.nodes.node_gpus(kind), self.nodes.node_ids(kind)) for kind in self.nodes.types}
        return group_servers(servers, self.throughputs.server_speed, self.speed_bin)

    def _build(self, groups: ServerGroups) -> None:
        self.groups = groups
        self.whole = GroupFormulation(groups, self.settings, stay_bonus=self.stay_bonus)
        self.idle = GroupFormulation(groups, self.settings, all_slots=True, stay_bonus=self.stay_bonus)


def telling_sizes(gpus: int) -> list[int]:
    """Return sizes r whose slots row (at most floor(gpus / r) jobs of r or more GPUs a server) the GPUs row does not
    imply.

    Of the sizes with equal floor only the smallest counts, and only if r floor(gpus / r) < gpus, so that jobs of this
    size leave GPUs idle.
    """
    result: dict[int, int] = {}
    for r in range(1, gpus + 1):
        result.setdefault(gpus // r, r)
    return sorted(r for slots, r in result.items() if r * slots < gpus and r > 1)
