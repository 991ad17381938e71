"""Names of the policies, in a file of their own so that ``--help`` imports nothing else."""

from __future__ import annotations

RIGID_NAMES = (
    "fifo",
    "gavel",
    "gavel-max-min-fairness",
    "gavel-makespan",
    "gavel-finish-time-fairness",
    "tiresias",
    "srtf",
    "yarn-cs",
    "themis",
    "shockwave",
    "edf",
    "3sigma",
    "genie",
)
"""Baselines for jobs of fixed batch size and GPUs."""

HARE_SCHEMES = {
    "hare-gavel-fifo": "gavel_fifo",
    "hare-srtf": "srtf",
    "hare-homo": "sched_homo",
    "hare-allox": "sched_allox",
}
"""Hare's opponents: the keys of :data:`copter_frontends.hare.paper.opponents.RULES` by the policy's name."""

HADAR_MODES = {
    "hadar-online": {"mode": "online"},
    "hadar-printed": {"mode": "online", "prices": "printed"},
    "hadar-posted": {"mode": "lp_posted"},
    "hadar-horizon": {"mode": "horizon"},
    "hadar-makespan": {"utility": "makespan"},
    "hadar-finish-time-fairness": {"utility": "ftf"},
    "hadar-throughput": {"utility": "throughput"},
}
"""Hadar by its paper's other ways, by the policy's name.

``mode`` and ``utility`` as :class:`copter_frontends.hadar.HadarPolicy` takes them; ``prices`` of its online rule.
"""

BASELINE_NAMES = (*RIGID_NAMES, "pollux", "lp-star", "milp", "pop-16", "pop-16-copter")
"""The keys of :data:`copter_frontends.registry.baselines.BASELINES`."""

DEADLINE_NAMES = ("chronus", "edf", "3sigma", "genie")
"""Policies for jobs with deadlines; the command line draws some for them."""

POLICY_NAMES = (
    *("sia", "hadar", *HADAR_MODES, "hops", "hare", "hare-gang"),
    *(*HARE_SCHEMES, "chronus", *BASELINE_NAMES),
)
"""The keys of :data:`copter_frontends.registry.policies.POLICIES`."""

PROFILING_NAMES = ("chronus",)
"""Policies that can run jobs for a few minutes first, to measure their speed."""

LP_NAMES = (
    "sia",
    "hadar",
    *(name for name in HADAR_MODES if "online" not in HADAR_MODES[name].values()),
    "hops",
    "hare",
    "chronus",
)
"""Policies that solve linear programs of the engine, which another solver can be given too."""

METHOD_NAMES = (
    "sia",
    *(name for name in LP_NAMES if name.startswith("hadar")),
    "hops",
    *(name for name in RIGID_NAMES if name.startswith("gavel")),
    "pop-16-copter",
)
"""Policies whose sessions solve by the method that ``--method`` names."""

METHOD_CHOICES = ("auto", "basis", "blocks", "proximal", "coordinate_descent", "simplex", "interior")
"""The values of :attr:`copter.Settings.method`."""
