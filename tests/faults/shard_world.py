"""A distributed session under faults: its coordinator and its shards die, and messages go astray."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import copter
import copter_distributed as distributed
from copter import Settings, Status
from copter.runtime.errors import CopterError
from copter.shims import IntegerPlan
from copter_distributed.messages.errors import ShardLostError, SupersededError
from tests.faults.oracle import Broken, require
from tests.faults.sim_clock import SimClock
from tests.faults.sim_disk import DiskOf, Folder, SimDisk
from tests.faults.sim_loop import Killed, SimLoop, SimProcess
from tests.faults.sim_shards import Cluster, SimTransport

DATA = "/data"
RESOURCES = ("a", "b")
SETTINGS = Settings(tolerance=1e-9)
FAR_S = 1e6  # a deadline that no solve meets, and with which late answers are not waited for

Request = tuple[tuple[float, ...], dict[str, tuple[float, ...]]]


class Facts:
    """What was acknowledged, in dictionaries."""

    def __init__(self) -> None:
        self.requests: dict[str, Request] = {}
        self.counts = dict.fromkeys(RESOURCES, 4.0)

    def copy(self) -> Facts:
        """As it is now."""
        other = Facts()
        other.requests, other.counts = dict(self.requests), dict(self.counts)
        return other

    def model(self) -> copter.Model:
        """A model of its own of the same."""
        model = copter.Model("max")
        for name, count in self.counts.items():
            model.add_resources(name, count)
        for name, (cost, usage) in self.requests.items():
            model.add_request(name, cost, usage)
        return model


Edit = Callable[[Any], None]


class ShardWorld:
    """One session over shards, from one seed.

    Parameters
    ----------
    seed : int
    counts : Counter
        Of what was done and which faults were met; added to.
    """

    def __init__(self, seed: int, counts: Counter[str]) -> None:
        self.random, self.counts = Random(seed), counts
        self.loop = SimLoop(Random(self.random.random()))
        self.clock = SimClock(self.loop)
        self.disk = SimDisk(Random(self.random.random()))
        self.disk.counts = counts
        self.disk.root.names["data"] = self.disk.root.durable["data"] = Folder()
        self.cluster = Cluster(Random(self.random.random()), self.disk, self.loop, self.clock, counts)
        self.facts = Facts()
        self.in_doubt: Facts | None = None  # what holds if a batch has happened of which that is not known
        self.following = 0
        self.trace = 0
        self.session: distributed.Session | None = None
        self.process: SimProcess | None = None
        self.view: DiskOf | None = None
        self.transport: SimTransport | None = None
        self.ousted: tuple[distributed.Session, SimProcess] | None = None  # a coordinator that was replaced, and lives
        self.made = False

    # The coordinator ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A coordinator begins, or goes on with what is there."""
        self.process, self.view = process, view = self.cluster.process("coordinator")
        self.transport = SimTransport(self.cluster, process)
        self.die_soon(0.1)
        self.counts["coordinators started"] += 1
        try:
            self.session = process.context.run(self._made if not self.made else self._loaded, self.transport)
        except Killed:
            self.counts["coordinators killed while they started"] += 1
            self.end()
            return
        except CopterError as error:
            if not (self.disk.full or self.disk.failing or "does not come back" in str(error)):
                raise Broken(f"the session does not go on: {error}") from error
            self.end()
            return
        view.dies_in = self.transport.dies_in = -1
        if self.made:
            self.counts["recoveries judged"] += 1
            self.recovered()
        self.made = True

    def _made(self, transport: SimTransport) -> distributed.Session:
        folder = self.disk.root.names["data"]
        if folder.names:  # an earlier try died: a user removes what it left
            self.disk.root.names["data"] = self.disk.root.durable["data"] = Folder()
            for host in self.cluster.hosts.values():
                self.cluster.kill(host)
            self.cluster.hosts.clear()
            self.cluster.on_their_way.clear()
        return distributed.Session(
            self.facts.model(), SETTINGS, shards=2, directory=DATA, transport=transport, sync="always", threads=1
        )

    def _loaded(self, transport: SimTransport) -> distributed.Session:
        return distributed.Session.load(DATA, SETTINGS, transport)

    def die_soon(self, chance: float) -> None:
        """The coordinator may be killed at one of its next calls, of the disk or of shards."""
        if self.view is not None and self.transport is not None and self.random.random() < chance:
            if self.random.random() < 0.5:
                self.view.dies_in = self.random.randrange(12)
            else:
                self.transport.dies_in = self.random.randrange(8)

    def end(self) -> None:
        """The coordinator's process is gone."""
        if self.process is not None and self.view is not None:
            self.process.dead = True
            self.view.end()
        self.session = self.process = self.view = self.transport = None

    def run(self, call: Callable[[], Any]) -> Any:
        """Do something in the coordinator's process."""
        if self.process is None:
            raise Broken("there is no coordinator")
        return self.process.context.run(call)

    # Steps --------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One thing that the user or fate does; then all promises are judged."""
        random = self.random
        if self.session is None:
            if random.random() < 0.5:
                self.disk.full = self.disk.failing = False
            self.start()
            return
        chance = random.random()
        if chance < 0.08:
            self.fault()
        elif chance < 0.11:
            self.solve()
        elif chance < 0.12:
            self.guarded(self.session.save, "saved")
        elif chance < 0.13:
            self.guarded(self.change_members, "shards that joined or left")
        else:
            self.edit()
        if self.disk.full and random.random() < 0.3:
            self.disk.full = False
        if self.disk.failing and random.random() < 0.3:
            self.disk.failing = False
        self.judge()

    def guarded(self, call: Callable[[], Any], what: str) -> Any:
        """Something that changes nothing of the model; it may fail where there are faults."""
        self.die_soon(0.02)
        try:
            found = self.run(call)
        except Killed:
            self.counts["coordinators killed"] += 1
            self.end()
        except ShardLostError:
            self.counts["calls that gave up"] += 1
            self.end()
        except (CopterError, OSError) as error:
            require(self.disk.full or self.disk.failing, "an error without a fault", type(error).__name__, str(error))
            self.counts["calls refused by a broken disk"] += 1
        else:
            self.calm()
            self.counts[what] += 1
            return found
        return None

    def calm(self) -> None:
        """What was to kill the coordinator within a call has not."""
        if self.view is not None and self.transport is not None:
            self.view.dies_in = self.transport.dies_in = -1

    def edit(self) -> None:
        """A batch of edits: acknowledged, refused, or in doubt where the coordinator died."""
        after = self.facts.copy()
        edits = [self.new_edit(after) for _ in range(self.random.randrange(1, 4))]
        refused = self.random.random() < 0.05
        self.die_soon(0.03)

        def do() -> None:
            if self.session is None:
                return
            with self.session.model.batch():
                for edit in edits:
                    edit(self.session.model)
                if refused:
                    self.session.model.update_cost(next(iter(after.requests)), [1.0] * 9)

        refused = refused and bool(after.requests)
        try:
            self.run(do)
        except Killed:
            self.counts["coordinators killed"] += 1
            self.in_doubt = after
            self.end()
        except ShardLostError:
            self.counts["batches in doubt"] += 1
            self.in_doubt = after
            self.end()  # its user goes on by Session.load
        except (CopterError, OSError) as error:
            faulty = self.disk.full or self.disk.failing
            require(refused or faulty, "a batch is refused", type(error).__name__, str(error))
            self.counts["batches refused"] += 1
            self.calm()
        else:
            require(not refused, "a batch with an error was taken")
            self.facts = after
            self.counts["batches acknowledged"] += 1
            self.calm()

    def new_edit(self, after: Facts) -> Edit:
        """A random edit, noted in what comes after it."""
        random, names = self.random, list(after.requests)
        kind = random.randrange(8)
        if kind < 3 or not names:
            if len(names) >= 8:
                kind = 3
            else:
                name = f"j{self.following}"
                self.following += 1
                n = random.randrange(1, 4)
                cost = tuple(random.randrange(1, 20) / 4.0 for _ in range(n))
                usage = {each: tuple(random.randrange(1, 7) / 2.0 for _ in range(n)) for each in RESOURCES}
                after.requests[name] = cost, usage
                return lambda model: model.add_request(name, cost, usage)
        chosen = random.choice(names)
        cost, usage = after.requests[chosen]
        if kind < 5:
            del after.requests[chosen]
            return lambda model: model.remove_request(chosen)
        if kind == 5:
            count, resource = random.randrange(1, 20) / 2.0, random.choice(RESOURCES)
            after.counts[resource] = count
            return lambda model: model.set_count(resource, count)
        if kind == 6:
            drawn = {each: tuple(random.randrange(1, 20) / 4.0 for _ in after.requests[each][0]) for each in names}
            for each in names:
                after.requests[each] = drawn[each], after.requests[each][1]
            return lambda model: model.update_costs(names, list(drawn.values()))
        new = tuple(random.randrange(1, 20) / 4.0 for _ in cost)
        after.requests[chosen] = new, usage
        return lambda model: model.update_cost(chosen, new)

    def change_members(self) -> None:
        """A shard joins or leaves."""
        if self.session is None:
            return
        here = sorted(self.session._deal.load)
        if len(here) < 3:
            self.session.join()
        else:
            self.session.leave(self.random.choice(here))

    def solve(self) -> None:
        """Solve, or make a plan, and judge it; a shard may be late."""
        if self.session is None:
            return
        session, deadline = self.session, FAR_S if self.random.random() < 0.5 else None
        if self.random.random() < 0.3:
            plan = self.guarded(session.solve_integer, "plans")
            if plan is not None:
                self.judge_plan(plan)
            return
        found = self.guarded(lambda: session.solve(deadline_s=deadline), "solves")
        if found is None:
            return
        late = deadline is not None and found.status is Status.TIME_LIMIT
        require(late or found.status is Status.OPTIMAL, "a solve ends otherwise", found.status)
        best = copter.Session(self.facts.model(), SETTINGS).solve()
        size = 1.0 + abs(best.objective)
        require(
            found.objective <= best.objective + 1e-6 * size, "better than the best", found.objective, best.objective
        )
        require(found.bound >= best.objective - 1e-6 * size, "a bound is beyond the optimum", found.bound)
        require(
            late or found.objective >= best.objective - 1e-6 * size, "not the best", found.objective, best.objective
        )
        self.trace = hash((self.trace, found.status.value, round(found.objective, 6)))

    def judge_plan(self, plan: IntegerPlan) -> None:
        """In fractions."""
        used = dict.fromkeys(RESOURCES, Fraction(0))
        value = Fraction(0)
        for name, (cost, usage) in self.facts.requests.items():
            for column, share in plan.shares(name).items():
                value += Fraction(share) * Fraction(cost[column])
                for resource, each in usage.items():
                    used[resource] += Fraction(share) * Fraction(each[column])
        for resource, total in used.items():
            count = Fraction(self.facts.counts[resource])
            require(total <= count * (1 + Fraction(1, 10**6)) + Fraction(1, 10**6), "over capacity", resource, total)
        require(abs(value - Fraction(plan.objective)) <= Fraction(1, 10**6) * (1 + abs(value)), "another value", value)

    # Faults -------------------------------------------------------------------------------------------------------

    def fault(self) -> None:
        """Something goes wrong."""
        random, cluster = self.random, self.cluster
        host = random.choice(list(cluster.hosts.values()))
        kind = random.choice(("kill", "call", "answer", "coordinator", "power", "full", "failing", "jump", "two"))
        if kind == "kill":
            self.counts["shards killed"] += 1
            cluster.kill(host)
        elif kind == "call" and host.view is not None:
            host.view.dies_in = random.randrange(6)
        elif kind == "answer":
            host.dies_after = random.randrange(3)
        elif kind == "coordinator":
            self.counts["coordinators killed"] += 1
            self.end()
        elif kind == "power":
            self.counts["power lost"] += 1
            self.end()
            for each in cluster.hosts.values():
                cluster.kill(each)
            cluster.on_their_way.clear()
            self.ousted = None
            self.disk.lose_power()
        elif kind == "full":
            self.counts["disk filled up"] += 1
            self.disk.full = True
        elif kind == "failing":
            self.counts["disk failed"] += 1
            self.disk.failing = True
        elif kind == "jump":
            self.counts["clock jumped"] += 1
            self.clock.offset += random.choice((-1.0, 1.0)) * 10.0 ** random.uniform(-2.0, 7.0)
        elif kind == "two" and self.session is not None and self.process is not None:
            self.counts["second coordinators"] += 1
            self.ousted = self.session, self.process
            self.session = self.process = self.view = self.transport = None
            self.start()

    def ousted_tries(self) -> None:
        """A coordinator that was replaced, and does not know it, wants to change something."""
        if self.ousted is None or self.session is None or self.random.random() > 0.2:
            return
        session, process = self.ousted
        try:
            process.context.run(session.model.set_count, RESOURCES[0], 1000.0)
        except (SupersededError, ShardLostError):
            self.counts["replaced coordinators refused"] += 1
        except (CopterError, OSError) as error:
            require(self.disk.full or self.disk.failing, "an error of another kind", type(error).__name__, str(error))
        else:
            raise Broken("a coordinator that was replaced has changed something")

    # Judgement ----------------------------------------------------------------------------------------------------

    def recovered(self) -> None:
        """All that was acknowledged is there, all of a batch in doubt or nothing, and nothing else."""
        if self.in_doubt is not None:
            happened = self.holds(self.in_doubt) == ""
            if happened:
                self.facts = self.in_doubt
            self.counts["batches in doubt that " + ("had happened" if happened else "had not happened")] += 1
            self.in_doubt = None
        wrong = self.holds(self.facts)
        require(not wrong, wrong)

    def holds(self, facts: Facts) -> str:
        """What differs between the session and facts, by the session's own look-ups; empty for nothing."""
        session = self.session
        if session is None:
            return ""
        model = session.model
        if set(model.requests) != set(facts.requests):
            return f"requests {sorted(model.requests)}, not {sorted(facts.requests)}"  # type: ignore[type-var]
        for name, count in facts.counts.items():
            if model.count(name) != count:
                return f"{model.count(name)} of {name}, not {count}"
        return self.shards_hold(facts)

    def shards_hold(self, facts: Facts) -> str:
        """What differs on the shards that run: requests and the costs of each, resources' counts aside."""
        if self.session is None:
            return ""
        whole, seen = True, 0
        for number in self.session._exchange.shards:
            host = self.cluster.hosts[number]
            if host.shard is None:
                whole = False
                continue
            model = host.shard.model
            for name in model.requests:
                seen += 1
                known = facts.requests.get(name)  # type: ignore[arg-type]
                if known is None:
                    return f"shard {number} has {name}"
                if tuple(model.cost(name).tolist()) != known[0]:
                    return f"shard {number} has costs {model.cost(name)} of {name}, not {known[0]}"
        return (
            f"{seen} requests on the shards, not {len(facts.requests)}" if whole and seen != len(facts.requests) else ""
        )

    def judge(self) -> None:
        """Whether all promises hold, as far as the last step can have broken them."""
        self.ousted_tries()
        if self.session is None:
            return
        if any(host.shard is not None and host.shard._batch is not None for host in self.cluster.hosts.values()):
            return  # it is judged when the batch is taken back
        wrong = self.holds(self.facts)
        require(not wrong, wrong)
        version = self.session.model.version
        self.trace = hash((self.trace, version, len(self.facts.requests)))


def run_shards(seed: int, steps: int, counts: Counter[str]) -> int:
    """A world from a seed for so many steps; a digest of what happened. Broken where a promise does."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    world = ShardWorld(seed, counts)
    try:
        for _ in range(steps):
            world.step()
    finally:
        logging.disable(before)
    return world.trace
