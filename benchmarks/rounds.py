"""The same sequence of edited LPs through copter and its peers: recorded on a tape, and replayed.

python benchmarks/rounds.py --family sia --scale 10000 --churn 0.01 --rounds 100 --seed 0 --peers highs --json
python benchmarks/rounds.py --family multicommodity --scale 2000 --change link --peers highs --json

The rounds of the schedulers are recorded from the product and replayed: see benchmarks/tapes.py, and

copter simulate shards --shards 256 --servers 64 --rounds 60 --tape F && python benchmarks/rounds.py --tape F --json
"""

from __future__ import annotations

import argparse
import json
import signal
import sys

import families
from families.protocol import CHANGES, SolverOptions
from harness import WAYS, Options, Rounds, of_tape

from copter.runtime.errors import SnapshotError
from copter_frontends.replay.own_memory import limit_to_available


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--family", choices=families.NAMES, default="sia")
    found.add_argument(
        "--mode",
        choices=["full", "capped"],
        default="full",
        help="of sia: configurations of all sizes, or up to 64 GPUs",
    )
    found.add_argument(
        "--tape", metavar="FILE", help="replay the rounds on this tape; of a family's options none count"
    )
    found.add_argument("--scale", type=int, default=10_000, help="GPUs, or requests (default 10000)")
    found.add_argument("--rows", type=int, help="resources of gub (50) and transport (100)")
    found.add_argument("--change", choices=list(CHANGES), help="what changes every round (default: the family's own)")
    found.add_argument(
        "--churn",
        type=float,
        help="how much changes: the share of requests (churn: 0.01; some-limits: 0.01), or how far every cost or "
        "limit moves (costs, limits: 0.05)",
    )
    found.add_argument("--rounds", type=int, default=20)
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--threads", type=int, default=0, help="0: all processors")
    found.add_argument(
        "--method",
        choices=["auto", "price_descent", "coordinate_descent"],
        default="auto",
        help="of copter: its own, or proximal steps by descent over prices, or the thesis's (over columns)",
    )
    found.add_argument("--tolerance", type=float, default=1e-6, help="of copter (default 1e-6)")
    found.add_argument("--time-limit", type=float, default=120.0, help="seconds of one solve of copter")
    found.add_argument("--peers", default="", help=f"some of {','.join(WAYS)}")
    found.add_argument("--peer-time-limit", type=float, default=120.0, help="seconds of one solve of a peer")
    found.add_argument(
        "--judge",
        type=int,
        metavar="ROUNDS",
        help="judge so many last rounds only, part after part: for programs whose judging takes minutes a round",
    )
    found.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    found.add_argument("--verbose", action="store_true", help="a line a round on stderr")
    return found


def options_of(command: argparse.ArgumentParser, arguments: argparse.Namespace) -> Options:
    """Checked options; the parser's error for those that make no sense."""
    names = tuple(name for name in arguments.peers.split(",") if name)
    unknown = [name for name in names if name not in WAYS]
    if unknown:
        command.error(f"unknown peer {unknown[0]!r}: some of {', '.join(WAYS)}")
    if arguments.rounds < 1 or (arguments.churn is not None and not 0 <= arguments.churn < 1):
        command.error("rounds must be >= 1, and churn from 0 to below 1")
    if arguments.judge is not None and not 0 < arguments.judge <= arguments.rounds:
        command.error("judge must be from 1 to the number of rounds")
    if arguments.rows is not None and arguments.rows < 8:
        command.error("rows must be >= 8")
    instance = families.Instance(
        arguments.scale,
        arguments.change,
        arguments.churn,
        arguments.seed,
        arguments.mode,
        arguments.rows,
    )
    return Options(
        family=arguments.family,
        instance=instance,
        rounds=arguments.rounds,
        peers=names,
        time_limit_s=arguments.peer_time_limit,
        solver=SolverOptions(
            tolerance=arguments.tolerance,
            time_limit_s=arguments.time_limit,
            threads=arguments.threads,
            method=arguments.method,
        ),
        verbose=arguments.verbose,
        judged=arguments.judge,
    )


def main() -> None:
    """Parse, run, print."""
    command = parser()
    arguments = command.parse_args()
    options = options_of(command, arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the peers' processes are ended too
    limit_to_available()
    try:
        rounds = Rounds(options) if arguments.tape is None else None
        result = of_tape(arguments.tape, options) if rounds is None else {}
        result = result if rounds is None else rounds.run()
    except (ValueError, SnapshotError) as error:
        command.error(str(error))
    except MemoryError as error:
        command.error(f"out of memory: {error or 'the machine has no more'}; a smaller --scale takes less")
    print(json.dumps(result) if arguments.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
