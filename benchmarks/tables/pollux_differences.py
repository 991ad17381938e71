"""What of the public simulator's Pollux costs how much: one change at a time, from either side (papers/baselines.md).

python benchmarks/tables/pollux_differences.py [--only 'ours|as published'] [--workload philly/workload-1] [--keep FILE]

The semantics are the public simulator's. Rows under "as published" take one thing away from the policy as published;
rows under "ours" add one thing to our own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from runs import RunStore, Setting, data_directory, figures_of, mean, run_name, show

from copter_frontends.goodput import GoodputModel
from copter_frontends.goodput.measured import find_profiles, read_profiles
from copter_frontends.policies.registry.policies import POLICIES
from copter_frontends.policy_kit import GoodputThroughputs
from copter_frontends.vocabulary import SchedulingPolicy, configurations_of
from copter_frontends.vocabulary.named_clusters import cluster_from
from copter_frontends.vocabulary.semantics import PRESETS, Semantics
from copter_papers.opponents.entries import pollux_of_the_artifact
from copter_papers.opponents.pollux import GeneticSearch, ParetoSearch, PolluxPolicy

FIGURES = ("avg_jct_h", "p99_jct_h", "makespan_h", "gpu_hours_per_job", "contention", "restarts_per_job")
CLUSTER = "sia-het"
Make = Callable[[Semantics, Path, int], SchedulingPolicy]


@dataclass(frozen=True)
class Variant:
    """A policy and what is different of the semantics it runs under."""

    make: Make
    semantics: Mapping[str, Any] = field(default_factory=dict)


def published(**changes: Any) -> Make:
    """The policy as published, with attributes changed."""

    def make(semantics: Semantics, workload: Path, seed: int) -> SchedulingPolicy:
        profiles = find_profiles(workload)
        policy = pollux_of_the_artifact(cluster_from(CLUSTER), semantics, read_profiles(profiles) if profiles else None)
        policy.seed = seed
        for name, value in changes.items():
            setattr(policy, name, value)
        return policy

    return make


def ours(search: GeneticSearch | None = None, most_gpus: int | None = None) -> Make:
    """Our own policy."""

    def make(semantics: Semantics, workload: Path, seed: int) -> SchedulingPolicy:
        cluster = cluster_from(CLUSTER)
        rates = GoodputThroughputs(cluster, GoodputModel(configurations_of(cluster)))
        limit = {} if most_gpus is None else {"most_gpus": most_gpus}
        return PolluxPolicy(cluster, rates, search=search, seed=seed, **limit)

    return make


KNOWS_TYPES = {"type_blind": False}
PLAIN = {"type_blind": False, "charge": "type_and_count", "pin_restoring": True}
VARIANTS: dict[str, Variant] = {
    "as published": Variant(published()),
    "one type each in the search": Variant(published(mixing=False)),
    "jobs tell types apart": Variant(published(), KNOWS_TYPES),
    "jobs know their throughput": Variant(published(), {**KNOWS_TYPES, "profiling": "oracle"}),
    "no limit of 16 GPUs": Variant(published(most_gpus=64)),
    "restart factor 0.9": Variant(published(restart_factor=0.9)),
    "25 generations": Variant(published(search=ParetoSearch(generations=25))),
    "restarts pinned, by type and count": Variant(published(), {"charge": "type_and_count", "pin_restoring": True}),
    "ours": Variant(ours(), PLAIN),
    "ours, 16 GPUs at most": Variant(ours(most_gpus=16), PLAIN),
    "ours, all 100 generations": Variant(ours(GeneticSearch(patience=100)), PLAIN),
    "ours, type-blind jobs": Variant(ours(), {**PLAIN, "type_blind": True}),
    "ours, restarts not pinned": Variant(ours(), {**PLAIN, "pin_restoring": False}),
}


def main() -> int:
    """Run the variants and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names of variants, by commas with a bar: 'ours|as published'; by default all")
    parser.add_argument("--workload", default="philly/workload-1")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--keep", metavar="FILE", help="keep the figures of each run here, and do not run it again")
    asked = parser.parse_args()
    names = asked.only.split("|") if asked.only else list(VARIANTS)
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        parser.error(f"unknown variant {', '.join(unknown)}; there are {', '.join(VARIANTS)}")
    workload, store, rows = data_directory() / "traces" / "sia" / f"{asked.workload}.csv", RunStore(asked.keep), []
    published_semantics = POLICIES["pollux"].under(PRESETS["sia-artifact"])
    for name in names:
        variant = VARIANTS[name]
        setting = Setting("pollux", CLUSTER, workload, replace(published_semantics, **variant.semantics))
        runs = []
        for seed in range(asked.seeds):
            what = run_name(setting, f"{name}, seed {seed}")
            runs.append(store.figures(what, lambda s=setting, v=variant, n=seed: run(s, v, n)))  # type: ignore[misc]
        rows.append([name, *(mean(runs, figure) for figure in FIGURES)])
    show(f"Pollux on {asked.workload}, {asked.seeds} seeds", ["variant", *FIGURES], rows)
    return 0


def run(setting: Setting, variant: Variant, seed: int) -> dict[str, Any]:
    """The figures of one run."""
    return figures_of(setting, variant.make(setting.semantics, setting.workload, seed))


if __name__ == "__main__":
    sys.exit(main())
