"""Mutation score: python -m tests.adversary.mutation_score [--sample 8] [--seed 0] [--only hadar]; what tests notice.

Of every module a sample of small changes is drawn by the seed; each is tried against the tests of its room, which must
fail or hang. Changes that no test can see, as they change nothing, are listed with the reason in `EQUIVALENT`. The goal
is judged over all modules together, and for each by itself as far as its sample can tell.
"""

from __future__ import annotations

import argparse
import importlib
import math
import multiprocessing
import os
import random
import resource
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.adversary.equivalent_mutants import EQUIVALENT
from tests.adversary.mutants import Mutant, handles, mutant

ROOT = Path(__file__).resolve().parents[2]
GOAL, CHANCE = 0.85, 0.05
OUTSIDE = ("scipy.sparse", "scipy.optimize", "scipy.stats", "hypothesis.strategies", "highspy", "pyarrow", "rich.table",
           "numba")  # fmt: skip
SLACK_S, SLACK = 30.0, 4.0  # a run that takes so much more processor time than the tests take hangs
WAIT = 60.0  # and one that has not ended after so many times that on the clock, which other work stretches


@dataclass(frozen=True, slots=True)
class Room:
    """A module, and the tests that must notice its changes, the quickest to tell first."""

    module: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The module's file."""
        folder = "" if self.module.startswith("copter.") else "frontends"
        return ROOT / folder / (self.module.replace(".", "/") + ".py")


def _of(package: str, folder: str, modules: str, tests: str) -> list[Room]:
    """Rooms of a package's modules that share their tests."""
    files = tuple(f"{folder}/{test}.py" for test in tests.split()) or (folder,)
    return [Room(f"{package}.{module}", files) for module in modules.split()]


