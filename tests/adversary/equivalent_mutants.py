"""Changes of modules that change nothing which a test could see, each looked at by hand."""

from __future__ import annotations

from tests.adversary.equivalent_shims import SHIMS

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "copter_frontends.placement.demand",
        "if gpus > size and gpus % size:",
        "gpus > size -> gpus >= size",
    ): "a whole node leaves no remainder",
    (
        "copter.methods.proximal.proximal_point",
        "at = np.where(kept > 0, lower, np.where(kept < 0, upper, 0.0))",
        "0.0 -> 1.0",
    ): "times a reduced cost of zero",
    (
        "copter_frontends.policies.sia.exact",
        "return (searched if searched is not None and searched.evaluate() > rounded.objective else rounded), "
        "fractional",
        "searched.evaluate() > rounded.objective -> searched.evaluate() >= rounded.objective",
    ): "two plans of one worth",
    (
        "copter_frontends.policies.sia.exact",
        "closed = solution.bound - rounded.objective <= RELATIVE_GAP * abs(solution.bound)",
        "solution.bound - rounded.objective <= RELATIVE_GAP * abs(solution.bound) -> "
        "solution.bound - rounded.objective < RELATIVE_GAP * abs(solution.bound)",
    ): "a tie with a tolerance; without jobs the worth is zero either way",
    (
        "copter_frontends.policies.sia.exact",
        "worth = np.array([pinned]) if pinned != IDLE else np.flatnonzero(value > 0)",
        "value > 0 -> value >= 0",
    ): "a column without worth gains nothing",
    (
        "copter_frontends.policies.sia.exact",
        "MOST_COLUMNS = 5000  # with more columns the shim's plan, whose gap is far below a per cent, is kept",
        "5000 -> 5001",
    ): "one column more or fewer",
    (
        "copter_frontends.policies.sia.estimator",
        "most = 0",
        "0 -> 1",
    ): "a type without steps is left out before",
    (
        "copter_frontends.policies.hops.records",
        "self.changes = 0",
        "0 -> 1",
    ): "changes are compared, not counted",
    (
        "copter_frontends.policies.hops.records",
        "self.changes += 1",
        "1 -> 2",
    ): "changes are compared, not counted",
    (
        "copter_frontends.policies.hops.records",
        "if abs(speed - known) > SPEED_MOVED * known:",
        "abs(speed - known) > SPEED_MOVED * known -> abs(speed - known) >= SPEED_MOVED * known",
    ): "a tie of measured numbers with a tolerance",
    (
        "copter_frontends.policies.hops.formulation",
        "if delta > 0:",
        "delta > 0 -> delta >= 0",
    ): "nothing is added",
    (
        "copter_frontends.policies.hops.server_speeds",
        "self._weight.append(0.0)",
        "0.0 -> 1.0",
    ): "it is written in the next lines",
    (
        "copter_frontends.policies.hops.server_speeds",
        "maxiter=500,",
        "500 -> 501",
    ): "far more than a fit takes",
    **SHIMS,
    (
        "copter_frontends.policies.hops.records",
        "if len(self._members) >= MOST_GROUPS:",
        "len(self._members) >= MOST_GROUPS -> len(self._members) > MOST_GROUPS",
    ): "one group more that is kept",
    (
        "copter_frontends.policies.hops.job_book",
        "continue",
        "continue -> pass",
    ): "what is made again is the same",
    (
        "copter_frontends.policies.hops.job_book",
        "if len(self._slowdowns) > MOST_KEPT:",
        "len(self._slowdowns) > MOST_KEPT -> len(self._slowdowns) >= MOST_KEPT",
    ): "one slowdown less that is kept",
    (
        "copter_frontends.policies.hops.server_speeds",
        "self._rate.append(0.0)",
        "0.0 -> 1.0",
    ): "it is written in the next line",
    (
        "copter_frontends.policies.hops.formulation",
        "SPARE_TEMPLATES = 64  # number of unused templates that are kept before they are reused for other offers",
        "64 -> 65",
    ): "one block more that is kept",
    (
        "copter_frontends.policies.hops.formulation",
        "MOST_TEMPLATES = 4  # with more templates per job, a change of groups makes the program anew",
        "4 -> 5",
    ): "how often programs are written anew",
    (
        "copter_frontends.policies.hops.formulation",
        "return sorted(r for slots, r in result.items() if r * slots < gpus and r > 1)",
        "r > 1 -> r >= 1",
    ): "jobs of one GPU leave none idle",
    (
        "copter_frontends.policies.hops.records",
        "self.changed.clear()",
        "self.changed.clear() -> pass",
    ): "jobs are said to have changed once more, when all have",
    (
        "copter_frontends.policies.hops.job_book",
        "if nodes <= least:",
        "nodes <= least -> nodes < least",
    ): "a rate over itself is one",
    (
        "copter_frontends.policies.hops.job_book",
        "other = np.abs(factor - 1.0) > GROUP_MOVED",
        "np.abs(factor - 1.0) > GROUP_MOVED -> np.abs(factor - 1.0) >= GROUP_MOVED",
    ): "a tie of measured numbers with a tolerance",
    (
        "copter_frontends.policies.hops.server_speeds",
        "ERROR = -1  # type number of the profiles' errors, which are unknowns like servers",
        "1 -> 2",
    ): "any number below zero says the same",
    (
        "copter_frontends.policies.hops.server_speeds",
        "if 2 * self._gone > len(self._layer.values):",
        "2 * self._gone > len(self._layer.values) -> 2 * self._gone >= len(self._layer.values)",
    ): "the columns are compacted one entry sooner",
    (
        "copter_frontends.policies.hops.server_speeds",
        "self._gone = 0",
        "0 -> 1",
    ): "the columns are compacted one entry sooner",
    (
        "copter_frontends.policies.hops.server_speeds",
        "self._n_layers += 1",
        "1 -> 2",
    ): "numbers that no layer has",
    (
        "copter_frontends.policies.hops.server_speeds",
        "place = np.full(self._n_layers, -1, dtype=np.int64)",
        "1 -> 2",
    ): "any number below zero says the same",
    (
        "copter_frontends.policies.hops.server_speeds",
        "diagonal = np.bincount(server, weight * (1.0 - weight / whole[layer]), servers) + own",
        "weight / whole[layer] -> weight * whole[layer]",
    ): "how soon the conjugate gradients end",
    (
        "copter_frontends.policies.hops.server_speeds",
        "diagonal = np.bincount(server, weight * (1.0 - weight / whole[layer]), servers) + own",
        "np.bincount(server, weight * (1.0 - weight / whole[layer]), servers) + own -> "
        "np.bincount(server, weight * (1.0 - weight / whole[layer]), servers) - own",
    ): "how soon the conjugate gradients end",
    (
        "copter_frontends.policies.hops.records",
        "if abs(entry[1] - entry[2]) > MOVED * entry[2]:",
        "abs(entry[1] - entry[2]) > MOVED * entry[2] -> abs(entry[1] - entry[2]) >= MOVED * entry[2]",
    ): "a tie of measured numbers with a tolerance",
    (
        "copter_frontends.policies.hops.profiling",
        "state = true.loading.cached if rng.random() < true.loading.cached_share else true.loading.slow",
        "rng.random() < true.loading.cached_share -> rng.random() <= true.loading.cached_share",
    ): "a draw that is exactly the share",
    (
        "copter_frontends.policies.hadar.shim",
        "split = np.flatnonzero(among & self.idle & (total > SUPPORT))",
        "total > SUPPORT -> total >= SUPPORT",
    ): "a share that is exactly the tolerance",
    (
        "copter_frontends.policies.hops.formulation",
        "for r in range(1, gpus + 1):",
        "1 -> 2",
    ): "no other size has as many slots as that of one GPU, which is not among the result",
    (
        "copter_frontends.policies.hops.shim",
        "late = time.perf_counter() - begun > limit_s",
        "time.perf_counter() - begun > limit_s -> time.perf_counter() - begun >= limit_s",
    ): "a clock that shows exactly the limit",
    (
        "copter_frontends.policies.hops.shim",
        "if draft.put(other, PACKED, gpus, ((server, gpus),)) and draft.at(other).value > had.value:",
        "draft.at(other).value > had.value -> draft.at(other).value >= had.value",
    ): "the value in the table is above the other's by then, and what is placed is worth that or more",
    (
        "copter_frontends.policies.hops.shim",
        "for n in range(1, len(table)):",
        "1 -> 2",
    ): "entry 0 is nothing, and no entry is worth less",
    (
        "copter_frontends.policies.sia.objective",
        "INVALID_VALUE = -1.0  # of a configuration on which the job cannot run: below zero, the value of no GPUs",
        "1.0 -> 2.0",
    ): "any value below zero says the same",
    (
        "copter_frontends.policies.hops.formulation",
        "if len(self._templates) > len(self.wishes) + SPARE_TEMPLATES:",
        "len(self._templates) > len(self.wishes) + SPARE_TEMPLATES -> "
        "len(self._templates) >= len(self.wishes) + SPARE_TEMPLATES",
    ): "one template more or less that is kept for later",
    (
        "copter.model.row_edits",
        "return array.reshape(-1)",
        "1 -> 2",
    ): "NumPy takes any number below zero for the length that it works out",
    (
        "copter_frontends.policies.chronus.formulation",
        "if enough or passes >= owner.max_passes or time.perf_counter() > self.until:",
        "time.perf_counter() > self.until -> time.perf_counter() >= self.until",
    ): "a clock that shows exactly the limit",
    (
        "copter_frontends.policies.chronus.formulation",
        "if result < bound:",
        "result < bound -> result <= bound",
    ): "of two prices of the same bound the one or the other",
    (
        "copter_frontends.policies.chronus.formulation",
        "return (prices, reached) if reached < bound else (best, bound)",
        "reached < bound -> reached <= bound",
    ): "of two prices of the same bound the one or the other",
    (
        "copter_frontends.policies.chronus.formulation",
        "new = np.flatnonzero(self.free & (row >= 0) & (gain - have > least))",
        "gain - have > least -> gain - have >= least",
    ): "a gain that is exactly the tolerance",
    (
        "copter_frontends.policies.chronus.formulation",
        "takes = np.flatnonzero(self.free & (place < held - ROUNDED))",
        "place < held - ROUNDED -> place <= held - ROUNDED",
    ): "a place that is exactly the tolerance from the end",
    (
        "copter_frontends.policies.chronus.shim",
        "got_better = len(options.value) > 0",
        "0 -> 1",
    ): "with one option nobody can get a better one",
    (
        "copter_frontends.policies.chronus.policy",
        "self._changed = False  # whether GPUs were added or removed since the last plan",
        "False -> True",
    ): "the first plan is made afresh in any case",
    (
        "copter_frontends.policies.chronus.policy",
        "if abs(ratio - round(ratio)) > 1e-9 or ratio < 1:",
        "abs(ratio - round(ratio)) > 1e-09 -> abs(ratio - round(ratio)) >= 1e-09",
    ): "a ratio that is exactly the tolerance from a whole number",
    (
        "copter_frontends.policies.chronus.policy",
        "if ratio is not None and not 1.0 / CONTRADICTS <= ratio <= CONTRADICTS:",
        "1.0 / CONTRADICTS <= ratio <= CONTRADICTS -> 1.0 / CONTRADICTS < ratio <= CONTRADICTS",
    ): "a measured ratio that is exactly the limit",
    (
        "copter_frontends.policies.hare.formulation",
        "return np.maximum(arrival_s + instance.rounds * ell, mean + shift), shift",
        "mean + shift -> mean - shift",
    ): "the first is never less: least half and least other half are at most a least round",
    (
        "copter_frontends.shards.formulation",
        'self.model.set_count(("load", server), 1.0, 0.0)',
        "1.0 -> 2.0",
    ): "every round gives all servers their bands before it is solved",
    (
        "copter_frontends.shards.formulation",
        'self.model.set_count(("load", server), 1.0, 0.0)',
        "0.0 -> 1.0",
    ): "every round gives all servers their bands before it is solved",
    (
        "copter_frontends.shards.formulation",
        "late = deadline_s is not None and begun - started > deadline_s",
        "begun - started > deadline_s -> begun - started >= deadline_s",
    ): "a clock that shows exactly the limit",
    (
        "copter_frontends.shards.formulation",
        "done = bound >= solution.objective - ENOUGH * (1.0 + abs(solution.objective)) and not len(over)",
        "bound >= solution.objective - ENOUGH * (1.0 + abs(solution.objective)) -> "
        "bound > solution.objective - ENOUGH * (1.0 + abs(solution.objective))",
    ): "a gap that is exactly the tolerance",
    (
        "copter_frontends.shards.policy",
        "if left is not None and left <= 0.0:",
        "left <= 0.0 -> left < 0.0",
    ): "a clock that shows exactly the limit",
    (
        "copter_frontends.traffic.shim",
        "KEEP = 1.0 - 16.0 * np.finfo(np.float64).eps",
        "16.0 -> 17.0",
    ): "one rounding more that stays free",
    (
        "copter_frontends.traffic.shim",
        "MOST_SCALINGS = 8",
        "8 -> 9",
    ): "one or two do, and what so many do not bring down none does",
    (
        "copter_frontends.traffic.shim",
        "found[found <= least] = 0.0  # this includes negative values",
        "found <= least -> found < least",
    ): "a flow that is exactly the tolerance",
    (
        "copter_frontends.traffic.shim",
        "want, room = demands * KEEP - served, capacity * KEEP - load",
        "demands * KEEP -> demands / KEEP",
    ): "scaling takes away again what is too much by 32 roundings",
    (
        "copter_frontends.traffic.shim",
        "want, room = demands * KEEP - served, capacity * KEEP - load",
        "capacity * KEEP -> capacity / KEEP",
    ): "scaling takes away again what is too much by 32 roundings",
    (
        "copter_frontends.traffic.shim",
        "order = np.flatnonzero(want > least)",
        "want > least -> want >= least",
    ): "the kernel gives nothing to a pair that wants no more than that",
    (
        "copter_frontends.traffic.shim",
        "scale_to_fit(paths.first, paths.start, paths.arc, flows, pairs, pairs, arcs, arcs, KEEP * KEEP)",
        "KEEP * KEEP -> KEEP / KEEP",
    ): "flows of zero; the kernel is compiled for any figure",
    (
        "copter_frontends.traffic.shim",
        "over = load[paths.arc] > capacity[paths.arc] * KEEP",
        "capacity[paths.arc] * KEEP -> capacity[paths.arc] / KEEP",
    ): "of figures so small that scaling ends here both are the capacity",
    (
        "copter_frontends.shards.shim",
        "MOST_PUSHES = 5000  # most pushes of load from one server",
        "5000 -> 5001",
    ): "how much is done for a server that is not brought into the band",
    (
        "copter_frontends.shards.shim",
        "wish = np.where(cluster.holds[shard] & (fits >= -1e-9), np.inf, fits)",
        "fits >= -1e-09 -> fits > -1e-09",
    ): "room that is short by exactly the tolerance",
    (
        "copter_frontends.shards.shim",
        "over = np.flatnonzero(used > most).tolist()",
        "used > most -> used >= most",
    ): "the loop takes nothing off a server that is just full",
    (
        "copter_frontends.shards.shim",
        "while used[server] > most[server]:",
        "used[server] > most[server] -> used[server] >= most[server]",
    ): "memory that is exceeded by exactly the tolerance",
    (
        "copter_frontends.shards.shim",
        "held = cluster.holds[shard] & (fits >= -1e-12)",
        "fits >= -1e-12 -> fits > -1e-12",
    ): "room that is short by exactly the tolerance",
    (
        "copter_frontends.shards.shim",
        "if fits[target] >= -1e-12:",
        "fits[target] >= -1e-12 -> fits[target] > -1e-12",
    ): "room that is short by exactly the tolerance",
    (
        "copter_frontends.shards.formulation",
        "shards = np.flatnonzero(better > ENOUGH * 1e-2)",
        "better > ENOUGH * 0.01 -> better >= ENOUGH * 0.01",
    ): "a gain that is exactly the tolerance",
    (
        "copter_frontends.shards.formulation",
        "kept = share > VANISHING",
        "share > VANISHING -> share >= VANISHING",
    ): "a share that is exactly the tolerance",
    (
        "copter_frontends.traffic.formulation",
        'status = "optimal" if found.gap <= OPTIMAL else "kept_previous" if is_kept else "feasible"',
        "found.gap <= OPTIMAL -> found.gap < OPTIMAL",
    ): "a gap that is exactly the tolerance",
    (
        "copter_frontends.traffic.formulation",
        "if not self.requests or not self.demands.any() or (deadline_s is not None and deadline_s <= 0.0):",
        "deadline_s <= 0.0 -> deadline_s < 0.0",
    ): "a clock that shows exactly the limit",
    (
        "copter_frontends.traffic.shim",
        "flows[(served > demands * KEEP)[paths.pair_of]] = 0.0",
        "demands * KEEP -> demands / KEEP",
    ): "of figures so small that scaling ends here both are the demand",
}
"""(module, line, change) to why it changes nothing that a test could see; looked at by hand."""
