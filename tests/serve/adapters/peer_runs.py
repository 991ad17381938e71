"""Runs other schedulers' own code with copter in the place of their policy: ``peer_runs.py PEER FOLDER``.

One process each, as their modules have common names. A run prints one JSON object; what a peer needs and this machine
lacks is told as ``{"missing": ...}``. The peers were written for NumPy 1.23, so names of types that went away since are
given back to them.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def adaptdl(folder: Path) -> dict[str, Any]:
    """AdaptDL's own tests of its policy, made by copter instead."""
    sys.path[:0] = [str(folder / "sched"), str(folder / "adaptdl")]
    from copter_serve.adapters.adaptdl import AdaptDLPolicy

    class Ours:
        """PolluxPolicy takes any resource for a GPU; copter is told which one it is."""

        def __init__(self) -> None:
            self.kept: dict[str, AdaptDLPolicy] = {}

        def __getattr__(self, name: str) -> Callable[..., Any]:
            def call(first: Any, *rest: Any) -> Any:
                job = next(iter(first.values())) if isinstance(first, dict) else first
                gpu = next(each for each in job.resources if each.endswith("gpu"))
                return getattr(self.kept.setdefault(gpu, AdaptDLPolicy(gpu=gpu)), name)(first, *rest)

            return call

    replaced = types.ModuleType("adaptdl_sched.policy.pollux")
    replaced.PolluxPolicy = Ours  # type: ignore[attr-defined]
    sys.modules["adaptdl_sched.policy.pollux"] = replaced
    importlib.import_module("adaptdl_sched.policy")
    tests = importlib.import_module("adaptdl_sched.policy.pollux_test")
    pinned = importlib.import_module("adaptdl_sched.policy.non_preemptible_test")
    own_sample = pinned.random.sample
    pinned.random.sample = lambda population, k: own_sample(list(population), k)  # keys are no sequence since 3.11
    for nodes in (1, 2, 4, 8, 16):
        tests.test_optimize(nodes)
        pinned.test_optimize(nodes)
    tests.test_allocate_job()
    tests.test_unusable_node()
    return {"passed": 12}


def gavel(folder: Path) -> dict[str, Any]:
    """Gavel's own policies beside copter's on the same states, and its tests with copter's."""
    scheduler = folder / "scheduler"
    sys.path[:0] = [str(scheduler), str(scheduler / "policies"), str(scheduler / "tests")]
    from test_gavel_adapter import arrays, call, example

    other_solvers()
    from copter_serve.adapters.gavel import GavelAdapter

    pair = importlib.import_module("job_id_pair").JobIdPair
    names = {
        "max_min_fairness": ("max_min_fairness", "MaxMinFairnessPolicyWithPerf"),
        "makespan": ("min_total_duration", "MinTotalDurationPolicyWithPerf"),
        "max_sum_throughput": ("max_sum_throughput", "ThroughputSumWithPerf"),
        "finish_time_fairness": ("finish_time_fairness", "FinishTimeFairnessPolicyWithPerf"),
    }
    found: dict[str, Any] = {}
    for objective, (module, name) in names.items():
        theirs_class = getattr(importlib.import_module(f"policies.{module}"), name)
        rows = []
        for seed in range(3):
            ours, theirs = GavelAdapter(objective), theirs_class(solver="CLARABEL")
            assert ours.name == theirs.name, (ours.name, theirs.name)
            state = example(20, seed)
            state = {
                key: {pair(job.first, None): each for job, each in value.items()} if key != "cluster_spec" else value
                for key, value in state.items()
            }
            before = time.process_time()
            x = call(ours, state)
            between = time.process_time()
            y = call(theirs, state)
            after = time.process_time()
            levels = []
            for given in (x, y):
                rates, shares, scale, workers = arrays(state, given)
                assert (scale @ shares <= workers * (1 + 1e-5)).all()
                levels.append(level(objective, state, (rates * shares).sum(axis=1), rates, scale, workers))
            rows.append(
                {"ours": levels[0], "theirs": levels[1], "ours_s": between - before, "theirs_s": after - between}
            )
        found[objective] = rows
        setattr(importlib.import_module(f"policies.{module}"), name, lambda solver, kept=objective: GavelAdapter(kept))
    tests = importlib.import_module("policies_tests").TestPolicies()
    for name in ("max_min_fairness_with_perf", "finish_time_fairness_with_perf"):
        getattr(tests, f"test_{name}")()
    found["passed"] = 2
    return found


