"""A round over 1,024 actors, simulated from times of passes and messages that are measured on this machine.

    python frontends/examples/actors_simulated.py                               # 1,024 actors, 10^11 variables
    python frontends/examples/actors_simulated.py --ray --actors 256 --variables 1e10

Measured are the time of a pricing pass per variable on one thread and, with --ray, the time of a call to an idle actor,
four at once. The number of passes in a round, the time of the master and the network are assumed and can be set on the
command line. In a pass, the coordinator sends to one actor after the other, all actors price at the same time, and the
coordinator receives the answers one by one; the slowest actor ends the pass.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from numpy.typing import NDArray

import copter_distributed as distributed
from copter.testing import sia_like_model
from copter_distributed.shards.transport import ShardOptions

Floats = NDArray[np.float64]
CALLS = 200
SAMPLE_JOBS, SAMPLE_GPUS = 400, 8192


def seconds_per_variable() -> Floats:
    """Measure passes of one shard on this machine, one after the other."""
    session = distributed.Session(sia_like_model(SAMPLE_JOBS, SAMPLE_GPUS), shards=1, threads=1)
    session.solve()
    shard = session._exchange.transport.shards[0]  # type: ignore[attr-defined]
    prices = session._master.prices(session._master.session.solve())
    times = [shard.price(prices, 1.0, np.inf).seconds for _ in range(20)]
    return np.array(times) / session.model.n_columns


def seconds_per_call() -> Floats:
    """Measure the time that one more call takes if many actors are called at once."""
    from copter_distributed.over_ray import RayTransport  # Ray is an optional extra

    transport = RayTransport("local", "simulated", processors=0.1)
    for number in range(4):
        transport.start(number, ShardOptions("max"))
    transport.call("hello", dict.fromkeys(range(4), ()), (0, 0))
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        transport.call("hello", dict.fromkeys(range(4), ()), (0, 0))
        times.append((time.perf_counter() - started) / 4)
    for number in range(4):
        transport.stop(number)
    return np.array(times)


def simulate(arguments: argparse.Namespace, per_variable: Floats, per_call: Floats) -> dict[str, float]:
    """Return the seconds and the traffic of rounds."""
    rng = np.random.default_rng(arguments.seed)
    each, actors = arguments.variables / arguments.actors, arguments.actors
    rounds = []
    for _ in range(arguments.rounds):
        total = 0.0
        for _ in range(arguments.passes):
            send = rng.choice(per_call, actors) * 0.5
            work = each * rng.choice(per_variable, actors) / arguments.threads
            ready = np.cumsum(send) + work + 1e-6 * rng.exponential(arguments.latency_us, actors)
            receive = rng.choice(per_call, actors) * 0.5 + arguments.reply_kb * 1e3 / (arguments.gbit * 1.25e8)
            now = 0.0
            for at in np.argsort(ready).tolist():
                now = max(now, float(ready[at])) + float(receive[at])
            total += now + arguments.master_s
        rounds.append(total)
    prices_kb = 8e-3 * arguments.resources
    return {
        "actors": actors,
        "variables": arguments.variables,
        "variables_per_actor": each,
        "gb_per_actor": each * 8e-9,
        "ns_per_variable": float(np.median(per_variable)) * 1e9,
        "us_per_call": float(np.median(per_call)) * 1e6,
        "round_s": float(np.median(rounds)),
        "round_s_worst": float(np.max(rounds)),
        "messages": 2 * actors * arguments.passes,
        "mb": arguments.passes * actors * (prices_kb + arguments.reply_kb) / 1e3,
    }


def main() -> None:
    """Measure, then simulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actors", type=int, default=1024)
    parser.add_argument("--variables", type=float, default=1e11)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--threads", type=int, default=16, help="of an actor's pass, which scales with them")
    parser.add_argument("--master-s", type=float, default=0.5, help="seconds of one solve of the master")
    parser.add_argument("--resources", type=int, default=100)
    parser.add_argument("--reply-kb", type=float, default=20.0, help="of one actor's answer")
    parser.add_argument("--latency-us", type=float, default=100.0, help="mean of an exponential latency")
    parser.add_argument("--gbit", type=float, default=10.0, help="of the coordinator's network")
    parser.add_argument("--call-us", type=float, default=250.0, help="of a call to an actor, where it is not measured")
    parser.add_argument("--ray", action="store_true", help="measure calls to actors of a Ray head of its own")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    per_call = seconds_per_call() if arguments.ray else np.array([arguments.call_us * 1e-6])
    print(json.dumps(simulate(arguments, seconds_per_variable(), per_call)))


if __name__ == "__main__":
    main()
