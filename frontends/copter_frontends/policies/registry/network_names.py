"""Names for ``copter simulate traffic|shards|placement``, in a file of their own: ``--help`` imports nothing else."""

from __future__ import annotations

PROBLEMS = ("traffic", "shards", "placement")
"""Problems other than GPU clusters that can be simulated and compared."""

LOAD_TESTS = ("large-scale-60000", "large-scale-50000", "baseline")
"""The keys of :data:`copter_serve.queues.load_test.BUILT_IN`."""

DEMAND_MODELS = ("gravity", "uniform", "bimodal", "poisson-high-intra", "poisson-high-inter")
TRAFFIC_STREAMS = ("perturbed", "tracking", "failure", "double-failure", "flash-crowd")
TRAFFIC_OBJECTIVES = ("total", "concurrent", "utilisation", "proportional")
PATH_RULES = ("disjoint", "shortest")
TRAFFIC_SCHEMES = ("copter", "max-min", "lp-all", "lp-top", "pinning", "dede", "greedy")
"""And pop-K for any K."""

LOAD_SEQUENCES = ("stateless", "stateful")
SHARD_COSTS = ("unit", "size")
SHARD_SCHEMES = ("copter", "copter-idle", "lp-relaxed", "exact", "local-search", "dede", "greedy")
"""And pop-K for any K."""

PLACEMENT_SCHEMES = (
    "copter",
    "first-fit",
    "best-fit",
    "dot-product",
    "fgd",
    "protean",
    "cvxcluster",
    "cvxcluster-by-server",
    "milp",
)
"""The names of :data:`copter_frontends.placement.servers.SCHEMES`."""