def other_solvers() -> None:
    """Solve what asks CVXPY for ECOS or CBC by Clarabel or HiGHS, where those are not installed."""
    cvxpy = importlib.import_module("cvxpy")
    own, there = cvxpy.Problem.solve, set(cvxpy.installed_solvers())

    def solve(self: Any, **options: Any) -> Any:
        for old, new in (("ECOS", "CLARABEL"), ("CBC", "HIGHS")):
            if options.get("solver") == old and old not in there:
                options = {"solver": new}  # with its own tolerances
        return own(self, **options)

    cvxpy.Problem.solve = solve


def level(objective: str, state: dict[str, Any], got: Any, rates: Any, scale: Any, workers: Any) -> float:
    """What a policy of Gavel's maximises, as Gavel's own programs say it."""
    jobs = list(state["throughputs"])
    if objective == "max_sum_throughput":
        return float(got.sum())
    steps = np.array([state["num_steps_remaining"][job] for job in jobs])
    if objective == "makespan":
        return float((got / steps).min())
    if objective == "max_min_fairness":
        weights = np.array([state["priority_weights"][job] for job in jobs])
        return float((got * scale / (weights * (rates @ workers / workers.sum()))).min())
    ages = np.array([state["times_since_start"][job] for job in jobs])
    fair = importlib.import_module("policies.isolated").IsolatedPolicy()
    kinds = sorted(state["cluster_spec"])
    alone = fair.get_throughputs(rates, (jobs, kinds), state["scale_factors"], state["cluster_spec"]).ravel()
    return float(-((ages + steps / got) / (steps / alone)).max())


def sia(folder: Path) -> dict[str, Any]:
    """Sia's simulator on the first jobs of one of its workloads: its own policy, then copter's."""
    simulator = folder / "sia-simulator"
    sys.path[:0] = [str(simulator)]
    import os

    os.chdir(simulator)
    other_solvers()
    multi = importlib.import_module("multi_simulator")
    config = importlib.import_module("simulator_config")
    config.sia_solver_verbose = False
    pandas = importlib.import_module("pandas")
    if not hasattr(pandas.DataFrame, "append"):  # it went away with pandas 2

        def append(self: Any, other: Any, ignore_index: bool = False) -> Any:
            rows = other if isinstance(other, pandas.DataFrame) else pandas.DataFrame(other)
            return pandas.concat([self, rows], ignore_index=ignore_index)

        pandas.DataFrame.append = append
    from copter_serve.adapters.sia import SiaSimulatorPolicy

    class Ours(SiaSimulatorPolicy, multi.SiaPolicy):  # type: ignore[misc, name-defined]
        """The simulator's Cluster looks at the class."""

        def __init__(self, **_: Any) -> None:
            SiaSimulatorPolicy.__init__(self)

    workload = sorted((simulator / "workloads" / "philly").glob("workload-*.csv"))[0]
    trace = pandas.read_csv(workload)
    first = trace[trace["application"] == "cifar10"].head(8)  # the shortest of its models: a minute for both runs
    multi.pandas = types.SimpleNamespace(read_csv=lambda name: first)
    theirs = multi.SiaPolicy
    found: dict[str, Any] = {"jobs": len(first)}
    for name, policy in (("theirs", theirs), ("ours", Ours)):
        spent = [0.0, 0]

        def timed(self: Any, *given: Any, kept: Any = policy, spent: list[float] = spent) -> Any:
            before = time.process_time()
            answer = kept.optimize(self, *given)
            spent[0] += time.process_time() - before
            spent[1] += 1
            return answer

        multi.SiaPolicy = type(policy.__name__, (policy,), {"optimize": timed})
        options = argparse.Namespace(
            workload=str(workload), cluster_scale=None, policy="sia", interval=60, policy_p_val=-0.5, mip_lambda_n=1.1,
            mip_lambda_a=0.01, project_throughputs=False, share_max_replicas=False, disable_bsz_tuning=False,
            oracle_num_nodes=0, oracle_num_replicas=0, debug=False, output=None,
        )  # fmt: skip
        _, jct = multi.multi_simulate(options)
        assert len(jct) == len(first)
        found[name] = {"mean_jct_s": float(np.mean(list(jct.values()))), "rounds": spent[1], "policy_s": spent[0]}
    return found