PROXIMAL = "tests/copter/methods/proximal"
HADAR, HOPS = (
    ("copter_frontends.policies.hadar", "tests/frontends/hadar"),
    ("copter_frontends.policies.hops", "tests/frontends/hops"),
)
ROOMS = [
    *_of(
        *HADAR,
        "formulation shim round_values placing",
        "test_hadar_program test_hadar_rounding test_hadar_shim test_hadar_policy test_hadar_lp",
    ),
    *_of(
        *HADAR,
        "policy",
        "test_hadar_rounds test_hadar_policy test_hadar_online test_hadar_conformance",
    ),
    *_of(*HADAR, "online find_alloc posted_prices", "test_hadar_online test_hadar_guarantee"),
    *_of(*HADAR, "horizon", "test_hadar_horizon"),
    *_of(*HADAR, "stragglers", "test_hadar_stragglers"),
    *_of(
        *HOPS,
        "formulation offers shim draft",
        "test_hops_steps test_hops_program test_hops_policy test_hops_learning test_hops_learned_offers",
    ),
    *_of(
        *HOPS,
        "policy",
        "test_hops_rounds test_hops_policy test_hops_loading_records test_hops_learning test_hops_conformance",
    ),
    *_of(
        *HOPS,
        "records estimator profiling job_book server_speeds server_groups",
        "test_hops_server_speeds test_hops_learned_offers test_hops_learning test_hops_loading_records "
        " test_hops_estimator test_hops_policy",
    ),
    *_of(
        "copter_frontends.policies.sia",
        "tests/frontends/sia",
        "formulation job_bases joining shim objective policy",
        "test_sia_rounds test_sia_limits test_sia_shim test_sia_job_bases test_sia_joining test_sia_objective "
        "test_sia_values test_sia_policy test_sia_clusters test_sia_jobs",
    ),
    *_of("copter_frontends.policies.sia", "tests/frontends/sia", "exact", "test_sia_exact"),
    *_of("copter_frontends.policies.sia", "tests/frontends/sia", "estimator", "test_sia_estimator"),
    *_of(
        "copter_frontends.goodput",
        "tests/frontends/goodput",
        "bootstrap efficiency fitting learned model noise_scales pipeline throughput",
        "test_goodput_equations test_goodput_agents test_goodput_model test_goodput_models test_goodput_fitting",
    ),
    *_of(
        "copter_frontends.goodput",
        "tests/frontends/sia",
        "job_agent measured profiled refitting",
        "../goodput/test_goodput_agents test_sia_artifact test_sia_estimators",
    ),
    *_of(
        "copter_frontends.placement",
        "tests/frontends/placement",
        "demand eviction node_pool node_table placer settling",
        "",
    ),
    *_of(
        "copter_frontends.policies.chronus",
        "tests/frontends/chronus",
        "formulation",
        "test_chronus_columns test_chronus_steps test_chronus_lp test_chronus_shim test_chronus_policy "
        "test_chronus_promises",
    ),
    *_of(
        "copter_frontends.policies.chronus",
        "tests/frontends/chronus",
        "shim",
        "test_chronus_shim test_chronus_policy test_chronus_lp test_chronus_promises",
    ),
    *_of(
        "copter_frontends.policies.chronus",
        "tests/frontends/chronus",
        "policy",
        "test_chronus_choices test_chronus_policy test_chronus_profiler test_chronus_promises",
    ),
    *_of(
        "copter_frontends.policies.hare",
        "tests/frontends/hare",
        "formulation shim policy",
        "test_hare_bound test_hare_schedule test_hare_policy",
    ),
    *_of(
        "copter_frontends.shards",
        "tests/frontends/shards",
        "formulation",
        "test_shard_program test_shard_plans test_shard_cells",
    ),
    *_of("copter_frontends.shards", "tests/frontends/shards", "shim", "test_shard_steps test_shard_plans"),
    *_of("copter_frontends.shards", "tests/frontends/shards", "policy", "test_shard_rounds test_shard_plans"),
    *_of(
        "copter_frontends.traffic", "tests/frontends/traffic", "formulation", "test_traffic_program test_traffic_plans"
    ),
    *_of("copter_frontends.traffic", "tests/frontends/traffic", "shim", "test_traffic_steps test_traffic_plans"),
    *_of("copter.model", "tests/copter/model", "model ledger cost_edits row_edits", ""),
    *_of("copter_frontends.simulator", "tests/frontends/simulator", "profiling arrivals", "test_simulator_profiling"),
    *_of("copter.methods.proximal", "tests/copter/methods", "coordinate_descent", "test_coordinate_descent"),
    *_of("copter.methods.proximal", "tests/copter/methods", "price_descent", "test_price_descent"),
    *_of("copter.methods.proximal", PROXIMAL, "certificates descent residuals termination", "test_parts"),
    *_of("copter.methods.proximal", PROXIMAL, "iterate", "test_iterates test_work"),
    *_of("copter.methods.proximal", PROXIMAL, "newton", "test_newton_steps test_kernels test_work"),
    *_of("copter.methods.proximal", PROXIMAL, "pricing", "test_pricing_passes test_work"),
    *_of("copter.methods.proximal", PROXIMAL, "proximal_point", "test_proximal_steps test_work"),
    *_of("copter.methods.proximal", PROXIMAL, "purification", "test_walks test_kernels test_work"),
    *_of("copter.methods.proximal", PROXIMAL, "solve", "test_solve_loop test_work"),
    *_of("copter.methods.proximal", PROXIMAL, "working_set", "test_working_sets test_kernels test_work"),
    *_of(
        "copter.shims",
        "tests/copter/shims",
        "draft rounding plan restricted",
        "test_draft_steps test_mixed_drafts test_restricted_steps test_chosen test_offers test_tally "
        "test_shims_restricted test_closing test_shims",
    ),
    *_of("copter.shims", "tests/copter/shims", "checked", "test_checked test_chosen"),
    *_of("copter.shims", "tests/copter/shims", "chosen", "test_chosen test_checked"),
    *_of("copter.shims", "tests/copter/shims", "closing", "test_closing_steps test_closing test_shims"),
    *_of("copter.shims", "tests/copter/shims", "finished", "test_finished test_chosen test_mixed_drafts test_closing"),
    *_of("copter.shims", "tests/copter/shims", "shares", "test_shares test_mixed_drafts"),
    *_of("copter.shims", "tests/copter/shims", "feasibility", "test_feasibility test_tally test_checked"),
]