def blox(folder: Path) -> dict[str, Any]:
    """A day of Blox's loop with its own placement: its least attained service and first come, then copter."""
    sys.path[:0] = [str(folder)]
    pandas = importlib.import_module("pandas")
    placement = importlib.import_module("placement.placement").JobPlacement(None)
    schedulers = importlib.import_module("schedulers")
    from copter_serve.adapters.blox import BloxScheduler

    found: dict[str, Any] = {}
    for name, scheduler in (
        ("Las", schedulers.Las(None)),
        ("Fifo", schedulers.Fifo(None)),
        ("copter", BloxScheduler(None)),
    ):
        rng = np.random.default_rng(0)
        columns = ["GPU_ID", "GPU_UUID", "Local_GPU_ID", "Node_ID", "IP_addr", "IN_USE", "JOB_IDS"]
        frame = pandas.DataFrame(
            [[k, f"u{k}", k % 4, k // 4, "127.0.0.1", False, None] for k in range(32)], columns=columns
        )
        cluster = types.SimpleNamespace(server_map={}, gpu_df=frame)
        jobs = types.SimpleNamespace(active_jobs={})
        arrivals = np.cumsum(rng.exponential(900.0, 80))
        lengths, sizes = rng.lognormal(8.5, 1.0, 80), rng.choice([1, 2, 4], 80)
        finished: dict[int, float] = {}
        now, nextone, busy, rounds = 0.0, 0, 0, 0
        while len(finished) < 80:
            while nextone < 80 and arrivals[nextone] <= now:
                jobs.active_jobs[nextone] = {
                    "num_GPUs": int(sizes[nextone]), "submit_time": float(arrivals[nextone]), "is_running": False,
                    "job_priority": 999, "tracked_metrics": {"attained_service": 0.0, "per_iter_time": 0.0},
                    "placement_preference": 0, "suspended": 0, "left": float(lengths[nextone]),
                    "previously_launched": False,
                }  # fmt: skip
                nextone += 1
            order = scheduler.schedule(jobs, cluster)
            stop, launch = placement.place(jobs, cluster, order)
            for job_id in stop:
                jobs.active_jobs[job_id]["is_running"] = False
                frame.loc[frame["JOB_IDS"] == job_id, ["JOB_IDS", "IN_USE"]] = None, False
            for job_id, gpus in launch.items():
                assert len(gpus) == jobs.active_jobs[job_id]["num_GPUs"]
                assert not frame.loc[frame["GPU_ID"].isin(gpus), "IN_USE"].any()
                frame.loc[frame["GPU_ID"].isin(gpus), ["JOB_IDS", "IN_USE"]] = job_id, True
                jobs.active_jobs[job_id]["is_running"] = True
            now, rounds = now + 300.0, rounds + 1
            busy += int(frame["IN_USE"].astype(bool).sum())
            for job_id in [j for j, each in jobs.active_jobs.items() if each["is_running"]]:
                job = jobs.active_jobs[job_id]
                job["left"] -= 300.0
                job["tracked_metrics"]["attained_service"] += 300.0 * job["num_GPUs"]
                if job["left"] <= 0:
                    finished[job_id] = now - job["submit_time"]
                    del jobs.active_jobs[job_id]
                    frame.loc[frame["JOB_IDS"] == job_id, ["JOB_IDS", "IN_USE"]] = None, False
            assert rounds < 20_000
        found[name] = {"mean_jct_s": float(np.mean(list(finished.values()))), "rounds": rounds, "gpu_rounds": busy}
    return found


RUNS = {"adaptdl": adaptdl, "gavel": gavel, "sia": sia, "blox": blox}


def main() -> None:
    """One run; what the peer prints goes to stderr."""
    peer, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    for old, new in (("bool8", np.bool_), ("bool", np.bool_), ("int", int), ("float", float)):
        if not hasattr(np, old):
            setattr(np, old, new)
    told: dict[str, Any]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            told = RUNS[peer](folder)
        except ModuleNotFoundError as error:
            told = {"missing": error.name}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