def tried(room: Room, source: Path | None, limit_s: float) -> tuple[bool, float]:
    """Whether a room's tests pass with a module's source from elsewhere, and the processor seconds that took.

    They run in a fork of this process, which has imported what they need from outside the project, and nothing of it.
    Hypothesis draws the same examples for all mutants, so that no mutant is killed by an example that fails without it.
    """
    begun = _children_s()
    run = multiprocessing.get_context("fork").Process(target=_pytest, args=(room, source, limit_s))
    run.start()
    run.join(WAIT * limit_s)
    if run.is_alive():
        run.kill()
        run.join()
    return run.exitcode == 0, _children_s() - begun


def _children_s() -> float:
    """Processor time of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pytest(room: Room, source: Path | None, limit_s: float) -> None:
    """Run a room's tests in silence and exit with what pytest says; past the limit the system ends the run."""
    os.chdir(ROOT)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit_s), math.ceil(limit_s) + 1))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    if source is not None:
        os.environ["COPTER_MUTANT"] = f"{room.module}:{source}"
    options = ["-x", "-q", "-p", "tests.adversary.mutant_loader", "-p", "no:cacheprovider", "--hypothesis-profile=ci"]
    os._exit(int(pytest.main([*options, *room.tests])))


def survivors(room: Room, drawn: list[Mutant], folder: Path, known: dict[tuple[str, ...], float]) -> list[Mutant]:
    """The mutants that a room's tests do not notice; RuntimeError if they fail without any.

    `known` is what the tests of rooms take without any: those that modules share run once.
    """
    if room.tests not in known:
        passes, known[room.tests] = tried(room, None, 3600.0)
        if not passes:
            raise RuntimeError(f"the tests of {room.module} fail as it stands: {' '.join(room.tests)}")
    seconds, alive = known[room.tests], []
    for number, each in enumerate(drawn):
        file = folder / f"{room.module}-{number}.py"
        file.write_text(each.source)
        if tried(room, file, SLACK * seconds + SLACK_S)[0]:
            alive.append(each)
            print(f"  survives: {room.module}:{each.line}: {each.change} in: {each.text}", flush=True)
    return alive


def main() -> int:
    """Try the samples; 1 if the score, or a module's, is below the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=8, help="mutants of each module (default 8)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="parts of modules' names, separated by commas")
    asked = parser.parse_args()
    rooms = [room for room in ROOMS if any(part in room.module for part in asked.only.split(","))]
    if not rooms:
        parser.error(f"no module named {asked.only!r}: {', '.join(room.module for room in ROOMS)}")
    killed = total = same = 0
    weak: list[str] = []
    known: dict[tuple[str, ...], float] = {}
    print(f"seed {asked.seed}, {asked.sample} of each module's mutants")
    for name in OUTSIDE:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        for room in rooms:
            source = room.path.read_text()
            every = handles(source)
            chosen = random.Random(f"{asked.seed} {room.module}").sample(every, min(asked.sample, len(every)))
            drawn = [mutant(source, handle) for handle in sorted(chosen)]
            others = [each for each in drawn if (room.module, each.text, each.change) not in EQUIVALENT]
            alive = survivors(room, others, Path(folder), known)
            killed, total, same = (
                killed + len(others) - len(alive),
                total + len(others),
                same + len(drawn) - len(others),
            )
            if too_few(len(others) - len(alive), len(others)):
                weak.append(room.module)
            print(f"{room.module}: {len(others) - len(alive)} of {len(others)} killed, {len(every)} in all", flush=True)
    score = killed / max(total, 1)
    print(
        f"mutation score {score:.1%}: {killed} of {total} killed, {same} that change nothing left out (goal {GOAL:.0%})"
    )
    print(f"modules below the goal by more than chance: {', '.join(weak) or 'none'}")
    return 0 if score >= GOAL and not weak else 1


def too_few(killed: int, drawn: int) -> bool:
    """Whether so few kills of so many mutants come by chance in less than one of twenty draws at the goal."""
    ways = (math.comb(drawn, count) * GOAL**count * (1 - GOAL) ** (drawn - count) for count in range(killed + 1))
    return drawn > 0 and sum(ways) < CHANCE


if __name__ == "__main__":
    sys.exit(main())
